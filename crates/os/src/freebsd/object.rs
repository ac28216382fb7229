//! What `fstat` says about an object.

use crate::object::Object;
use rustix::{
    fs::{AtFlags, FileType, Stat, fstat, major, minor, statat},
    io::Errno,
};
use std::os::fd::AsFd;

/// What the kernel says about an open object: one `fstat`. A descriptor that can only be described (`O_PATH`) will do.
///
/// # Errors
/// The kernel's.
pub fn of(object: impl AsFd) -> Result<Object, Errno> {
    fstat(object).map(|told| described(&told))
}

/// What the kernel says about the entry `name` of `directory`. Whether another file system is mounted there it does not tell. A
/// name of several components, or `..`, leads elsewhere.
///
/// # Errors
/// The kernel's.
pub fn at(directory: impl AsFd, name: &[u8]) -> Result<(Object, Option<bool>), Errno> {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map(|told| (described(&told), None))
}

// The widths of these fields differ between architectures; on some the casts do nothing.
#[allow(clippy::unnecessary_cast)]
fn described(told: &Stat) -> Object {
    let time = |seconds: i64, nanoseconds: i64| (seconds, nanoseconds as u32);
    Object {
        kind: FileType::from_raw_mode(told.st_mode),
        mode: told.st_mode as u16 & 0o7777,
        links: u32::try_from(told.st_nlink).unwrap_or(u32::MAX),
        user: told.st_uid,
        group: told.st_gid,
        size_bytes: u64::try_from(told.st_size).unwrap_or(0),
        blocks: u64::try_from(told.st_blocks).unwrap_or(0),
        device: (major(told.st_rdev), minor(told.st_rdev)),
        file_system: (major(told.st_dev), minor(told.st_dev)),
        inode: told.st_ino,
        accessed: time(told.st_atime, told.st_atime_nsec),
        modified: time(told.st_mtime, told.st_mtime_nsec),
        changed: time(told.st_ctime, told.st_ctime_nsec),
        // A file system that does not keep it says -1, or 0.
        born: (told.st_birthtime > 0).then(|| time(told.st_birthtime, told.st_birthtime_nsec)),
    }
}
