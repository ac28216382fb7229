//! What `fstat` says about a file, as far as serving it is concerned.

use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

/// Which file it is: the same pair means the same file, as long as it is kept open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device number of the file system.
    pub device: u64,
    /// The inode number on it.
    pub inode: u64,
}

/// A time as the file system keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileTime {
    /// Seconds since 1970-01-01 00:00 UTC; negative before.
    pub unix_seconds: i64,
    /// Nanoseconds within that second, 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// The kinds of file that are served, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Regular,
    Directory,
    Symlink,
    Other,
}

/// One `fstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) kind: Kind,
    pub(crate) identity: Identity,
    pub(crate) length_bytes: u64,
    pub(crate) modified: FileTime,
    pub(crate) changed: FileTime,
    /// Whether a name leads to it. Nothing else tells that a file was removed in the very tick in which it was last changed: until
    /// Linux 6.13 the times of files go by ticks, of up to 10 ms.
    pub(crate) has_name: bool,
}

impl Facts {
    pub(crate) fn of(file: impl AsFd) -> Result<Self, Errno> {
        Ok(Self::from_stat(&rustix::fs::fstat(file)?))
    }

    // The widths of these fields differ between architectures and systems; on some the casts do nothing.
    #[allow(clippy::unnecessary_cast)]
    pub(crate) fn from_stat(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::Regular,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::Other,
        };
        Self {
            kind,
            identity: Identity { device: stat.st_dev as u64, inode: stat.st_ino as u64 },
            // No file system reports a negative length for a regular file.
            length_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: FileTime { unix_seconds: stat.st_mtime as i64, nanoseconds: stat.st_mtime_nsec as u32 },
            changed: FileTime { unix_seconds: stat.st_ctime as i64, nanoseconds: stat.st_ctime_nsec as u32 },
            has_name: stat.st_nlink > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_file_is_another_whatever_its_times_say() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "text").unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let before = Facts::of(&file).unwrap();
        std::fs::remove_file(&path).unwrap();
        // As where the times of files go by ticks.
        let removed = Facts { changed: before.changed, ..Facts::of(&file).unwrap() };
        assert_ne!(removed, before);
    }
}
