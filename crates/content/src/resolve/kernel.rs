//! Resolution by the kernel's own rule (Linux: `openat2`; FreeBSD: `O_RESOLVE_BENEATH`): it keeps every step of the walk beneath the root.

use std::os::fd::{BorrowedFd, OwnedFd};

use linerate_os::beneath::{self, Rule};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Blocking, OPERATION, Resolver, retry};
use crate::error::ContentError;
use crate::policy::Symlinks;

/// Finds out what this kernel, and a filter that may stand before it, allow.
pub(super) fn probe(root: BorrowedFd<'_>) -> Resolver {
    let look = |rule| beneath::open(root, ".", OFlags::PATH | OFlags::CLOEXEC, rule).err();
    conclude(look(Rule::BENEATH), look(Rule { cached_only: true, ..Rule::BENEATH }))
}

/// What the errors of two trials mean.
///
/// ENOSYS is a kernel before 5.6. EPERM comes from the system-call filters of older container runtimes, which answer
/// so to any call they don't know. EINVAL for `RESOLVE_CACHED` is a kernel before 5.12; EAGAIN is its ordinary answer.
fn conclude(plain: Option<Errno>, cached: Option<Errno>) -> Resolver {
    match plain {
        Some(Errno::NOSYS | Errno::PERM) => Resolver::ByHand,
        _ => Resolver::Kernel { cached: cached != Some(Errno::INVAL) },
    }
}

pub(super) fn open(
    root: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    symlinks: Symlinks,
    blocking: Blocking,
    cached: bool,
) -> Result<OwnedFd, ContentError> {
    let confined = Rule {
        stays_beneath: symlinks != Symlinks::Anywhere,
        follows_symlinks: symlinks != Symlinks::Refused,
        ..Rule::BENEATH
    };
    let attempt = |rule| beneath::open(root, name, flags, rule);
    match blocking {
        Blocking::Allowed => retry(|| attempt(confined)),
        Blocking::CachedOnly if !cached => Err(ContentError::WouldBlock),
        // EAGAIN here is a name that is not cached or a race with a rename; either is settled on another thread.
        Blocking::CachedOnly => attempt(Rule { cached_only: true, ..confined })
            .map_err(|errno| ContentError::from_errno(errno, OPERATION)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_and_filters_are_recognised() {
        let cached = Resolver::Kernel { cached: true };
        for (plain, with_cached, expected) in [
            (None, None, cached),
            (None, Some(Errno::AGAIN), cached),
            (None, Some(Errno::INVAL), Resolver::Kernel { cached: false }),
            (Some(Errno::NOSYS), Some(Errno::NOSYS), Resolver::ByHand),
            (Some(Errno::PERM), Some(Errno::PERM), Resolver::ByHand),
            // No descriptor left at start says nothing about the kernel.
            (Some(Errno::MFILE), Some(Errno::MFILE), cached),
        ] {
            assert_eq!(conclude(plain, with_cached), expected, "{plain:?} {with_cached:?}");
        }
    }
}
