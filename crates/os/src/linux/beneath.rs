//! Look-ups beneath a directory by `openat2` (Linux 5.6).

use crate::beneath::Rule;
use rustix::{
    fs::{Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
    path::Arg,
};
use std::os::fd::{AsFd, OwnedFd};

/// The kernel can refuse symbolic links wherever in a path they stand.
pub const REFUSES_SYMLINKS: bool = true;

/// Opens `path` in `base` as the rule says. Links that lead to open descriptors of processes (`/proc/PID/fd`) are never followed.
///
/// # Errors
/// As [`Rule`] says, and the kernel's. `EAGAIN` without `cached_only`: a rename elsewhere made it impossible to tell whether `..`
/// in a link stayed beneath; the next attempt succeeds.
pub fn open(base: impl AsFd, path: impl Arg, flags: OFlags, rule: Rule) -> Result<OwnedFd, Errno> {
    let mut resolve = ResolveFlags::NO_MAGICLINKS;
    resolve.set(ResolveFlags::BENEATH, rule.stays_beneath);
    resolve.set(ResolveFlags::NO_SYMLINKS, !rule.follows_symlinks);
    resolve.set(ResolveFlags::NO_XDEV, !rule.crosses_mounts);
    resolve.set(ResolveFlags::CACHED, rule.cached_only);
    openat2(base, path, flags, Mode::empty(), resolve)
}
