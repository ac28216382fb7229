//! Sending without a copy: the kernel is lent pages, sends from them, and says when it needs them no more.
//!
//! Two ways, one vocabulary ([`ZeroCopySend`]): `MSG_ZEROCOPY` with its notices in the socket's error queue ([`Notices`]), and
//! `io_uring`'s `SEND_ZC` ([`Submissions`]).
//!
//! The kernel reads the pages until the peer has acknowledged them: what is written there meanwhile is what is sent, or sent
//! again. Whoever lends them must leave them as they are until the completion has come; the engines have a ring for that. The
//! memory itself is safe in any case ([`Pages`]).
//!
//! Sources: `Documentation/networking/msg_zerocopy.rst`, `net/core/skbuff.c` (`msg_zerocopy_realloc`), `net/ipv4/tcp.c`.

pub use crate::system::zero_copy::{Notices, Submissions};

use crate::{pages::Pages, socket::Follows};
use std::{fmt, io, ops::Range, os::fd::BorrowedFd, time::Duration};

/// Sends that are complete: the pages that they were lent may be written to again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The number of the first. Numbers count successful sends of a connection from 0, and begin again behind 2^32 - 1.
    pub first: u32,
    /// The number of the last.
    pub last: u32,
    /// The kernel copied them after all: the way had no use for pages (loopback, an adapter without scatter-gather).
    pub copied: bool,
}

/// A way to send without a copy, for one connection.
pub trait ZeroCopySend {
    /// Names memory that sends will lend again and again, where it is of use to know that.
    ///
    /// # Errors
    /// The kernel's: too much memory is locked. The memory can be lent all the same.
    fn prepare(&mut self, memory: &[&Pages]) -> io::Result<()> {
        let _ = memory;
        Ok(())
    }

    /// Sends what the socket takes of `range` of `memory` without waiting, and without copying it. A success has the next number.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`]: the socket is full. `ENOBUFS`: too much is lent already, by the account of the socket
    /// (`net.core.optmem_max`) or of the process (`RLIMIT_MEMLOCK`); completions make room. Else the connection is gone.
    fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        memory: &Pages,
        range: Range<usize>,
        follows: Follows,
    ) -> io::Result<usize>;

    /// Gives all completions that have come to `take`, without waiting.
    ///
    /// # Errors
    /// The kernel's.
    fn completions(&mut self, socket: BorrowedFd<'_>, take: &mut dyn FnMut(Completion)) -> io::Result<()>;

    /// Waits until a completion has come, at most `limit`. False if none has.
    ///
    /// # Errors
    /// The kernel's.
    fn wait(&mut self, socket: BorrowedFd<'_>, limit: Duration) -> io::Result<bool>;
}

/// Why this process cannot send by `io_uring`.
#[derive(Debug)]
pub enum Refusal {
    /// `kernel.io_uring_disabled` is 1 or 2: the administrator switched it off, for processes without privileges or for all.
    SwitchedOff,
    /// A sandbox forbids the system call: containers' seccomp filters do, unless they are told otherwise.
    Forbidden,
    /// This kernel was built without it.
    Missing,
    /// It cannot send without a copy: that came with Linux 6.0.
    TooOld,
    /// What else the kernel said: most likely too little memory that may be locked (`ulimit -l`), on kernels before 5.12.
    Failed(io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SwitchedOff => formatter.write_str(
                "io_uring is switched off on this machine (sysctl kernel.io_uring_disabled; 0 permits it)",
            ),
            Self::Forbidden => formatter.write_str(
                "a sandbox forbids io_uring to this process (seccomp: Docker's and systemd's filters do; permit io_uring_setup, \
                 io_uring_enter and io_uring_register)",
            ),
            Self::Missing => formatter.write_str("this kernel has no io_uring"),
            Self::TooOld => formatter.write_str("this kernel's io_uring cannot send without a copy (Linux 6.0 can)"),
            Self::Failed(error) => write!(formatter, "io_uring failed: {error}"),
        }
    }
}

impl std::error::Error for Refusal {}
