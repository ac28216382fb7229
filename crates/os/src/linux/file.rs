//! Reads that never wait for a disk.

use crate::file::ResidentRead;
use rustix::io::{Errno, ReadWriteFlags};
use std::{
    fs::File,
    io::{self, IoSliceMut},
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
