//! What an engine is given: bytes and ranges of files, in the order in which they are sent. Each piece knows where its bytes
//! come from, so one queue may hold several responses, and a batch bytes of more than one.

use crate::{
    Fault,
    pattern::Pattern,
    source::{Moment, Source},
};
use linerate_os::pages::Pages;
use std::{collections::VecDeque, fmt, ops::Range, rc::Rc, sync::Arc};

/// Something to be sent.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Bytes that are at hand.
    Bytes(Vec<u8>),
    /// Bytes in memory that many queues send again and again.
    Shared(SharedBytes),
    /// A range of a file.
    File(FileRange),
    /// Bytes that are generated where they are needed: the user engine has them written straight into the batch, and seals
    /// them there.
    Pattern {
        /// What generates them.
        pattern: Pattern,
        /// What of its stream.
        range: Range<u64>,
    },
}

impl Piece {
    /// A range of `source`.
    pub fn file(source: &Rc<impl Source + 'static>, range: Range<u64>) -> Self {
        Self::File(FileRange { source: Rc::clone(source) as Rc<dyn Source>, range })
    }

    fn length_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Shared(shared) => shared.as_slice().len() as u64,
            Self::File(FileRange { range, .. }) | Self::Pattern { range, .. } => {
                range.end.saturating_sub(range.start)
            }
        }
    }
}

/// Bytes in memory that nobody changes. Nothing is copied to put them into a queue.
#[derive(Clone)]
pub struct SharedBytes {
    memory: Arc<Pages>,
    range: Range<usize>,
}

impl SharedBytes {
    /// What of `range` lies in `memory`.
    #[must_use]
    pub fn of(memory: &Arc<Pages>, range: Range<usize>) -> Self {
        let end = range.end.min(memory.len());
        Self { memory: Arc::clone(memory), range: range.start.min(end)..end }
    }

    fn as_slice(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} shared bytes", self.range.len())
    }
}

/// A range of a file, in bytes from its beginning.
#[derive(Clone)]
pub struct FileRange {
    /// The file.
    pub source: Rc<dyn Source>,
    /// What of it.
    pub range: Range<u64>,
}

impl fmt::Debug for FileRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.range.fmt(formatter)
    }
}

/// What comes next of a piece.
#[derive(Clone, Debug)]
pub(crate) enum Part<'a> {
    Bytes(&'a [u8]),
    File(FilePart<'a>),
    Pattern { pattern: Pattern, range: Range<u64> },
}

/// What comes next of a range of a file.
#[derive(Clone)]
pub(crate) struct FilePart<'a> {
    pub(crate) source: &'a Rc<dyn Source>,
    pub(crate) range: Range<u64>,
    /// No more of this piece follows.
    pub(crate) is_end: bool,
}

impl Part<'_> {
    pub(crate) fn length_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(FilePart { range, .. }) | Self::Pattern { range, .. } => range.end - range.start,
        }
    }
}

impl FilePart<'_> {
    /// What follows from the part's byte `skip_bytes` on.
    pub(crate) fn behind(&self, skip_bytes: u64) -> FileRange {
        FileRange { source: Rc::clone(self.source), range: self.range.start + skip_bytes..self.range.end }
    }

    /// When the file is asked about behind this part.
    fn moment(&self) -> Moment {
        if self.is_end { Moment::AtTheEnd } else { Moment::Midway }
    }
}

impl fmt::Debug for FilePart<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.range.fmt(formatter)
    }
}

/// What is still to be sent, in order.
#[derive(Debug, Default)]
pub struct Queue {
    /// None is empty.
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that are done.
    done_bytes: u64,
    remaining_bytes: u64,
    /// Memory of bytes that were sent, for the next that are made.
    spare: Vec<u8>,
}

impl Queue {
    /// Appends a piece.
    pub fn push(&mut self, piece: Piece) {
        let length_bytes = piece.length_bytes();
        if length_bytes > 0 {
            self.remaining_bytes += length_bytes;
            self.pieces.push_back(piece);
        }
    }

    /// Bytes that are still to be sent.
    #[must_use]
    pub fn remaining_bytes(&self) -> u64 {
        self.remaining_bytes
    }

    /// Whether all is sent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.remaining_bytes == 0
    }

    /// Whether the user engine seals the files that come from mappings: none is read.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        let mut files = self.files();
        files.clone().next().is_some() && files.all(|file| file.source.mapping().is_some())
    }

    /// The pieces that are ranges of files.
    fn files(&self) -> impl Iterator<Item = &FileRange> + Clone {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::File(file) => Some(file),
            Piece::Bytes(_) | Piece::Shared(_) | Piece::Pattern { .. } => None,
        })
    }

    /// Where the piece ends, in its file, that `range` is of; the end of `range` where none is.
    #[must_use]
    pub fn end_of(&self, range: &FileRange) -> u64 {
        let is_of = |file: &&FileRange| {
            Rc::ptr_eq(&file.source, &range.source) && file.range.contains(&range.range.start)
        };
        self.files().find(is_of).map_or(range.range.end, |file| file.range.end)
    }

    /// The memory of bytes that were sent, the largest of them: empty, with its capacity.
    #[must_use]
    pub fn take_spare(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.spare)
    }

    /// Gives memory back that [`Queue::take_spare`] gave.
    pub(crate) fn keep_spare(&mut self, memory: Vec<u8>) {
        self.spare = memory;
    }

    /// Strikes `bytes` off the front: an engine has sent them, or sealed them under numbers of their own.
    ///
    /// # Panics
    /// In debug builds, if there are not so many.
    pub fn advance(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.remaining_bytes, "{bytes} of {}", self.remaining_bytes);
        let bytes = bytes.min(self.remaining_bytes);
        self.remaining_bytes -= bytes;
        self.done_bytes += bytes;
        while let Some(first) = self.pieces.front() {
            let Some(done_bytes) = self.done_bytes.checked_sub(first.length_bytes()) else { return };
            self.done_bytes = done_bytes;
            if let Some(Piece::Bytes(mut memory)) = self.pieces.pop_front()
                && memory.capacity() > self.spare.capacity()
            {
                memory.clear();
                self.spare = memory;
            }
        }
    }

    /// Whether the files that the next `bytes` are of are what they were announced to be (INV-FILE-1): to be asked after
    /// their bytes were read or sealed, before they leave.
    ///
    /// # Errors
    /// [`Fault::Changed`], [`Fault::Unreadable`].
    pub(crate) fn check_files(&self, bytes: u64) -> Result<(), Fault> {
        let mut asked: Option<(&Rc<dyn Source>, Moment)> = None;
        for part in self.upcoming(bytes) {
            let Part::File(part) = part else { continue };
            match &mut asked {
                // Ranges of one file are asked about once.
                Some((source, moment)) if Rc::ptr_eq(source, part.source) => {
                    *moment = if part.is_end { Moment::AtTheEnd } else { *moment };
                }
                _ => {
                    if let Some((source, moment)) = asked.replace((part.source, part.moment())) {
                        check(source, moment)?;
                    }
                }
            }
        }
        asked.map_or(Ok(()), |(source, moment)| check(source, moment))
    }

    /// What comes next, cut to at most `limit_bytes`.
    pub(crate) fn upcoming(&self, limit_bytes: u64) -> impl Iterator<Item = Part<'_>> {
        let mut skip = self.done_bytes;
        let mut left = limit_bytes;
        self.pieces.iter().map_while(move |piece| {
            let whole = piece.length_bytes() - skip;
            let length = whole.min(left);
            let part = match piece {
                // Lengths of byte pieces are lengths of slices: they fit usize.
                Piece::Bytes(bytes) => Part::Bytes(&bytes[skip as usize..(skip + length) as usize]),
                Piece::Shared(shared) => {
                    Part::Bytes(&shared.as_slice()[skip as usize..(skip + length) as usize])
                }
                Piece::Pattern { pattern, range } => Part::Pattern {
                    pattern: *pattern,
                    range: range.start + skip..range.start + skip + length,
                },
                Piece::File(FileRange { source, range }) => Part::File(FilePart {
                    source,
                    range: range.start + skip..range.start + skip + length,
                    is_end: length == whole,
                }),
            };
            skip = 0;
            left -= length;
            (length > 0).then_some(part)
        })
    }
}

fn check(source: &Rc<dyn Source>, moment: Moment) -> Result<(), Fault> {
    source.change(moment).map_err(Fault::Unreadable)?.map_or(Ok(()), |change| Err(change.into()))
}

impl FromIterator<Piece> for Queue {
    fn from_iter<I: IntoIterator<Item = Piece>>(pieces: I) -> Self {
        let mut queue = Self::default();
        pieces.into_iter().for_each(|piece| queue.push(piece));
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Change, OpenFile};

    #[test]
    fn a_part_of_a_file_knows_what_is_behind_a_place_in_it() {
        let source = OpenFile::of(tempfile::tempfile().unwrap()).unwrap();
        let one = FileRange { source, range: 10..17 };
        assert_eq!(format!("{one:?}"), "10..17");
        let queue = Queue::from_iter([Piece::File(one)]);
        let Some(Part::File(part)) = queue.upcoming(5).next() else { panic!("it has a file") };
        assert_eq!((format!("{part:?}"), part.behind(2).range), ("10..15".to_owned(), 12..15));
    }

    #[test]
    fn a_queue_is_mapped_where_all_its_files_are() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10).unwrap();
        let is_mapped = |pieces: &[&Piece]| {
            let queue: Queue = pieces.iter().copied().cloned().collect();
            queue.is_mapped()
        };
        let head = Piece::Bytes(b"head".to_vec());
        let read = Piece::file(&OpenFile::of(file.try_clone().unwrap()).unwrap(), 0..10);
        let mapped = Piece::file(&OpenFile::mapped(file).unwrap(), 0..10);
        assert!(is_mapped(&[&mapped]) && is_mapped(&[&head, &mapped]));
        assert!(!is_mapped(&[]) && !is_mapped(&[&head]) && !is_mapped(&[&mapped, &head, &read]));
    }

    /// INV-FILE-1, where a batch holds bytes of more than one file.
    #[test]
    fn each_file_of_what_comes_next_is_asked_about() {
        for changed in [0, 1] {
            let files = [(); 2].map(|()| tempfile::tempfile().unwrap());
            files.iter().for_each(|file| file.set_len(10).unwrap());
            let sources = files.each_ref().map(|file| OpenFile::of(file.try_clone().unwrap()).unwrap());
            let queue: Queue = sources.iter().map(|source| Piece::file(source, 0..10)).collect();
            assert!(queue.check_files(20).is_ok());
            files[changed].set_len(5).unwrap();
            assert!(matches!(queue.check_files(20), Err(Fault::Changed(Change::CutShort(5)))), "{changed}");
            assert_eq!(queue.check_files(10).is_ok(), changed == 1, "no byte of the second is among these");
        }
    }

    #[test]
    fn pieces_are_consumed_in_order_at_any_step() {
        let files = [(); 2].map(|()| OpenFile::of(tempfile::tempfile().unwrap()).unwrap());
        let mut shared = Pages::allocated(4);
        shared[..4].copy_from_slice(b"+--+");
        let all = [
            Piece::Bytes(b"head".to_vec()),
            Piece::file(&files[0], 10..17),
            Piece::Bytes(Vec::new()),
            Piece::Shared(SharedBytes::of(&Arc::new(shared), 1..3)),
            Piece::Pattern { pattern: Pattern::new(0), range: 5..8 },
            Piece::file(&files[1], 3..4),
        ];
        for step in 1..20 {
            let mut queue: Queue = all.iter().cloned().collect();
            assert_eq!(queue.remaining_bytes(), 17);
            let (mut seen, mut ends) = (Vec::new(), 0);
            while !queue.is_done() {
                let mut taken_bytes = 0;
                for part in queue.upcoming(step) {
                    taken_bytes += part.length_bytes();
                    match &part {
                        Part::Bytes(bytes) => seen.extend(bytes.iter().map(|&byte| u64::from(byte))),
                        Part::Pattern { range, .. } => seen.extend(range.clone().map(|offset| 3000 + offset)),
                        Part::File(part) => {
                            let first = std::ptr::addr_eq(Rc::as_ptr(part.source), Rc::as_ptr(&files[0]));
                            let number = if first { 1000 } else { 2000 };
                            seen.extend(part.range.clone().map(|offset| number + offset));
                            ends += usize::from(part.is_end);
                        }
                    }
                }
                queue.advance(taken_bytes);
            }
            let head = b"head".iter().map(|&byte| u64::from(byte));
            let expected: Vec<u64> =
                head.chain(1010..1017).chain([45, 45]).chain(3005..3008).chain([2003]).collect();
            assert_eq!((seen, ends), (expected, 2), "step {step}");
            assert_eq!(queue.upcoming(100).count(), 0);
            let spare = queue.take_spare();
            assert!(spare.is_empty() && spare.capacity() >= 4);
        }
    }
}
