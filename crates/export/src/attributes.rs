//! What the kernel says about an object, and what clients are told.

use crate::handle::Key;
use linerate_nfs::{Attributes, Device, FileSystemId, Kind, Name, Time};
use linerate_os::object::{self, Object};
use rustix::{fd::AsFd, fs::FileType, io::Errno};

/// What one question to the kernel tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) kind: ObjectKind,
    /// The lower 12 bits.
    pub(crate) mode: u16,
    pub(crate) links: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) size_bytes: u64,
    /// Of 512 bytes.
    pub(crate) blocks: u64,
    pub(crate) device: (u32, u32),
    /// Which file system it is on.
    pub(crate) file_system: (u32, u32),
    pub(crate) inode: u64,
    pub(crate) accessed: (i64, u32),
    pub(crate) modified: (i64, u32),
    pub(crate) changed: (i64, u32),
    /// `None` where the file system does not keep it.
    pub(crate) born: Option<(i64, u32)>,
}

/// [`Kind`] with a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectKind(pub(crate) Kind);

impl Default for ObjectKind {
    fn default() -> Self {
        Self(Kind::File)
    }
}

impl Facts {
    pub(crate) fn of(object: impl AsFd) -> Result<Self, Errno> {
        object::of(object).map(|told| Self::told(&told))
    }

    /// Of an entry of a directory, and whether it is a mount point, where the kernel tells.
    pub(crate) fn at(directory: impl AsFd, name: Name<'_>) -> Result<(Self, Option<bool>), Errno> {
        object::at(directory, name.as_bytes()).map(|(told, is_mount)| (Self::told(&told), is_mount))
    }

    fn told(told: &Object) -> Self {
        let kind = match told.kind {
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::SymbolicLink,
            FileType::BlockDevice => Kind::BlockDevice,
            FileType::CharacterDevice => Kind::CharacterDevice,
            FileType::Socket => Kind::Socket,
            FileType::Fifo => Kind::Pipe,
            _ => Kind::File,
        };
        Self {
            kind: ObjectKind(kind),
            mode: told.mode,
            links: told.links,
            user: told.user,
            group: told.group,
            size_bytes: told.size_bytes,
            blocks: told.blocks,
            device: told.device,
            file_system: told.file_system,
            inode: told.inode,
            accessed: told.accessed,
            modified: told.modified,
            changed: told.changed,
            born: told.born,
        }
    }

    /// Which object of export `export` it is.
    pub(crate) fn key(&self, export: u32) -> Key {
        Key { export, inode: self.inode, birth: self.born.map_or(0, birth_tag) }
    }

    /// What clients are told.
    pub(crate) fn attributes(&self, file_system: FileSystemId, mounted_on_number: u64) -> Attributes {
        let time = |(seconds, nanoseconds)| Time { seconds, nanoseconds };
        let (seconds, nanoseconds) = self.changed;
        Attributes {
            kind: self.kind.0,
            mode: self.mode.into(),
            links: self.links,
            user: self.user,
            group: self.group,
            size_bytes: self.size_bytes,
            used_bytes: self.blocks.saturating_mul(512),
            device: Device { major: self.device.0, minor: self.device.1 },
            file_system,
            number: self.inode,
            mounted_on_number,
            // The kernel keeps its own cookie of changes (`STATX_CHANGE_COOKIE`) to itself. The time is as fine as its clock's
            // tick, and finer from Linux 6.13 on. Before 1970 it wraps, and still differs.
            change: seconds.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(nanoseconds.into()),
            accessed: time(self.accessed),
            modified: time(self.modified),
            attributes_changed: time(self.changed),
        }
    }
}

/// Some bits of the time of birth; never 0.
fn birth_tag((seconds, nanoseconds): (i64, u32)) -> u32 {
    let mixed = (seconds.cast_unsigned() ^ u64::from(nanoseconds) << 34).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    u32::try_from(mixed >> 32).unwrap_or_default() | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn kinds_lengths_and_changes_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "12345").unwrap();
        let file = fs::File::open(&path).unwrap();
        let before = Facts::of(&file).unwrap();
        assert_eq!((before.kind.0, before.size_bytes, before.links), (Kind::File, 5, 1));
        let told = before.attributes(FileSystemId { major: 1, minor: 2 }, 9);
        assert_eq!((told.number, told.mounted_on_number, told.size_bytes), (before.inode, 9, 5));
        assert_eq!(Facts::of(fs::File::open(directory.path()).unwrap()).unwrap().kind.0, Kind::Directory);

        let later = Facts { changed: (before.changed.0, before.changed.1 ^ 1), ..before };
        assert_ne!(later.attributes(told.file_system, 9).change, told.change);
        assert_eq!(later.key(1), before.key(1));
        let reborn = Facts { born: Some((1, 2)), ..before };
        assert_ne!(Facts { born: Some((1, 3)), ..before }.key(1), reborn.key(1));
        assert_eq!(Facts { born: None, ..before }.key(1).birth, 0);
    }
}
