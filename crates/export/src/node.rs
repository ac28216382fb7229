//! An object that was found: a descriptor that refers to it, whatever becomes of its names.

use crate::{
    attributes::Facts,
    export::{Export, fault_of},
    file::OpenFile,
    handle::{Key, ancestor_tag},
    memory::Place,
};
use linerate_nfs::{Fault, Kind};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) export: Arc<Export>,
    pub(crate) key: Key,
    pub(crate) kind: Kind,
    pub(crate) place: Place,
    /// Opened with `O_PATH`: it describes, and leads on, but reads nothing.
    descriptor: OwnedFd,
    /// The same, open for reading, once that was asked for.
    reading: OnceLock<Arc<OpenFile>>,
}

impl Node {
    pub(crate) fn new(
        export: &Arc<Export>,
        key: Key,
        kind: Kind,
        place: Place,
        descriptor: OwnedFd,
    ) -> Arc<Self> {
        Arc::new(Self { export: Arc::clone(export), key, kind, place, descriptor, reading: OnceLock::new() })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// What the kernel says about it now.
    pub(crate) fn facts(&self) -> Result<Facts, Fault> {
        let facts = Facts::of(&self.descriptor).map_err(fault_of)?;
        if facts.links == 0 { Err(Fault::Stale) } else { Ok(facts) }
    }

    /// The file, open for reading. Of a regular file alone.
    pub(crate) fn reading(&self) -> Result<Arc<OpenFile>, Fault> {
        if let Some(open) = self.reading.get() {
            return Ok(Arc::clone(open));
        }
        let open = Arc::new(OpenFile::of(self.descriptor()).map_err(fault_of)?);
        Ok(Arc::clone(self.reading.get_or_init(|| open)))
    }

    /// Takes over what another node of the same object has open.
    pub(crate) fn inherit(&self, last: &Self) {
        if let Some(open) = last.reading.get() {
            // A first one is as good.
            let _ = self.reading.set(Arc::clone(open));
        }
    }

    /// Whether it is the directory that is exported.
    pub(crate) fn is_root(&self) -> bool {
        self.place.path.is_empty()
    }

    /// The tags of the directories above what is in it.
    pub(crate) fn ancestors_of_entries(&self) -> Arc<[u16]> {
        self.tags_above_entries().collect()
    }

    fn tags_above_entries(&self) -> impl Iterator<Item = u16> {
        let own = (!self.is_root()).then(|| ancestor_tag(self.key.inode));
        self.place.ancestors.iter().copied().chain(own)
    }

    /// Whether `place` is that of the entry `name`.
    pub(crate) fn has_at(&self, name: &[u8], place: &Place) -> bool {
        let above = &self.place.path;
        let rest = place.path.strip_prefix(&**above).and_then(|rest| match above.is_empty() {
            true => Some(rest),
            false => rest.strip_prefix(b"/"),
        });
        rest == Some(name) && place.ancestors.iter().copied().eq(self.tags_above_entries())
    }
}
