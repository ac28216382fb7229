//! Reads that never wait for a disk, and those that bring bytes into memory without a copy.

use crate::file::ResidentRead;
use rustix::{
    io::{Errno, ReadWriteFlags},
    pipe::{PipeFlags, SpliceFlags},
};
use std::{
    fs::File,
    io::{self, IoSliceMut},
    sync::OnceLock,
};

/// Reads from `offset` into `buffers` what the page cache holds (`preadv2` with `RWF_NOWAIT`, Linux 4.14; INV-COLD-1).
///
/// # Errors
/// The kernel's.
pub fn read_resident(file: &File, buffers: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<ResidentRead> {
    loop {
        return match rustix::io::preadv2(file, buffers, offset, ReadWriteFlags::NOWAIT) {
            Ok(bytes) => Ok(ResidentRead::Bytes(bytes)),
            Err(Errno::AGAIN) => Ok(ResidentRead::WouldWait),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(ResidentRead::Unsupported),
            Err(Errno::INTR) => continue,
            Err(error) => Err(error.into()),
        };
    }
}

/// What a pipe is asked to hold: all that the kernel lets anybody have by default (`/proc/sys/fs/pipe-max-size`).
const PIPE_BYTES: usize = 1 << 20;

/// Brings up to `length_bytes` from `offset` into the page cache: pages go through a pipe to `/dev/null`, and nobody copies
/// them (`splice`). Returns how many bytes came. Fewer are no error: at the file's end, where a file system has no such
/// call, without a descriptor, or where the disk fails, which the read behind it tells.
pub(crate) fn pass_by(file: &File, offset: u64, length_bytes: u64) -> u64 {
    /// Opened once. A process without the device has none for ever.
    static NOWHERE: OnceLock<Option<File>> = OnceLock::new();
    let Some(nowhere) = NOWHERE.get_or_init(|| File::options().write(true).open("/dev/null").ok()) else {
        return 0;
    };
    let Ok((outlet, inlet)) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC) else { return 0 };
    // A user with many pipes gets small ones: more calls, and nothing else.
    let _ = rustix::pipe::fcntl_setpipe_size(&inlet, PIPE_BYTES);
    let mut passed_bytes = 0;
    while passed_bytes < length_bytes {
        let mut position = offset.saturating_add(passed_bytes);
        let wanted = usize::try_from(length_bytes - passed_bytes).unwrap_or(usize::MAX).min(PIPE_BYTES);
        let entered =
            match rustix::pipe::splice(file, Some(&mut position), &inlet, None, wanted, SpliceFlags::empty())
            {
                Ok(0) => break,
                Ok(entered) => entered,
                Err(Errno::INTR) => continue,
                Err(_) => break,
            };
        let mut left = entered;
        while left > 0 {
            match rustix::pipe::splice(&outlet, None, nowhere, None, left, SpliceFlags::empty()) {
                Ok(gone) if gone > 0 => left -= gone.min(left),
                Err(Errno::INTR) => {}
                // What is in the pipe is in memory; the pipe itself is of no more use.
                _ => return passed_bytes.saturating_add(entered as u64),
            }
        }
        passed_bytes += entered as u64;
    }
    passed_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_passes_ends_with_the_file() {
        let path = std::env::temp_dir().join(format!("linerate-pass-by-{}", std::process::id()));
        let length_bytes = 3 * PIPE_BYTES as u64 + 4097;
        File::create(&path)
            .and_then(|mut file| file.write_all(&vec![7; 3 * PIPE_BYTES + 4097]))
            .expect("a temporary file");
        let file = File::open(&path).expect("it opens");
        std::fs::remove_file(&path).expect("its name can go");
        for (offset, wanted, passed) in [
            (0, length_bytes, length_bytes),
            (4095, 4098, 4098),
            (1, u64::MAX, length_bytes - 1),
            (length_bytes, 1, 0),
            (u64::MAX, 1, 0),
        ] {
            assert_eq!(pass_by(&file, offset, wanted), passed, "{wanted} from {offset}");
        }
    }

    #[test]
    fn what_cannot_be_spliced_passes_nothing() {
        let folder = File::open(std::env::temp_dir()).expect("it opens");
        assert_eq!(pass_by(&folder, 0, 4096), 0);
        assert!(crate::file::read_ahead(&folder, 0, 4096).is_err(), "the read tells");
    }
}
