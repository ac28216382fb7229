//! What can go wrong: a root that cannot be opened, a path that is refused, a system that is short of something.

use std::fmt;
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

/// Every failure of this crate.
///
/// The variants named `Root…` are met at start or reload and are the operator's to mend; the others answer one
/// request. None of those carries the path: the caller has it, and a refused request should cost no allocation.
#[derive(Debug)]
#[non_exhaustive]
pub enum ContentError {
    /// The root does not exist.
    RootMissing {
        /// The root as it was given.
        path: PathBuf,
    },
    /// The root is something other than a directory.
    RootNotDirectory {
        /// The root as it was given.
        path: PathBuf,
    },
    /// The root, or a directory above it, may not be entered.
    RootNotPermitted {
        /// The root as it was given.
        path: PathBuf,
    },
    /// The root could not be opened for another reason.
    RootUnusable {
        /// The root as it was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path is not served, and `Refusal` says why.
    Refused(Refusal),
    /// The answer is not in the kernel's cache of names: ask again on a thread that may wait
    /// ([`Blocking::Allowed`](crate::Blocking::Allowed)).
    WouldBlock,
    /// The process (EMFILE) or the system (ENFILE) has no file descriptor left.
    DescriptorsExhausted,
    /// The file system kept changing under the look-up, or a lease on the file was not given up in time.
    Contended,
    /// Another failure of the system, such as an I/O error of the disk.
    System {
        /// What was being done.
        operation: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a path is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such file, or a file's name was followed by a slash.
    Missing,
    /// The path has an empty segment, `.`, `..`, a NUL, or does not begin with a slash.
    MalformedPath,
    /// A segment begins with a dot, and the policy does not serve those.
    Dotfile,
    /// A symbolic link that leads out of the root, loops, or may not be followed under this policy.
    SymbolicLink,
    /// A FIFO, a socket or a device.
    NotServable,
    /// The operating system denies this process the right to read it.
    NotPermitted,
    /// A directory without an index file, and listings are switched off.
    ListingOff,
}

impl Refusal {
    /// The HTTP status that says this to a client: 404 or 403 (RFC 9110, 15.5.4 and 15.5.5).
    ///
    /// A dotfile is 404, so that a probe does not learn whether it exists.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Missing | Self::MalformedPath | Self::Dotfile => 404,
            Self::SymbolicLink | Self::NotServable | Self::NotPermitted | Self::ListingOff => 403,
        }
    }

    /// A short name for logs and counters; it does not change between versions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::MalformedPath => "malformed_path",
            Self::Dotfile => "dotfile",
            Self::SymbolicLink => "symbolic_link",
            Self::NotServable => "not_servable",
            Self::NotPermitted => "not_permitted",
            Self::ListingOff => "listing_off",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Missing => "no such file",
            Self::MalformedPath => "the path has an empty segment, '.', '..' or a NUL byte",
            Self::Dotfile => {
                "names that begin with a dot are not served (allow them with the dotfiles option)"
            }
            Self::SymbolicLink => {
                "a symbolic link leaves the root, loops, or may not be followed (see the symlinks option)"
            }
            Self::NotServable => {
                "only regular files and directories are served, not FIFOs, sockets or devices"
            }
            Self::NotPermitted => {
                "the server's user may not read it (check owner and mode of it and of the directories above)"
            }
            Self::ListingOff => "the directory has no index file and listings are switched off",
        })
    }
}

impl ContentError {
    /// The HTTP status a request that met this is answered with.
    ///
    /// [`ContentError::WouldBlock`] is no answer but a request to try again elsewhere; should it get this far it is
    /// a 503 like the other shortages.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Refused(refusal) => refusal.status(),
            Self::WouldBlock | Self::DescriptorsExhausted | Self::Contended => 503,
            Self::RootMissing { .. }
            | Self::RootNotDirectory { .. }
            | Self::RootNotPermitted { .. }
            | Self::RootUnusable { .. }
            | Self::System { .. } => 500,
        }
    }

    /// What an open or stat beneath a root failed with, in this crate's terms.
    pub(crate) fn from_errno(errno: Errno, operation: &'static str) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Self::Refused(Refusal::Missing),
            // EXDEV is how RESOLVE_BENEATH reports an escape.
            Errno::XDEV | Errno::LOOP => Self::Refused(Refusal::SymbolicLink),
            Errno::ACCESS | Errno::PERM => Self::Refused(Refusal::NotPermitted),
            // ENXIO: a socket, or a device without a driver.
            Errno::NXIO | Errno::NODEV => Self::Refused(Refusal::NotServable),
            Errno::MFILE | Errno::NFILE => Self::DescriptorsExhausted,
            Errno::AGAIN => Self::WouldBlock,
            other => Self::System { operation, source: other.into() },
        }
    }
}

impl From<Refusal> for ContentError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for ContentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RootMissing { path } => {
                write!(
                    formatter,
                    "{}: the directory to serve does not exist; create it or correct the path",
                    path.display()
                )
            }
            Self::RootNotDirectory { path } => {
                write!(
                    formatter,
                    "{}: not a directory; name the directory that holds the files to serve",
                    path.display()
                )
            }
            Self::RootNotPermitted { path } => write!(
                formatter,
                "{}: permission denied; the server's user needs the right to enter (x) this directory and all above it",
                path.display()
            ),
            Self::RootUnusable { path, source } => {
                write!(formatter, "{}: the directory to serve cannot be opened: {source}", path.display())
            }
            Self::Refused(refusal) => refusal.fmt(formatter),
            Self::WouldBlock => formatter.write_str(
                "the path is not in the kernel's cache of names; look it up where waiting is allowed",
            ),
            Self::DescriptorsExhausted => formatter.write_str(
                "no file descriptor is left; raise the limit of open files (ulimit -n, LimitNOFILE=)",
            ),
            Self::Contended => formatter.write_str(
                "the path kept changing while it was looked up, or a lease on the file was not given up",
            ),
            Self::System { operation, source } => write!(formatter, "{operation} failed: {source}"),
        }
    }
}

impl std::error::Error for ContentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::RootUnusable { source, .. } | Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
