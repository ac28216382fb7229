//! What is sent: a file in memory, to be read, and a mapping of it.

use std::{io, rc::Rc};

use linerate_engine::source::OpenFile;
use linerate_os::file;

/// Larger than most caches of level 2: a transfer's source comes from level 3 or memory, as a server's does.
pub(crate) const CONTENT_BYTES: usize = 32 << 20;

/// One thread's.
pub(crate) struct Content {
    /// As a server has small files, and all that the kernel engine sends.
    pub(crate) file: Rc<OpenFile>,
    /// As a server has large ones for the user engine.
    pub(crate) mapped: Rc<OpenFile>,
}

impl Content {
    pub(crate) fn new() -> io::Result<Self> {
        let pattern: Vec<u8> = (0..CONTENT_BYTES as u64)
            .map(|index| (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
            .collect();
        let file = file::in_memory(&pattern)?;
        Ok(Self { mapped: OpenFile::mapped(file.try_clone()?)?, file: OpenFile::of(file)? })
    }
}
