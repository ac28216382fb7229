//! A file that a reply sends a range of.

use super::mappings::Mappings;
use crate::{mapped_bytes::Share, workplace::Workplace};
use linerate_engine::source::Source;
use linerate_export::OpenFile;
use linerate_os::{file::Stamp, mapping::Mapping};
use std::{fs::File, io, rc::Rc, sync::Arc};

/// A file as a READ found it. The protocol promises nothing about files that others write to: only one that is cut short under
/// its reply, whose length was announced, ends the connection (INV-FILE-1). The client then asks again.
pub(super) struct ReadSource {
    file: Arc<OpenFile>,
    announced: Stamp,
    mapped: Option<Rc<Mapped>>,
}

/// All of a file, mapped, and the part of the worker's budget that this takes.
#[derive(Debug)]
pub(crate) struct Mapped {
    mapping: Mapping,
    length_bytes: u64,
    _share: Share,
}

impl Mapped {
    pub(super) fn new(file: &File, length_bytes: u64, share: Share) -> io::Result<Self> {
        Ok(Self { mapping: Mapping::new(file, length_bytes)?, length_bytes, _share: share })
    }

    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(super) fn length_bytes(&self) -> u64 {
        self.length_bytes
    }
}

impl ReadSource {
    /// As it is now, for a range up to `end`. `mappings`, where records are sealed by this process: from them, if the file is
    /// mapped or may be.
    pub(super) fn of(
        file: Arc<OpenFile>,
        end: u64,
        mappings: Option<(&Mappings, &Workplace)>,
    ) -> io::Result<Rc<Self>> {
        let announced = Stamp::of(file.file())?;
        let mapped = mappings.and_then(|(mappings, workplace)| mappings.of(&file, &announced, workplace));
        // A file may have been cut short since its length was told. Reading finds that out.
        let mapped = mapped.filter(|mapped| end <= mapped.length_bytes());
        Ok(Rc::new(Self { file, announced, mapped }))
    }
}

impl Source for ReadSource {
    fn file(&self) -> &File {
        self.file.file()
    }

    fn announced(&self) -> &Stamp {
        &self.announced
    }

    fn mapping(&self) -> Option<&Mapping> {
        self.mapped.as_ref().map(|mapped| mapped.mapping())
    }

    fn may_be_overwritten(&self) -> bool {
        true
    }
}
