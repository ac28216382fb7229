//! XDR (RFC 4506): values in units of four bytes, numbers with the most significant byte first.

use std::error::Error;
use std::fmt;

mod reader;
mod writer;

pub use reader::Reader;
pub use writer::Writer;

/// Bytes that make a length a multiple of four.
const fn padding_bytes(length_bytes: usize) -> usize {
    length_bytes.wrapping_neg() & 3
}

/// Bytes that are no value of the type that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum XdrError {
    /// The value goes on behind the end of the bytes.
    TooShort,
    /// A length above the type's limit.
    TooLong,
    /// A number that stands for nothing.
    Unknown,
}

impl fmt::Display for XdrError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooShort => "the message ends in the middle of a value",
            Self::TooLong => "a length is above its limit",
            Self::Unknown => "a number stands for nothing",
        })
    }
}

impl Error for XdrError {}
