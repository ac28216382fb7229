//! FreeBSD does not map what was received.

use crate::receive_mapping::Received;
use std::{convert::Infallible, io, os::fd::AsFd};

/// A mapping into which one connection's segments are put. There is none.
#[derive(Debug)]
pub struct ReceiveMapping {
    never: Infallible,
}

impl ReceiveMapping {
    /// A mapping of `length_bytes` for `socket`.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`], always.
    pub fn new(_: &impl AsFd, _: usize, _: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Receives what there is, without waiting.
    ///
    /// # Errors
    /// None.
    pub fn receive(&mut self, _: &impl AsFd) -> io::Result<Received<'_>> {
        match self.never {}
    }
}
