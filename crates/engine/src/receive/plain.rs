//! The plaintext engine: what the socket has is what was sent.

use super::{Arrival, End, Fault};
use linerate_os::socket;
use std::{io, os::fd::BorrowedFd};

/// Receives once, into `buffer`, and gives what came to `take`.
///
/// # Errors
/// [`Fault::Socket`].
pub fn turn(socket: BorrowedFd<'_>, buffer: &mut [u8], take: impl FnOnce(&[u8])) -> Result<Arrival, Fault> {
    match socket::receive(&socket, buffer) {
        Ok(0) => Ok(Arrival::End(End::Announced)),
        Ok(bytes) => {
            take(&buffer[..bytes]);
            Ok(Arrival::Came { data_bytes: bytes as u64, drained: bytes < buffer.len() })
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Arrival::Nothing),
        Err(error) => Err(Fault::Socket(error)),
    }
}

/// As [`turn`], but what came is thrown away, and not even copied from the kernel (`MSG_TRUNC`): the lower bound of what
/// receiving costs. `scratch` is not written to; it says how much is thrown away at most.
///
/// # Errors
/// As those of [`turn`].
pub fn turn_discarding(socket: BorrowedFd<'_>, scratch: &mut [u8]) -> Result<Arrival, Fault> {
    match socket::discard(&socket, scratch) {
        Ok(0) => Ok(Arrival::End(End::Announced)),
        Ok(bytes) => Ok(Arrival::Came { data_bytes: bytes as u64, drained: bytes < scratch.len() }),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Arrival::Nothing),
        Err(error) => Err(Fault::Socket(error)),
    }
}
