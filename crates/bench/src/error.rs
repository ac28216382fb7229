//! Why a run, a report or a comparison could not be made.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be done. Each says what, where, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The command line or an experiment's file asks for something that there is not, or that cannot be.
    Asked(String),
    /// An experiment's file is wrong, at `FILE:LINE:COLUMN`.
    Definition(String),
    /// A file or folder could not be read or written.
    File {
        /// What was to be done: "cannot write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// This machine lacks something that every round needs.
    Machine(String),
    /// It was interrupted before anything was measured.
    Interrupted,
}

/// What everything here returns.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an error of what the system said about a file.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |reason| Self::File { action, path, reason }
    }

    /// Whether a disk is full.
    pub(crate) fn is_disk_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, Self::File { reason, .. } if matches!(reason.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked(message) | Self::Definition(message) | Self::Machine(message) => {
                formatter.write_str(message)
            }
            Self::File { action, path, reason } => {
                write!(formatter, "{action} {}: {reason}", path.display())?;
                let advice = if self.is_disk_full() { "; make room there" } else { "" };
                formatter.write_str(advice)
            }
            Self::Interrupted => formatter.write_str("interrupted before anything was measured"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { reason, .. } => Some(reason),
            _ => None,
        }
    }
}
