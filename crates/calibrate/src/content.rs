//! What is sent: a file in memory, and a mapping of it.

use std::{fs::File, io};

use linerate_os::{file, mapping::Mapping};

/// Larger than most caches of level 2: a transfer's source comes from level 3 or memory, as a server's does.
pub(crate) const CONTENT_BYTES: usize = 32 << 20;

pub(crate) struct Content {
    pub(crate) file: File,
    pub(crate) mapping: Mapping,
}

impl Content {
    pub(crate) fn new() -> io::Result<Self> {
        let pattern: Vec<u8> = (0..CONTENT_BYTES as u64)
            .map(|index| (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
            .collect();
        let file = file::in_memory(&pattern)?;
        let mapping = Mapping::new(&file, CONTENT_BYTES as u64)?;
        Ok(Self { file, mapping })
    }
}
