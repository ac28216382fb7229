//! A file that a reply sends a range of.

use linerate_engine::source::Source;
use linerate_export::OpenFile;
use linerate_os::{file::Stamp, mapping::Mapping};
use std::{fs::File, io, rc::Rc, sync::Arc};

/// A file as a READ found it. The protocol promises nothing about files that others write to: only one that is cut short under
/// its reply, whose length was announced, ends the connection (INV-FILE-1). The client then asks again.
pub(super) struct ReadSource {
    file: Arc<OpenFile>,
    announced: Stamp,
}

impl ReadSource {
    pub(super) fn of(file: Arc<OpenFile>) -> io::Result<Rc<Self>> {
        let announced = Stamp::of(file.file())?;
        Ok(Rc::new(Self { file, announced }))
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
        None
    }

    fn may_be_overwritten(&self) -> bool {
        true
    }
}
