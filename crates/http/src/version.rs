//! The versions of HTTP/1.

/// The version whose rules a request is read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1, and any later minor version
    Http11,
}
