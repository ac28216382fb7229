//! Which pages of a mapped file are in memory, so that reading them waits for no disk (INV-COLD-1).
//!
//! `mincore` answers truthfully only to a process that owns the file, may write to it, or is root (`can_do_mincore` in
//! mm/mincore.c). To others it reports every page as resident; `cachestat` has the same rule. Any process may read its own
//! page table (`/proc/self/pagemap`): a page that leaves memory leaves the table, too. A page that is in memory and not in
//! the table yet is found by a read that must not wait, and then entered.

use crate::file::{ResidentRead, read_resident};
use rustix::{io::Errno, mm::Advice};
use std::{
    fs::File,
    io::{self, IoSliceMut},
    ops::Range,
    os::unix::fs::FileExt,
    sync::OnceLock,
};

/// Bytes that `/proc/self/pagemap` has for each page, and the bit in them that says "present" (Documentation/admin-guide/
/// mm/pagemap.rst). Without privileges it tells this and not where the page is.
const ENTRY_BYTES: usize = 8;
const PRESENT: u64 = 1 << 63;

/// What tells which pages are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Witness {
    /// `mincore`.
    Mincore,
    /// The page table, and reads that must not wait.
    PageTable,
}

impl Witness {
    /// The one that answers truthfully for `file`; `None` if neither does.
    pub(crate) fn of(file: &File) -> Option<Self> {
        if mincore_is_true(file) {
            return Some(Self::Mincore);
        }
        let can_probe = || {
            let probe = read_resident(file, &mut [IoSliceMut::new(&mut [0])], 0);
            probe.is_ok_and(|read| read != ResidentRead::Unsupported)
        };
        (page_table().is_some() && can_probe()).then_some(Self::PageTable)
    }

    /// Whether all of `length_bytes` from `start` on, an address in a mapping of `file` whose offset there is `offset`,
    /// are in memory. Both are multiples of a page. `scratch` is reused memory.
    pub(crate) fn all_are_resident(
        self,
        file: &File,
        start: usize,
        length_bytes: usize,
        offset: u64,
        scratch: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let pages = length_bytes.div_ceil(rustix::param::page_size());
        scratch.clear();
        match self {
            Self::Mincore => {
                scratch.resize(pages, 0);
                // SAFETY: mincore only reads the range's page tables, and `scratch` has a byte for each of its pages. A range
                // that is not mapped is an error, and nothing else.
                if unsafe { libc::mincore(start as *mut _, length_bytes, scratch.as_mut_ptr()) } != 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(scratch.iter().all(|page| page & 1 == 1))
            }
            Self::PageTable => {
                let missing = missing_pages(start, pages, scratch)?;
                if missing.is_empty() {
                    return Ok(true);
                }
                if !are_cached(file, offset, missing.clone())? {
                    return Ok(false);
                }
                enter(start, missing)
            }
        }
    }
}

/// Whether `mincore` tells the truth about `file`.
fn mincore_is_true(file: &File) -> bool {
    let Ok(status) = rustix::fs::fstat(file) else { return false };
    let user = rustix::process::geteuid();
    if user.is_root() || status.st_uid == user.as_raw() {
        return true;
    }
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK) == Ok(())
}

/// The process' page table, opened once; `None` where there is no `/proc`, or it may not be read.
fn page_table() -> Option<&'static File> {
    static OPENED: OnceLock<Option<File>> = OnceLock::new();
    OPENED.get_or_init(|| File::open("/proc/self/pagemap").ok()).as_ref()
}

/// From the first page to the last that is not in the page table, counted from `start`.
fn missing_pages(start: usize, pages: usize, scratch: &mut Vec<u8>) -> io::Result<Range<usize>> {
    let table = page_table().ok_or(io::ErrorKind::Unsupported)?;
    scratch.resize(pages * ENTRY_BYTES, 0);
    table.read_exact_at(scratch, (start / rustix::param::page_size() * ENTRY_BYTES) as u64)?;
    let is_missing = |entry: &[u8]| {
        let entry = entry.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        entry & PRESENT == 0
    };
    let first = scratch.chunks(ENTRY_BYTES).position(is_missing);
    let last = scratch.chunks(ENTRY_BYTES).rposition(is_missing);
    Ok(first.zip(last).map_or(0..0, |(first, last)| first..last + 1))
}

/// Whether these pages of `file`, counted from `offset`, are in the page cache: one byte of each is read. False for those
/// behind its end, too.
fn are_cached(file: &File, offset: u64, pages: Range<usize>) -> io::Result<bool> {
    for page in pages {
        let position = offset + (page * rustix::param::page_size()) as u64;
        let read = read_resident(file, &mut [IoSliceMut::new(&mut [0])], position)?;
        if read != ResidentRead::Bytes(1) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Enters pages that are in the page cache into the page table. Where the system has no call for it (before Linux 5.14)
/// the reader's own page faults do it.
fn enter(start: usize, pages: Range<usize>) -> io::Result<bool> {
    let page_bytes = rustix::param::page_size();
    let address = (start + pages.start * page_bytes) as *mut _;
    // SAFETY: populating a mapping changes neither its content nor what else is mapped; a range that is not mapped is an
    // error, and nothing else.
    match unsafe { rustix::mm::madvise(address, pages.len() * page_bytes, Advice::LinuxPopulateRead) } {
        Ok(()) | Err(Errno::INVAL) => Ok(true),
        // The file was cut short in this moment.
        Err(Errno::FAULT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Mapping;
    use rustix::fs::{Advice as FileAdvice, fadvise};
    use std::path::PathBuf;

    const LENGTH_BYTES: usize = (1 << 20) + 77;

    /// A file on a file system that can forget it, and its path. The build folder is on one more often than /tmp, but may be an
    /// overlay, whose reads cannot be asked not to wait.
    fn file() -> (File, PathBuf) {
        let program = std::env::current_exe().expect("its own path");
        let name = format!("residency-{}-{:?}", std::process::id(), std::thread::current().id());
        let at = |path: PathBuf| {
            std::fs::write(&path, vec![5; LENGTH_BYTES]).expect("room for it");
            let file = File::open(&path).expect("it opens");
            rustix::fs::fsync(&file).expect("it is written");
            (file, path)
        };
        let (file, path) = at(program.with_file_name(&name));
        match read_resident(&file, &mut [IoSliceMut::new(&mut [0])], 0) {
            Ok(ResidentRead::Unsupported) => {
                std::fs::remove_file(path).expect("it was there");
                at(std::env::temp_dir().join(name))
            }
            _ => (file, path),
        }
    }

    fn is_resident(witness: Witness, file: &File, mapping: &Mapping, range: Range<usize>) -> bool {
        let start = mapping.bytes(range.start..range.start + 1).as_ptr() as usize;
        witness.all_are_resident(file, start, range.len(), range.start as u64, &mut Vec::new()).unwrap()
    }

    /// A machine that is short of memory may take pages away between reading them and looking.
    fn comes_true(mut holds: impl FnMut() -> bool) -> bool {
        (0..50).any(|_| holds())
    }

    #[test]
    fn both_witnesses_tell_the_same_of_pages_that_come_and_go() {
        let (file, path) = file();
        fadvise(&file, 0, None, FileAdvice::Random).unwrap();
        let mapping = Mapping::new(&file, LENGTH_BYTES as u64).unwrap();
        for round in 0..3 {
            fadvise(&file, 0, None, FileAdvice::DontNeed).unwrap();
            let probe = read_resident(&file, &mut [IoSliceMut::new(&mut [0])], 512 << 10).unwrap();
            if round == 0 && probe != ResidentRead::WouldWait {
                println!(
                    "SKIPPED both_witnesses_tell_the_same_of_pages_that_come_and_go: files beside the test stay in memory"
                );
                break;
            }
            for witness in [Witness::PageTable, Witness::Mincore] {
                assert!(!is_resident(witness, &file, &mapping, 0..LENGTH_BYTES), "{witness:?}");
            }
            // One page in the middle, read by another way than the mapping.
            for witness in [Witness::PageTable, Witness::Mincore] {
                let one_comes = comes_true(|| {
                    crate::file::read_waiting(&file, &mut [IoSliceMut::new(&mut [0])], 256 << 10).unwrap();
                    is_resident(witness, &file, &mapping, 256 << 10..(256 << 10) + 4096)
                });
                assert!(one_comes, "{witness:?}");
                assert!(!is_resident(witness, &file, &mapping, 0..LENGTH_BYTES), "{witness:?}");
            }
            for witness in [Witness::PageTable, Witness::Mincore] {
                let all_come = comes_true(|| {
                    crate::file::read_ahead(&file, 0, LENGTH_BYTES as u64).unwrap();
                    is_resident(witness, &file, &mapping, 0..LENGTH_BYTES)
                });
                assert!(all_come, "{witness:?}");
            }
            let page_size = rustix::param::page_size();
            let entered = missing_pages(
                mapping.bytes(0..1).as_ptr() as usize,
                LENGTH_BYTES.div_ceil(page_size),
                &mut Vec::new(),
            );
            assert!(entered.unwrap().is_empty(), "asked once, they stand in the page table");
            // So that they can leave again: what is mapped stays.
            // SAFETY: the mapping's own pages; they are read anew from the file when they are touched again.
            unsafe {
                let start = mapping.bytes(0..1).as_ptr() as *mut _;
                rustix::mm::madvise(start, LENGTH_BYTES.next_multiple_of(page_size), Advice::LinuxDontNeed)
                    .unwrap();
            }
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn pages_behind_the_end_are_not_there() {
        let (file, path) = file();
        let mapping = Mapping::new(&file, LENGTH_BYTES as u64).unwrap();
        assert!(is_resident(Witness::PageTable, &file, &mapping, 0..LENGTH_BYTES));
        File::options().write(true).open(&path).unwrap().set_len(8192).unwrap();
        assert!(is_resident(Witness::PageTable, &file, &mapping, 0..8192));
        assert!(!is_resident(Witness::PageTable, &file, &mapping, 0..LENGTH_BYTES));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_owner_asks_mincore() {
        let (file, path) = file();
        assert_eq!(Witness::of(&file), Some(Witness::Mincore));
        std::fs::remove_file(path).unwrap();
    }
}
