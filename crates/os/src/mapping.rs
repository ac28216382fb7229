//! Files mapped into memory, kept while they are hot, and safe against being truncated.
//!
//! Reading a page that a truncation took away raises SIGBUS. A handler puts zero pages there, so that the reader goes
//! on, and marks the mapping as broken. The reader must ask [`Mapping::is_broken`] *after* reading and *before* anything
//! made from the bytes leaves the process (INV-FILE-2). A truncation inside a page raises no signal but
//! shows zeros: that is why the engine also compares the file's length after reading.

mod slot;

use self::slot::Slot;
use crate::{
    sync::{AtomicBool, AtomicUsize},
    system::{mapping::RESERVES_NOTHING, residency::Witness},
};
use rustix::{
    io::Errno,
    mm::{MapFlags, ProtFlags},
};
use std::{fs::File, io, ops::Range, ptr, sync::OnceLock};

/// How many mappings a process can hold at once; the handler looks through all of them, so the table is bounded.
const SLOTS: usize = 4096;

static TABLE: [Slot; SLOTS] =
    [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), broken: AtomicBool::new(false) } };
        SLOTS];

/// The action that stood for SIGBUS before ours, to give others' faults back to.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A whole file, mapped read-only and shared.
#[derive(Debug)]
pub struct Mapping {
    start: usize,
    length_bytes: usize,
    slot: usize,
    witness: Witness,
}

impl Mapping {
    /// Maps the first `length_bytes` of `file`. Touches no page.
    ///
    /// # Errors
    /// The kernel's, [`io::ErrorKind::InvalidInput`] for no bytes at all, [`io::ErrorKind::Unsupported`] where the
    /// process cannot learn which pages are in memory, and [`io::ErrorKind::QuotaExceeded`] when the process holds as many mappings as
    /// it may.
    pub fn new(file: &File, length_bytes: u64) -> io::Result<Self> {
        install_handler()?;
        let length_bytes = usize::try_from(length_bytes)
            .ok()
            .filter(|&length| length > 0 && length < usize::MAX / 2)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let witness = Witness::of(file).ok_or(io::ErrorKind::Unsupported)?;
        let slot = claim_slot().ok_or(io::ErrorKind::QuotaExceeded)?;
        // SAFETY: a null hint lets the kernel choose an address nobody uses; nothing existing is replaced.
        let mapped = unsafe {
            rustix::mm::mmap(ptr::null_mut(), length_bytes, ProtFlags::READ, MapFlags::SHARED, file, 0)
        };
        let start = match mapped {
            Ok(address) => address as usize,
            Err(error) => {
                TABLE[slot].release();
                return Err(error.into());
            }
        };
        TABLE[slot].publish(start..start + length_bytes);
        Ok(Self { start, length_bytes, slot, witness })
    }

    /// Length in bytes.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Whether every page of `range` is in memory, so that reading it waits for no disk. `file` is what was mapped;
    /// `scratch` is reused memory.
    ///
    /// # Errors
    /// The kernel's.
    pub fn is_resident(&self, file: &File, range: Range<usize>, scratch: &mut Vec<u8>) -> io::Result<bool> {
        let (start, length) = self.pages(&range);
        let offset = (start - self.start) as u64;
        self.witness.all_are_resident(file, start, length, offset, scratch)
    }

    /// The bytes of `range`, clamped to the mapping.
    ///
    /// Another process can change them at any time. Hand them to code that reads each byte once and trusts none, as
    /// the cipher does; never parse them.
    #[must_use]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        let end = range.end.min(self.length_bytes);
        let start = range.start.min(end);
        // SAFETY: start..end lies in the mapping, which lives as long as `self`. Pages that vanish are replaced with
        // zeros by the SIGBUS handler, so every read succeeds. The bytes may change under the reference: the contract
        // above confines that to readers for whom any value is acceptable.
        unsafe { std::slice::from_raw_parts((self.start as *const u8).add(start), end - start) }
    }

    /// Whether a page was found missing since the file was mapped. Ask after reading, before sending.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        TABLE[self.slot].is_broken()
    }

    /// The page-aligned start and the length in bytes of what `range` touches.
    fn pages(&self, range: &Range<usize>) -> (usize, usize) {
        let end = range.end.min(self.length_bytes);
        let start = range.start.min(end);
        let aligned = start & !(rustix::param::page_size() - 1);
        (self.start + aligned, end - aligned)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        TABLE[self.slot].release_and(|| {
            // SAFETY: exactly our own mapping; no reference into it outlives `self`.
            let unmapped = unsafe { rustix::mm::munmap(self.start as *mut _, self.length_bytes) };
            debug_assert!(unmapped.is_ok());
        });
    }
}

fn claim_slot() -> Option<usize> {
    TABLE.iter().position(Slot::claim)
}

/// Installs the handler, once for the process.
fn install_handler() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), Errno>> = OnceLock::new();
    (*INSTALLED.get_or_init(|| {
        // SAFETY: both structures are plain data that sigaction fills or reads; the handler has the signature that
        // SA_SIGINFO asks for and calls nothing that is unsafe in a signal handler. SA_ONSTACK keeps Rust's own
        // overflow detection, which uses the alternate stack, working when the fault is handed back to it.
        unsafe {
            let mut previous: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), &mut previous) != 0 {
                return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL));
            }
            // Set before the handler can run, so that it always finds it.
            let _ = PREVIOUS.set(previous);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as extern "C" fn(_, _, _) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            if libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) != 0 {
                return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL));
            }
        }
        Ok(())
    }))?;
    Ok(())
}

/// Runs on the thread that touched a page without a file behind it. Only atomics and system calls: both are safe here.
extern "C" fn on_bus_error(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler, and SIGBUS fills si_addr.
    let address = unsafe { (*info).si_addr() } as usize;
    if !patch(address) {
        // Not ours: put the old action back and return; the instruction faults again and meets it.
        if let Some(previous) = PREVIOUS.get() {
            // SAFETY: `previous` is what the kernel gave us.
            unsafe { libc::sigaction(libc::SIGBUS, previous, ptr::null_mut()) };
        }
    }
}

/// Puts zero pages from `address` to the end of the mapping it lies in. False if it lies in none of ours.
fn patch(address: usize) -> bool {
    for slot in &TABLE {
        let Some(end) = slot.end_if_covering(address) else { continue };
        slot.mark_broken();
        let page = address & !(rustix::param::page_size() - 1);
        // SAFETY: replaces the rest of our own mapping, which stays mapped throughout: references into it stay valid.
        let replaced = unsafe {
            rustix::mm::mmap_anonymous(
                page as *mut _,
                end - page,
                ProtFlags::READ,
                MapFlags::PRIVATE | MapFlags::FIXED | RESERVES_NOTHING,
            )
        };
        return replaced.is_ok();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file_of(bytes: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("linerate-mapping-{}-{:p}", std::process::id(), bytes));
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .expect("a temporary file");
        std::fs::remove_file(&path).expect("its name can go");
        file.write_all(bytes).expect("room for it");
        file
    }

    #[test]
    fn bytes_are_the_files() {
        let content: Vec<u8> = (0..100_003u32).map(|number| (number % 251) as u8).collect();
        let file = file_of(&content);
        let mapping = Mapping::new(&file, content.len() as u64).expect("mapped");
        for (start, end) in [(0, 1), (4095, 4097), (65_535, 100_003), (100_002, 100_003), (100_003, 100_003)]
        {
            assert_eq!(mapping.bytes(start..end), &content[start..end]);
        }
        assert_eq!(mapping.bytes(100_000..200_000), &content[100_000..], "clamped");
        assert!(mapping.is_resident(&file, 1..99_999, &mut Vec::new()).expect("told"));
        assert!(!mapping.is_broken());
    }

    /// INV-FILE-2: a truncated file never kills the process, and is never mistaken for a whole one.
    #[test]
    fn a_truncated_file_marks_its_mapping_broken() {
        let file = file_of(&vec![7; 1 << 20]);
        let other = file_of(&vec![9; 1 << 16]);
        let mapping = Mapping::new(&file, 1 << 20).expect("mapped");
        let untouched = Mapping::new(&other, 1 << 16).expect("mapped");
        file.set_len(8192).expect("truncated");
        assert!(mapping.bytes(0..8192).iter().all(|&byte| byte == 7));
        assert!(!mapping.is_broken());
        assert!(mapping.bytes(8000..600_000)[192..].iter().all(|&byte| byte == 0), "zeros, no crash");
        assert!(mapping.is_broken());
        assert!(untouched.bytes(0..1 << 16).iter().all(|&byte| byte == 9));
        assert!(!untouched.is_broken(), "no other mapping is blamed");
    }

    #[test]
    fn threads_can_share_a_mapping_that_breaks() {
        let file = file_of(&vec![1; 4 << 20]);
        let mapping = Mapping::new(&file, 4 << 20).expect("mapped");
        file.set_len(0).expect("truncated");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let mapping = &mapping;
                scope.spawn(move || {
                    let part = thread << 20..(thread + 1) << 20;
                    assert!(mapping.bytes(part).iter().all(|&byte| byte == 0));
                    assert!(mapping.is_broken());
                });
            }
        });
    }

    #[test]
    fn slots_are_given_back() {
        let file = file_of(&[1; 4096]);
        for _ in 0..2 * SLOTS {
            Mapping::new(&file, 4096).expect("a slot is free again");
        }
    }

    #[test]
    fn an_empty_file_is_not_mapped() {
        assert!(Mapping::new(&file_of(&[]), 0).is_err());
    }
}
