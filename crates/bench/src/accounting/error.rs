//! Why a round could not be accounted for.

use std::{fmt, io, path::PathBuf};

/// What stops an accounting as a whole. What a machine merely can't tell is a `Reading::NotAvailable` instead.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file of the kernel's cannot be read.
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the kernel's lacks what is looked for.
    NotUnderstood {
        /// Which.
        path: PathBuf,
    },
    /// No process of the server was named.
    NoServer,
    /// A process of the server is not there (any more).
    Ended {
        /// Its id.
        pid: u32,
    },
    /// A process ended, and no process that is followed waited for it: what it used is nowhere to be read.
    Lost {
        /// Its id.
        pid: u32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Self::NotUnderstood { path } => {
                write!(f, "{} is not of the form that Linux gives it", path.display())
            }
            Self::NoServer => {
                write!(f, "no process of the server was named: there is nothing to account for")
            }
            Self::Ended { pid } => write!(f, "process {pid} has ended: there is nothing to account for"),
            Self::Lost { pid } => write!(
                f,
                "process {pid} ended in the middle of the measurement and took its CPU time with it, \
                 as no process that is measured waited for it; name its parent too"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}
