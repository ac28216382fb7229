//! Where the bytes of a file come from: the page cache by `pread`, or a mapping that is kept.

use linerate_os::{
    file::{ResidentRead, Stamp, read_resident, read_waiting},
    mapping::Mapping,
};
use std::{
    cmp::Ordering,
    fs::File,
    io::{self, IoSliceMut},
    ops::Range,
    rc::Rc,
    time::{Duration, SystemTime},
};

/// How long after its time of modification a file may still become longer by the same write. The kernel sets the time
/// first, then copies the bytes, and sets the length last; a commit of the file system's journal may lie between
/// (mm/filemap.c, `generic_perform_write`; fs/ext4/file.c, `ext4_buffered_write_iter`).
const SETTLING: Duration = Duration::from_millis(50);

/// A file, as a response was made from it.
pub trait Source {
    /// The file.
    fn file(&self) -> &File;
    /// What the response's head was made from.
    fn announced(&self) -> &Stamp;
    /// Present for a hot file: the user engine seals from here instead of reading. The same for the length of a response.
    fn mapping(&self) -> Option<&Mapping>;
    /// Whether each byte is as good as the moment at which it was read, as for a reader of the file itself: then a file that is
    /// overwritten meanwhile counts as unchanged, and only one that is cut short does not.
    fn may_be_overwritten(&self) -> bool {
        false
    }
}

/// A file that is as it was when it was opened for sending.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    announced: Stamp,
    mapping: Option<Mapping>,
}

impl OpenFile {
    /// A file to be read, announced as it is now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of(file: File) -> io::Result<Rc<Self>> {
        let announced = Stamp::of(&file)?;
        Ok(Rc::new(Self { file, announced, mapping: None }))
    }

    /// A file to be sealed from a mapping of all of it, announced as it is now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn mapped(file: File) -> io::Result<Rc<Self>> {
        let announced = Stamp::of(&file)?;
        let mapping = Some(Mapping::new(&file, announced.length_bytes)?);
        Ok(Rc::new(Self { file, announced, mapping }))
    }
}

impl Source for OpenFile {
    fn file(&self) -> &File {
        &self.file
    }

    fn announced(&self) -> &Stamp {
        &self.announced
    }

    fn mapping(&self) -> Option<&Mapping> {
        self.mapping.as_ref()
    }
}

/// What somebody did to a file behind its response: the response cannot be finished (INV-FILE-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It ends at this offset now, earlier than it did when the response began.
    CutShort(u64),
    /// It was written to, and is as long as it was.
    Overwritten,
}

impl dyn Source {
    /// What has become of the file since its response began: to be asked *after* its bytes were read or sealed, *before* they
    /// leave the process ([`Stamp`]). One `fstat`.
    ///
    /// A file that has become longer counts as unchanged: logs and recordings grow while they are served, and what was
    /// announced of them is what it was. One that was overwritten and made longer cannot be told from those.
    /// In the middle of a response a write that has only just begun is not judged yet ([`settled_change_since`]).
    ///
    /// A page of a mapping that was truncated away reads as zeros, which the mapping notes. A page that was truncated in its
    /// middle does, too, which only the file's length tells (INV-FILE-2).
    ///
    /// # Errors
    /// The kernel's.
    pub fn change(&self, moment: Moment) -> io::Result<Option<Change>> {
        let change = match moment {
            Moment::Midway => settled_change_since(self.announced(), self.file())?,
            Moment::AtTheEnd => change_between(self.announced(), &Stamp::of(self.file())?),
        };
        // It may have got its length and its time back since.
        let is_broken = self.mapping().is_some_and(Mapping::is_broken);
        let change = change.filter(|change| *change != Change::Overwritten || !self.may_be_overwritten());
        Ok(change.or(is_broken.then_some(Change::Overwritten)))
    }
}

/// When a response asks what has become of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It will ask again: more of the response follows.
    Midway,
    /// The client takes the response for whole with what leaves next.
    AtTheEnd,
}

/// What has become of `file` since it had the stamp `announced`, if that can be told already: a file that was written to
/// within the last 50 ms, and is as long as it was, may be about to grow: the caller has to ask again.
///
/// # Errors
/// The kernel's.
pub fn settled_change_since(announced: &Stamp, file: &File) -> io::Result<Option<Change>> {
    let now = Stamp::of(file)?;
    let change = change_between(announced, &now);
    let may_be_growing = || {
        // A time in the future was set by somebody, and is no sign of a write.
        SystemTime::now().duration_since(now.modified()).is_ok_and(|since| since < SETTLING)
    };
    Ok(change.filter(|change| *change != Change::Overwritten || !may_be_growing()))
}

fn change_between(announced: &Stamp, now: &Stamp) -> Option<Change> {
    match now.length_bytes.cmp(&announced.length_bytes) {
        Ordering::Less => Some(Change::CutShort(now.length_bytes)),
        Ordering::Equal if now != announced => Some(Change::Overwritten),
        Ordering::Equal | Ordering::Greater => None,
    }
}

/// How far a read got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// All that was asked for.
    Whole,
    /// So many bytes, then the page cache has a gap: the rest has to be fetched where waiting is allowed.
    Until(usize),
    /// So many bytes, then the file ends, earlier than it did when the response began (INV-FILE-1).
    Truncated(usize),
}

/// Fills `buffers` from `offset` on without waiting for a disk.
pub fn read(file: &File, mut buffers: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<Read> {
    let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
    let mut done = 0;
    while done < wanted {
        let position = offset + done as u64;
        let bytes = match read_resident(file, buffers, position)? {
            ResidentRead::Bytes(bytes) => bytes,
            ResidentRead::WouldWait => return Ok(Read::Until(done)),
            // Where the kernel can't tell (some FUSE and network file systems) the read itself is the only way.
            ResidentRead::Unsupported => read_waiting(file, buffers, position)?,
        };
        if bytes == 0 {
            return Ok(Read::Truncated(done));
        }
        done += bytes;
        IoSliceMut::advance_slices(&mut buffers, bytes);
    }
    Ok(Read::Whole)
}

/// Clamps a range of file offsets to what a mapping can hold.
pub fn in_memory(range: &Range<u64>) -> Range<usize> {
    // Mappings are made of whole files whose length fit usize; larger offsets are clamped by the mapping itself.
    let clamp = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    clamp(range.start)..clamp(range.end)
}
