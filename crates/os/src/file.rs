//! Reads at an offset that fill several buffers at once: those that never wait for a disk, and those that may. And files
//! that are appended to.

pub use crate::system::file::read_resident;

use rustix::{
    fs::{Advice, OFlags},
    io::Errno,
};
use std::{
    fs::File,
    io::{self, IoSliceMut},
    num::NonZeroU64,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::{Duration, SystemTime},
};

/// Opens a file for appending; made if need be. A FIFO that nobody reads is an error ([`is_unread_fifo`]) and not a wait for
/// its reader; writing to one that somebody reads waits for room.
///
/// # Errors
/// The kernel's.
pub fn append_to(path: &Path) -> io::Result<File> {
    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().append(true).create(true).custom_flags(without_waiting).open(path)?;
    if !file.metadata()?.is_file() {
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    }
    Ok(file)
}

/// Whether [`append_to`] found a FIFO that nobody reads.
#[must_use]
pub fn is_unread_fifo(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::NXIO)
}

/// What a read that must not wait found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResidentRead {
    /// So many bytes; less than asked for at the end of the file, or where the page cache has a gap.
    Bytes(usize),
    /// The first page is not in memory: read it where waiting is allowed.
    WouldWait,
    /// This kernel or file system can't tell (`EOPNOTSUPP`): treat every read as one that may wait.
    Unsupported,
}

/// Reads from `offset` into `buffers`, waiting for the disk if it must. Returns the bytes read: 0 at the end.
///
/// # Errors
/// The kernel's.
pub fn read_waiting(file: &File, buffers: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
    loop {
        return match rustix::io::preadv(file, buffers, offset) {
            Err(Errno::INTR) => continue,
            other => Ok(other?),
        };
    }
}

/// What a write to a file changes: its length, and the time of its last modification.
///
/// The kernel stamps a file before it copies the bytes of a write into it. So a stamp that was taken *before* a file was
/// read, and is found again *after* that, says that what was read is what the stamp stands for. It says so as far as the
/// file system's clock goes: Linux 6.13 gives every write after a look another time (multigrain timestamps: ext4, XFS,
/// Btrfs, tmpfs); older kernels, and other file systems, tell only what falls into different ticks, of 1 to 10 ms. The
/// change counter of `statx` would tell all; Linux keeps it to itself (`STATX_CHANGE_COOKIE` is masked in `fs/stat.c`).
///
/// The time of the last *status* change is not in it: renaming, linking, removing, `chmod` and whatever sets times back
/// move that, too, and change no byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The length in bytes.
    pub length_bytes: u64,
    /// When it was last modified, in seconds since 1970; negative before.
    pub modified_unix_s: i64,
    /// Nanoseconds within that second.
    pub modified_nanoseconds: u32,
}

impl Stamp {
    /// The file's stamp now: one `fstat`.
    ///
    /// # Errors
    /// The kernel's; ESTALE on a network file system.
    // The widths of these fields differ between architectures and systems; on some the casts do nothing.
    #[allow(clippy::unnecessary_cast)]
    pub fn of(file: &File) -> io::Result<Self> {
        let status = rustix::fs::fstat(file)?;
        Ok(Self {
            // No file system reports a negative length for a regular file.
            length_bytes: u64::try_from(status.st_size).unwrap_or(0),
            modified_unix_s: status.st_mtime as i64,
            modified_nanoseconds: status.st_mtime_nsec as u32,
        })
    }

    /// When it was last modified; 1970 for a time that the system's clock cannot hold.
    #[must_use]
    pub fn modified(&self) -> SystemTime {
        let seconds = Duration::from_secs(self.modified_unix_s.unsigned_abs());
        let whole = if self.modified_unix_s < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(seconds)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(seconds)
        };
        whole
            .and_then(|time| time.checked_add(Duration::from_nanos(self.modified_nanoseconds.into())))
            .unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// A file that is in memory only and has no name, with this content.
///
/// # Errors
/// The kernel's.
pub fn in_memory(content: &[u8]) -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create("linerate", rustix::fs::MemfdFlags::CLOEXEC)?);
    std::os::unix::fs::FileExt::write_all_at(&file, content, 0)?;
    Ok(file)
}

/// How [`read_ahead`] waits for the bytes it asked the disk for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// Touches a page of each `TOUCH_STEP_BYTES`: nearly free where only a few pages are missing, and enough where
    /// the kernel follows the advice to read it all. A page in between may still be on its way.
    Touch,
    /// Reads every byte: certain, at the price of a copy.
    Read,
}

/// How far apart [`Fetch::Touch`] touches pages.
pub(crate) const TOUCH_STEP_BYTES: u64 = 32 * 1024;

/// Brings `length_bytes` from `offset` into the page cache: for a thread that may wait. `fadvise` starts the disk on
/// all of it at once; the reads then follow it.
///
/// # Errors
/// The kernel's.
pub fn read_ahead(file: &File, offset: u64, length_bytes: u64, fetch: Fetch) -> io::Result<()> {
    // Advice only: where it isn't understood, the reads below do the work alone.
    let _ = rustix::fs::fadvise(file, offset, NonZeroU64::new(length_bytes), Advice::WillNeed);
    let mut scratch = match fetch {
        Fetch::Touch => vec![0; 1],
        Fetch::Read => vec![0; 64 * 1024],
    };
    let mut position = offset;
    let end = offset.saturating_add(length_bytes);
    while position < end {
        let wanted = scratch.len().min(usize::try_from(end - position).unwrap_or(usize::MAX));
        let read = read_waiting(file, &mut [IoSliceMut::new(&mut scratch[..wanted])], position)?;
        if read == 0 {
            break;
        }
        position += match fetch {
            Fetch::Touch => TOUCH_STEP_BYTES,
            Fetch::Read => read as u64,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn buffers_are_filled_in_order_and_short_at_the_end() {
        let path = std::env::temp_dir().join(format!("linerate-file-{}", std::process::id()));
        let content: Vec<u8> = (0..10_001u32).map(|number| (number % 253) as u8).collect();
        File::create(&path).and_then(|mut file| file.write_all(&content)).expect("a temporary file");
        let file = File::open(&path).expect("it opens");
        std::fs::remove_file(&path).expect("its name can go");
        for fetch in [Fetch::Touch, Fetch::Read] {
            read_ahead(&file, 3, 1 << 20, fetch).expect("read ahead past the end is fine");
        }
        let (mut first, mut second) = (vec![0; 4097], vec![0; 8000]);
        let mut buffers = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        let read = match read_resident(&file, &mut buffers, 7).expect("readable") {
            ResidentRead::Bytes(bytes) => bytes,
            // Some file systems of containers can't tell; the waiting read must agree.
            ResidentRead::WouldWait | ResidentRead::Unsupported => {
                read_waiting(&file, &mut buffers, 7).expect("readable")
            }
        };
        assert_eq!(read, content.len() - 7);
        assert_eq!(first, &content[7..7 + 4097]);
        assert_eq!(&second[..read - 4097], &content[7 + 4097..]);
        assert_eq!(read_waiting(&file, &mut [IoSliceMut::new(&mut first)], 10_001).expect("readable"), 0);
    }
}
