//! Where the bytes of a response's file come from: the page cache by `pread`, or a mapping that is kept.

use linerate_os::{
    file::{ResidentRead, read_resident, read_waiting},
    mapping::Mapping,
};
use std::{
    fs::File,
    io::{self, IoSliceMut},
    ops::Range,
};

/// The file behind a response.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The file.
    pub file: &'a File,
    /// Present for a hot file: read from here instead.
    pub mapping: Option<&'a Mapping>,
}

/// How far a read got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// All that was asked for.
    Whole,
    /// So many bytes, then the page cache has a gap: the rest has to be fetched where waiting is allowed.
    Until(usize),
    /// So many bytes, then the file ends, earlier than it did when the response began (INV-FILE-1).
    Truncated(usize),
}

/// Fills `buffers` from `offset` on without waiting for a disk.
pub fn read(file: &File, mut buffers: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<Read> {
    let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
    let mut done = 0;
    while done < wanted {
        let position = offset + done as u64;
        let bytes = match read_resident(file, buffers, position)? {
            ResidentRead::Bytes(bytes) => bytes,
            ResidentRead::WouldWait => return Ok(Read::Until(done)),
            // Where the kernel can't tell (some FUSE and network file systems) the read itself is the only way.
            ResidentRead::Unsupported => read_waiting(file, buffers, position)?,
        };
        if bytes == 0 {
            return Ok(Read::Truncated(done));
        }
        done += bytes;
        IoSliceMut::advance_slices(&mut buffers, bytes);
    }
    Ok(Read::Whole)
}

/// Whether all of `range` is still part of the file and of its mapping: asked after sealing from a mapping and before
/// sending, because a truncated page reads as zeros (INV-FILE-2).
pub fn is_whole(source: &Source<'_>, mapping: &Mapping, end: u64) -> bool {
    !mapping.is_broken() && source.file.metadata().is_ok_and(|status| status.len() >= end)
}

/// Clamps a range of file offsets to what a mapping can hold.
pub fn in_memory(range: &Range<u64>) -> Range<usize> {
    // Mappings are made of whole files whose length fit usize; larger offsets are clamped by the mapping itself.
    let clamp = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    clamp(range.start)..clamp(range.end)
}
