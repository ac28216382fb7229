//! Opens a path beneath a root and nowhere else (INV-PATH-1): by the kernel's own rule where it has one, step by step
//! elsewhere.

mod kernel;
mod walk;

use std::os::fd::{BorrowedFd, OwnedFd};

use linerate_os::beneath::REFUSES_SYMLINKS;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::ContentError;
use crate::policy::Symlinks;

/// Whether a look-up may wait for a disk or a network file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// Only what the kernel has in its cache of names; otherwise [`ContentError::WouldBlock`].
    ///
    /// Linux 5.12 and later can tell (`RESOLVE_CACHED`). Where it can't be told every look-up answers `WouldBlock`:
    /// a worker that must not stall is better off asking another thread than hoping.
    CachedOnly,
    /// Wait as long as it takes.
    Allowed,
}

/// How paths are resolved beneath a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolver {
    /// The kernel keeps the whole walk beneath the root: Linux by `openat2` (5.6 and later), FreeBSD by `O_RESOLVE_BENEATH`.
    Kernel {
        /// `RESOLVE_CACHED` is known too (5.12 and later).
        cached: bool,
    },
    /// One `openat(O_NOFOLLOW)` for each segment, symbolic links resolved by hand: slower, equally confined.
    ByHand,
}

/// What the descriptor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To read a file.
    Content,
    /// To list a directory.
    Directory,
    /// To ask what it is.
    Look,
}

impl Purpose {
    fn flags(self) -> OFlags {
        match self {
            // O_NONBLOCK: opening a FIFO waits for its writer otherwise, and some devices wait for their line.
            // O_NOCTTY: a terminal must not become the server's.
            Self::Content => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC,
            Self::Directory => OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Self::Look => OFlags::PATH | OFlags::CLOEXEC,
        }
    }
}

impl Resolver {
    /// The best that this system offers for `root`.
    pub(crate) fn best(root: BorrowedFd<'_>) -> Self {
        kernel::probe(root)
    }

    /// Opens `relative` (checked: see `path`) beneath `root`.
    pub(crate) fn open(
        self,
        root: BorrowedFd<'_>,
        relative: &[u8],
        purpose: Purpose,
        symlinks: Symlinks,
        blocking: Blocking,
    ) -> Result<OwnedFd, ContentError> {
        let name = if relative.is_empty() { b".".as_slice() } else { relative };
        let flags = purpose.flags();
        match self {
            // A kernel that cannot refuse the symbolic links within a path.
            Self::Kernel { .. } if symlinks == Symlinks::Refused && !REFUSES_SYMLINKS => {
                Self::ByHand.open(root, relative, purpose, symlinks, blocking)
            }
            Self::Kernel { cached } => kernel::open(root, name, flags, symlinks, blocking, cached),
            _ if blocking == Blocking::CachedOnly => Err(ContentError::WouldBlock),
            _ => retry(|| walk::open(root, name, flags, symlinks)),
        }
    }
}

/// How often a look-up is repeated at once, and how often after a pause, before it is given up.
const QUICK_ATTEMPTS: u32 = 16;
const SLOW_ATTEMPTS: u32 = 50;
const PAUSE_MS: u64 = 2;

/// Repeats `attempt` while it says EAGAIN, boundedly. Only for threads that may wait.
///
/// `openat2` says EAGAIN when a rename elsewhere made it impossible to tell whether `..` in a link stayed beneath the
/// root: the next attempt succeeds at once. And an open with O_NONBLOCK says it while somebody holds a lease on the
/// file (Samba does): that takes milliseconds to be given up.
fn retry(mut attempt: impl FnMut() -> Result<OwnedFd, Errno>) -> Result<OwnedFd, ContentError> {
    for number in 0..QUICK_ATTEMPTS + SLOW_ATTEMPTS {
        match attempt() {
            Ok(descriptor) => return Ok(descriptor),
            Err(Errno::AGAIN) if number >= QUICK_ATTEMPTS => {
                std::thread::sleep(std::time::Duration::from_millis(PAUSE_MS));
            }
            // EINTR: a signal during an open on a network file system.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(ContentError::from_errno(errno, OPERATION)),
        }
    }
    Err(ContentError::Contended)
}

const OPERATION: &str = "opening a file beneath the root";

#[cfg(test)]
mod tests {
    use super::*;

    fn some_descriptor() -> OwnedFd {
        rustix::fs::open("/", OFlags::PATH, rustix::fs::Mode::empty()).unwrap()
    }

    #[test]
    fn a_rename_race_is_tried_again() {
        let mut calls = 0;
        let opened = retry(|| {
            calls += 1;
            if calls < 5 { Err(Errno::AGAIN) } else { Ok(some_descriptor()) }
        });
        assert!(opened.is_ok());
        assert_eq!(calls, 5);
    }

    #[test]
    fn an_endless_race_is_given_up() {
        let mut calls = 0;
        let outcome = retry(|| {
            calls += 1;
            Err(Errno::AGAIN)
        });
        assert!(matches!(outcome, Err(ContentError::Contended)));
        assert_eq!(calls, QUICK_ATTEMPTS + SLOW_ATTEMPTS);
    }

    #[test]
    fn other_errors_are_not_repeated() {
        let mut calls = 0;
        let outcome = retry(|| {
            calls += 1;
            Err(Errno::MFILE)
        });
        assert!(matches!(outcome, Err(ContentError::DescriptorsExhausted)));
        assert_eq!(calls, 1);
    }
}
