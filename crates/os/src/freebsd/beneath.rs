//! Look-ups beneath a directory by `openat` with `O_RESOLVE_BENEATH` (FreeBSD 13).

use crate::beneath::Rule;
use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
    path::Arg,
};
use std::os::fd::{AsFd, OwnedFd};

/// The kernel can refuse a symbolic link at the end of a path alone (`O_NOFOLLOW`).
pub const REFUSES_SYMLINKS: bool = false;

/// Opens `path` in `base` as the rule says, where FreeBSD can hold to it: it follows symbolic links, and crosses mount points.
///
/// # Errors
/// As [`Rule`] says, and the kernel's.
pub fn open(base: impl AsFd, path: impl Arg, flags: OFlags, rule: Rule) -> Result<OwnedFd, Errno> {
    if rule.cached_only {
        return Err(Errno::INVAL);
    }
    if !(rule.follows_symlinks && rule.crosses_mounts) {
        return Err(Errno::NOSYS);
    }
    let beneath = if rule.stays_beneath {
        OFlags::from_bits_retain(libc::O_RESOLVE_BENEATH.cast_unsigned())
    } else {
        OFlags::empty()
    };
    openat(base, path, flags | beneath, Mode::empty()).map_err(|errno| match errno.raw_os_error() {
        libc::ENOTCAPABLE => Errno::XDEV,
        _ => errno,
    })
}
