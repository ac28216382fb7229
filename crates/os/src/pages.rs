//! Memory in pages of its own, which the kernel may be lent to send from without copying.
//!
//! The kernel keeps the pages that it was lent for as long as it needs them, whatever becomes of the process' mapping of them.
//! Memory of an allocator would be given to somebody else when it is freed, and the kernel would send what is written there
//! then. These pages are unmapped instead: nobody writes to them any more.

use rustix::mm::{MapFlags, ProtFlags};
use std::{
    fmt, io,
    ops::{Deref, DerefMut},
    ptr::{self, NonNull},
};

/// Zeroed memory, whole pages.
pub struct Pages {
    start: NonNull<u8>,
    length_bytes: usize,
}

impl Pages {
    /// At least `least_bytes`, rounded up to whole pages.
    ///
    /// # Errors
    /// The kernel's: no memory, or no address space.
    pub fn new(least_bytes: usize) -> io::Result<Self> {
        let length_bytes = least_bytes
            .max(1)
            .checked_next_multiple_of(rustix::param::page_size())
            .filter(|&length| length < usize::MAX / 2)
            .ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a null hint lets the kernel choose an address that is not in use; nothing existing is replaced.
        let mapped = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                length_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        let start = NonNull::new(mapped.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length_bytes })
    }
}

impl Pages {
    /// The same, for what a program cannot go on without: it ends as it does where an allocation fails.
    #[must_use]
    pub fn allocated(least_bytes: usize) -> Self {
        Self::new(least_bytes).unwrap_or_else(|_| {
            std::alloc::handle_alloc_error(
                std::alloc::Layout::array::<u8>(least_bytes).unwrap_or(std::alloc::Layout::new::<u8>()),
            )
        })
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is readable, zeroed by the kernel, of this length, and lives as long as `self`; it is written to
        // only through an exclusive reference to `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length_bytes) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the reference to `self` is exclusive, and the kernel, where it was lent the pages, only reads.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length_bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: exactly our own mapping, to which no reference outlives `self`.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length_bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

// SAFETY: like a Box<[u8]>, it owns its memory and hands out nothing but plain references to it.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl fmt::Debug for Pages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes in pages", self.length_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_whole_zeroed_and_can_be_written() {
        let page_bytes = rustix::param::page_size();
        for (asked, given) in [(0, page_bytes), (1, page_bytes), (page_bytes + 1, 2 * page_bytes)] {
            let mut pages = Pages::new(asked).unwrap();
            assert_eq!(pages.len(), given);
            assert_eq!(pages.as_ptr() as usize % page_bytes, 0);
            assert!(pages.iter().all(|&byte| byte == 0));
            pages.fill(7);
            assert!(pages.iter().all(|&byte| byte == 7));
        }
        assert!(Pages::new(usize::MAX).is_err());
    }
}
