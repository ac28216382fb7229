//! What is wrong with the configuration, and where it says so.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place in a configuration file, displayed as `FILE:LINE:COLUMN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file as the operator named it.
    pub file: Arc<Path>,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// Where a setting came from, so that an error found later can still say where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said it; it is the built-in default.
    Default,
    /// A flag or argument of the command line, as it is written there (`--cert`, `DIR`).
    Flag(&'static str),
    /// A place in the configuration file.
    File(Position),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => formatter.write_str("default"),
            Origin::Flag(flag) => formatter.write_str(flag),
            Origin::File(position) => position.fmt(formatter),
        }
    }
}

/// One thing that is wrong, displayed as `FILE:LINE:COLUMN: what is wrong, what is allowed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where the faulty value was said.
    pub origin: Origin,
    /// What is wrong with it, and what is allowed.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.origin, self.message)
    }
}

/// Why there are no usable settings.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// A single value could not be parsed; the caller knows where it was said.
    Value {
        /// What is wrong, and what is allowed.
        message: String,
    },
    /// The configuration file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The configuration file is larger than any sensible one.
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read, in bytes.
        limit_bytes: u64,
    },
    /// The configuration says something wrong, at one place or several.
    Invalid {
        /// Every fault found, in the order of the file. Never empty.
        faults: Vec<Fault>,
    },
}

impl Error {
    /// A faulty value.
    pub(crate) fn value(message: impl Into<String>) -> Self {
        Error::Value { message: message.into() }
    }
}

impl From<linerate_http::SettingError> for Error {
    fn from(error: linerate_http::SettingError) -> Self {
        Error::value(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Value { message } => formatter.write_str(message),
            Error::Unreadable { path, reason } => {
                write!(formatter, "{}: cannot read the configuration: {reason}", path.display())
            }
            Error::TooLarge { path, limit_bytes } => write!(
                formatter,
                "{}: a configuration file may be {} at most",
                path.display(),
                crate::size_text(*limit_bytes)
            ),
            Error::Invalid { faults } => {
                for (index, fault) in faults.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    write!(formatter, "{separator}{fault}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unreadable { reason, .. } => Some(reason),
            _ => None,
        }
    }
}
