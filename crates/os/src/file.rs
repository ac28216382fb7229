//! Reads at an offset that fill several buffers at once: those that never wait for a disk, and those that may. And files
//! that are appended to.

use crate::system::file::pass_by;
pub use crate::system::file::read_resident;

use rustix::{fs::OFlags, io::Errno};
use std::{
    fs::File,
    io::{self, IoSliceMut},
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

/// Brings `length_bytes` from `offset` into the page cache: for a thread that may wait for the disk. Less where the file ends.
///
/// It asks for as much at a time as it can and reads in order: then the kernel asks the disk in large pieces, ahead of the
/// reader, and keeps what comes in folios of many pages where the file system has them, so that everything that is done for
/// each folio afterwards is cheap as well. Advice (`POSIX_FADV_WILLNEED`) would make a folio of each page.
///
/// # Errors
/// The kernel's.
pub fn read_ahead(file: &File, offset: u64, length_bytes: u64) -> io::Result<()> {
    let end = offset.saturating_add(length_bytes);
    let passed_bytes = pass_by(file, offset, length_bytes);
    if passed_bytes == length_bytes {
        return Ok(());
    }
    // The end of the file, or a file system or process that has no such call; and errors of the disk are told here.
    let mut position = offset.saturating_add(passed_bytes);
    let mut scratch = vec![0; usize::try_from(end - position).unwrap_or(usize::MAX).min(READ_BYTES)];
    while position < end {
        let wanted = scratch.len().min(usize::try_from(end - position).unwrap_or(usize::MAX));
        let read = read_waiting(file, &mut [IoSliceMut::new(&mut scratch[..wanted])], position)?;
        if read == 0 {
            break;
        }
        position += read as u64;
    }
    Ok(())
}

/// The most that is read at a time: from this size on the kernel asks the disk for all of it at once.
const READ_BYTES: usize = 1 << 20;

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
        read_ahead(&file, 3, 1 << 20).expect("read ahead past the end is fine");
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
