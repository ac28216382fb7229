//! What can be wrong with what the operator exports.

use std::{fmt, io, path::PathBuf};

/// Why a directory cannot be exported, or handles cannot be authenticated.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// There is nothing at the path.
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// It is no directory.
    NotDirectory {
        /// What is none.
        path: PathBuf,
    },
    /// The server's user may not enter it.
    NotPermitted {
        /// The directory.
        path: PathBuf,
    },
    /// The kernel lacks `openat2` (Linux 5.6), or a filter in front of it refuses the call.
    NoConfinement {
        /// The directory.
        path: PathBuf,
    },
    /// `/proc` is not there: files are opened through it.
    NoProc(io::Error),
    /// Something else.
    Unusable {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Two exports of one name, or one at the root of the tree beside others.
    NameTwice {
        /// The name; empty is the root of the tree.
        name: String,
    },
    /// The key of handles cannot be read or written.
    Key {
        /// The file, or its directory.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no key.
    NotKey {
        /// The file.
        file: PathBuf,
    },
}

impl fmt::Display for ExportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { path } => write!(formatter, "the directory {} does not exist", path.display()),
            Self::NotDirectory { path } => write!(formatter, "{} is no directory", path.display()),
            Self::NotPermitted { path } => write!(
                formatter,
                "the directory {} may not be entered by the user that linerate runs as",
                path.display()
            ),
            Self::NoConfinement { path } => write!(
                formatter,
                "{} cannot be exported: the kernel has no openat2 (Linux 5.6 and later have), or a system-call filter \
                 refuses it",
                path.display()
            ),
            Self::NoProc(error) => {
                write!(formatter, "/proc/self/fd cannot be used ({error}): exports need /proc mounted")
            }
            Self::Unusable { path, source } => {
                write!(formatter, "the directory {} cannot be opened: {source}", path.display())
            }
            Self::NameTwice { name } if name.is_empty() => formatter.write_str(
                "an export without a name is the root of what clients see: give it a name, or make it the only one",
            ),
            Self::NameTwice { name } => write!(formatter, "two exports have the name {name}: rename one"),
            Self::Key { file, source } => write!(
                formatter,
                "{}: the key of file handles cannot be kept: {source}; without it clients would lose their files at each \
                 restart",
                file.display()
            ),
            Self::NotKey { file } => write!(
                formatter,
                "{}: this is no key of file handles (32 bytes); remove it, and clients have to mount again",
                file.display()
            ),
        }
    }
}

impl std::error::Error for ExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoProc(source) | Self::Unusable { source, .. } | Self::Key { source, .. } => Some(source),
            _ => None,
        }
    }
}
