//! What `statx` says about an object.

use crate::object::Object;
use rustix::{
    fs::{AtFlags, FileType, StatxFlags, StatxTimestamp, statx},
    io::Errno,
};
use std::os::fd::AsFd;

/// What the kernel says about an open object: one `statx`. A descriptor that can only be described (`O_PATH`) will do.
///
/// # Errors
/// The kernel's.
pub fn of(object: impl AsFd) -> Result<Object, Errno> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let told = statx(object, "", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, mask)?;
    let time = |time: &StatxTimestamp| (time.tv_sec, time.tv_nsec);
    let knows_birth = told.stx_mask & StatxFlags::BTIME.bits() != 0;
    Ok(Object {
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
    })
}
