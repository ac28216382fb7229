//! Reads that never wait for a disk: FreeBSD has none.

use crate::file::ResidentRead;
use std::{
    fs::File,
    io::{self, IoSliceMut},
};

/// No call of FreeBSD reads only what is in memory (INV-COLD-1): every read is one that may wait.
///
/// # Errors
/// None.
pub fn read_resident(_: &File, _: &mut [IoSliceMut<'_>], _: u64) -> io::Result<ResidentRead> {
    Ok(ResidentRead::Unsupported)
}

/// No call of FreeBSD brings a file's pages into memory and waits for them without a copy: nothing passes, and all is read.
pub(crate) fn pass_by(_: &File, _: u64, _: u64) -> u64 {
    0
}
