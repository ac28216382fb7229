//! What is wrong with a command line and only shows when all of it is read.

use std::error::Error;
use std::fmt;

use clap::error::ErrorKind;

/// Told as clap tells its own errors, with the usage of the command that it is about.
#[derive(Debug)]
pub(crate) struct UsageError {
    command: &'static str,
    message: String,
}

impl UsageError {
    pub(crate) fn new(command: &'static str, message: impl Into<String>) -> Self {
        Self { command, message: message.into() }
    }

    /// As an error of `root`, the whole command line.
    pub(crate) fn of(self, mut root: clap::Command) -> clap::Error {
        root.build();
        match root.find_subcommand_mut(self.command) {
            Some(command) => command.error(ErrorKind::WrongNumberOfValues, self.message),
            None => root.error(ErrorKind::WrongNumberOfValues, self.message),
        }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for UsageError {}
