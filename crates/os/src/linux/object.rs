//! What `statx` says about an object.

use crate::object::Object;
use rustix::{
    fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags, StatxTimestamp, statx},
    io::Errno,
};
use std::os::fd::AsFd;

fn mask() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::BTIME
}

/// What the kernel says about an open object: one `statx`. A descriptor that can only be described (`O_PATH`) will do.
///
/// # Errors
/// The kernel's.
pub fn of(object: impl AsFd) -> Result<Object, Errno> {
    statx(object, "", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, mask()).map(|told| described(&told))
}

/// What the kernel says about the entry `name` of `directory`, and whether another file system is mounted there, of which it then
/// speaks; `None` where it cannot tell that (before Linux 5.8). One `statx`, which follows no symbolic link and mounts nothing. A
/// name of several components, or `..`, leads elsewhere.
///
/// # Errors
/// The kernel's.
pub fn at(directory: impl AsFd, name: &[u8]) -> Result<(Object, Option<bool>), Errno> {
    let told = statx(directory, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, mask())?;
    let root = StatxAttributes::MOUNT_ROOT;
    let is_mount = told.stx_attributes_mask.contains(root).then(|| told.stx_attributes.contains(root));
    Ok((described(&told), is_mount))
}

fn described(told: &Statx) -> Object {
    let time = |time: &StatxTimestamp| (time.tv_sec, time.tv_nsec);
    let knows_birth = told.stx_mask & StatxFlags::BTIME.bits() != 0;
    Object {
        kind: FileType::from_raw_mode(told.stx_mode.into()),
        mode: told.stx_mode & 0o7777,
        links: told.stx_nlink,
        user: told.stx_uid,
        group: told.stx_gid,
        size_bytes: told.stx_size,
        blocks: told.stx_blocks,
        device: (told.stx_rdev_major, told.stx_rdev_minor),
        file_system: (told.stx_dev_major, told.stx_dev_minor),
        inode: told.stx_ino,
        accessed: time(&told.stx_atime),
        modified: time(&told.stx_mtime),
        changed: time(&told.stx_ctime),
        born: knows_birth.then(|| time(&told.stx_btime)),
    }
}
