//! A file that is open for reading.

use crate::{attributes::Facts, reading_order::ReadingOrder};
use rustix::{
    fd::{AsRawFd, BorrowedFd},
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};
use std::{
    fs::File,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A regular file of an export, open for reading. Shared by all replies that send ranges of it.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    reading: Mutex<ReadingOrder>,
}

impl OpenFile {
    /// Opens what the `O_PATH` descriptor `object` refers to, whatever it is called by now. To be asked of regular files
    /// alone: nothing else can be opened without consequences.
    pub(crate) fn of(object: BorrowedFd<'_>) -> Result<Self, Errno> {
        let path = descriptor_path(object);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, path.as_str(), flags, Mode::empty())?);
        debug_assert!(
            Facts::of(&file).map(|facts| facts.inode) == Facts::of(object).map(|facts| facts.inode)
        );
        Ok(Self { file, reading: Mutex::default() })
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// In what order clients read it, over whichever connections.
    pub fn reading_order(&self) -> MutexGuard<'_, ReadingOrder> {
        // It is no more than a guess: one that another thread left half made does no harm.
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The path by which the kernel leads to what a descriptor refers to.
pub(crate) fn descriptor_path(object: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", object.as_raw_fd())
}
