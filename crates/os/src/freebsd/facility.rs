//! There is no io_uring.

use std::io;

/// Whether this process may use io_uring: never.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`].
pub fn io_uring() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
