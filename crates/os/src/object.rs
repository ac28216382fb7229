//! What the kernel says about an object in a file system, its time of birth included.

pub use crate::system::object::{at, of};

use rustix::fs::FileType;

/// One object, as the kernel describes it at one moment. Times are seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// What it is.
    pub kind: FileType,
    /// Permissions: the lower 12 bits.
    pub mode: u16,
    /// Names that it has.
    pub links: u32,
    /// Its owner.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// Blocks of 512 bytes that it takes.
    pub blocks: u64,
    /// Of a device: its numbers.
    pub device: (u32, u32),
    /// Which file system it is on.
    pub file_system: (u32, u32),
    /// Its number there.
    pub inode: u64,
    /// When it was last read.
    pub accessed: (i64, u32),
    /// When its content was last changed.
    pub modified: (i64, u32),
    /// When anything about it was last changed.
    pub changed: (i64, u32),
    /// When it was made; `None` where the file system does not keep it.
    pub born: Option<(i64, u32)>,
}
