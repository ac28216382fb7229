//! The plaintext engine without a copy: the pages that segments arrived in are mapped, and what cannot be mapped is copied.

use super::{Arrival, End, Fault};
use linerate_os::receive_mapping::{Obstacle, ReceiveMapping};
use std::{io, os::fd::BorrowedFd};

/// Less than this is copied wherever it lies: no page is missed by it.
const ONE_PAGE_BYTES: u64 = 4096;

/// What a connection has beside its socket.
#[derive(Debug)]
pub struct Incoming {
    mapping: ReceiveMapping,
    mapped_bytes: u64,
    copied_bytes: u64,
}

impl Incoming {
    /// Receives up to `length_bytes` at a time mapped, and up to `copy_bytes` copied. It keeps the connection open as long as it
    /// lives.
    ///
    /// # Errors
    /// As those of [`ReceiveMapping::new`].
    pub fn new(socket: BorrowedFd<'_>, length_bytes: usize, copy_bytes: usize) -> io::Result<Self> {
        let mapping = ReceiveMapping::new(&socket, length_bytes, copy_bytes)?;
        Ok(Self { mapping, mapped_bytes: 0, copied_bytes: 0 })
    }

    /// Receives once, and gives what came to `take`: at most two parts, in order.
    ///
    /// # Errors
    /// [`Fault::Socket`].
    pub fn turn(&mut self, socket: BorrowedFd<'_>, mut take: impl FnMut(&[u8])) -> Result<Arrival, Fault> {
        let received = match self.mapping.receive(&socket) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Arrival::Nothing),
            Err(error) => return Err(Fault::Socket(error)),
        };
        let (mapped, copied) = (received.mapped, received.copied);
        for bytes in [mapped, copied] {
            if !bytes.is_empty() {
                take(bytes);
            }
        }
        let data_bytes = (mapped.len() + copied.len()) as u64;
        if data_bytes == 0 {
            return Ok(Arrival::End(End::Announced));
        }
        self.mapped_bytes += mapped.len() as u64;
        self.copied_bytes += copied.len() as u64;
        Ok(Arrival::Came { data_bytes, drained: false })
    }

    /// Bytes that were received without a copy.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes
    }

    /// Bytes that were copied.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// What stands in the way, where half of all bytes or more were copied. `None` where most were mapped, nothing of a page's
    /// length has come, or the kernel does not tell.
    #[must_use]
    pub fn obstacle(&self, socket: BorrowedFd<'_>) -> Option<Obstacle> {
        let mostly_copied = self.copied_bytes >= ONE_PAGE_BYTES && self.copied_bytes >= self.mapped_bytes;
        if mostly_copied { Obstacle::of(&socket) } else { None }
    }
}
