//! FreeBSD has no call that lends memory to the kernel: its `sendfile` does so with files' pages.

use crate::{
    pages::Pages,
    socket::Follows,
    zero_copy::{Completion, Refusal, ZeroCopySend},
};
use std::{
    convert::Infallible,
    io,
    ops::Range,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

/// A socket that was told that pages will be lent. There is none.
#[derive(Debug)]
pub struct Notices {
    never: Infallible,
}

impl Notices {
    /// Tells the socket.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`], always.
    pub fn of(_: &impl AsFd) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The sends of one connection by a ring. There is none.
#[derive(Debug)]
pub struct Submissions {
    never: Infallible,
}

impl Submissions {
    /// Sets a ring up.
    ///
    /// # Errors
    /// [`Refusal::Missing`], always.
    pub fn new() -> Result<Self, Refusal> {
        Err(Refusal::Missing)
    }

    /// Whether memory was registered.
    #[must_use]
    pub fn has_registered(&self) -> bool {
        match self.never {}
    }
}

macro_rules! never_sends {
    ($way:ty) => {
        impl ZeroCopySend for $way {
            fn send(
                &mut self,
                _: BorrowedFd<'_>,
                _: &Pages,
                _: Range<usize>,
                _: Follows,
            ) -> io::Result<usize> {
                match self.never {}
            }

            fn completions(&mut self, _: BorrowedFd<'_>, _: &mut dyn FnMut(Completion)) -> io::Result<()> {
                match self.never {}
            }

            fn wait(&mut self, _: BorrowedFd<'_>, _: Duration) -> io::Result<bool> {
                match self.never {}
            }
        }
    };
}
never_sends!(Notices);
never_sends!(Submissions);
