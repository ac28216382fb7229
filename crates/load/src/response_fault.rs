//! What is wrong with a response.

use std::fmt;

/// What is wrong with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseFault(pub(crate) &'static str);

impl fmt::Display for ResponseFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}
