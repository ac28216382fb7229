//! Why a plan could not be made.

use std::fmt;

/// What is wrong with what was asked for or described, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

/// What everything here returns.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
