//! FreeBSD counts by hwpmc(4), of which nothing is used here.

use crate::perf::{Event, Of};
use std::{convert::Infallible, io};

/// A counter that is running, from 0. There is none.
#[derive(Debug)]
pub struct Counter {
    never: Infallible,
}

impl Counter {
    /// Counters of Linux' perf events.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`], always.
    pub fn start(_: Event, _: Of) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What has been counted.
    ///
    /// # Errors
    /// None.
    pub fn value(&self) -> io::Result<Option<u64>> {
        match self.never {}
    }
}
