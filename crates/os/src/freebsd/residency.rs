//! Which pages of a mapped file are in memory, so that reading them waits for no disk (INV-COLD-1).
//!
//! By default (`vm.mincore_mapped=1`) `mincore` tells of a page that this process has not entered into its page table only
//! that it is not there: a false alarm, never a false comfort. `MADV_WILLNEED` enters pages that are in memory, and starts no disk
//! (`vm_map_madvise`, `vm_map_pmap_enter`, sys/vm/vm_map.c). So it comes first. Neither needs a privilege.
//!
//! ZFS keeps what it has read in a cache of its own (the ARC): reading a file that is not there brings no page of a mapping into
//! memory, and a wait for that would never end. So only file systems are asked about whose reads go through the pages
//! that mappings show.

use std::{fs::File, io};

/// What tells which pages are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Witness;

impl Witness {
    /// The one that answers truthfully for a file; `None` where a read does not bring pages of a mapping into memory.
    pub(crate) fn of(file: &File) -> Option<Self> {
        const READ_BY_PAGES: [&[u8]; 3] = [b"ufs", b"tmpfs", b"msdosfs"];
        let about = rustix::fs::fstatfs(file).ok()?;
        let name = about.f_fstypename.map(libc::c_char::cast_unsigned);
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        READ_BY_PAGES.contains(&name).then_some(Self)
    }

    /// Whether all of `length_bytes` from `start` on, an address in a mapping of a file, are in memory. Both are multiples of a
    /// page. `scratch` is reused memory.
    pub(crate) fn all_are_resident(
        self,
        _: &File,
        start: usize,
        length_bytes: usize,
        _: u64,
        scratch: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let pages = length_bytes.div_ceil(rustix::param::page_size());
        scratch.clear();
        scratch.resize(pages, 0);
        // SAFETY: the advice changes neither the content of a mapping nor what else is mapped; a range that is not mapped is an
        // error, and nothing else.
        if unsafe { libc::madvise(start as *mut _, length_bytes, libc::MADV_WILLNEED) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: mincore only reads the range's page tables, and `scratch` has a byte for each of its pages. A range that is
        // not mapped is an error, and nothing else.
        if unsafe { libc::mincore(start as *mut _, length_bytes, scratch.as_mut_ptr().cast()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(scratch.iter().all(|&page| libc::c_int::from(page) & libc::MINCORE_INCORE != 0))
    }
}
