//! What a response sends and is not in memory: it is read on a thread that may wait for the disk, piece by piece.

use super::wire::Wire;
use crate::{
    ending::Ending,
    workplace::{FETCH_BYTES, Workplace},
};
use linerate_engine::FileRange;
use linerate_os::{limits::is_without_descriptor, socket};
use std::{io, rc::Rc};
use tokio::task::JoinHandle;

/// Less than this waits in a socket that has nothing to send: what a cork holds back, at most one segment.
const STARVED_BYTES: u64 = 64 << 10;
/// Pieces end at multiples of this in their file: of any page's size.
const BOUNDARY_BYTES: u64 = 64 << 10;

/// The reads of one response.
#[derive(Default)]
pub(super) struct Fetches {
    /// The one that goes on while the piece before it is sent. One more is all that a response ever has: what is read and not
    /// sent takes memory from others.
    ahead: Option<Read>,
}

/// A read under way.
struct Read {
    range: FileRange,
    task: JoinHandle<io::Result<()>>,
}

impl Fetches {
    /// Has a cold range read, and what follows it up to `end`, a piece at a time (INV-COLD-1: a worker never waits for the
    /// disk). Nothing beyond `end`, the last byte that is sent of this file, is read.
    ///
    /// Where the peer has taken everything by the time that the bytes are there, it waited for the disk: from then on the
    /// next piece is read while this one is sent. A peer that is slower than the disk gains nothing by that, and what was
    /// read for it would lie in memory.
    pub(super) async fn bring(&mut self, wire: &Wire, cold: &FileRange, end: u64) -> Result<(), Ending> {
        wire.workplace.metrics.cold_reads.increment();
        wire.begin_own_work();
        let ahead = self.ahead.take().filter(|read| read.is_of(cold));
        let read = match ahead {
            Some(read) => read,
            None => Read::begin(&wire.workplace, cold, cold.range.start, end).map_err(Ending::Unreadable)?,
        };
        let fetched = read.task.await;
        wire.watch.forget_pace();
        match fetched {
            Ok(result) => result.map_err(Ending::Unreadable)?,
            // The pool is shut down, or the read panicked: either way the bytes will not come.
            Err(error) => return Err(Ending::Unreadable(io::Error::other(error))),
        }
        let next = read.range.range.end;
        if next < end && socket::not_sent_bytes(&wire.stream).is_some_and(|bytes| bytes < STARVED_BYTES) {
            // Without a descriptor for it, the piece is read when it is needed.
            self.ahead = Read::begin(&wire.workplace, cold, next, end).ok();
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn is_ahead(&self) -> bool {
        self.ahead.is_some()
    }
}

impl Read {
    /// Begins to read a piece of the file from `start`; none goes beyond `end`.
    fn begin(workplace: &Workplace, file: &FileRange, start: u64, end: u64) -> io::Result<Self> {
        // The next one begins with a page of its own.
        let piece_end = start.saturating_add(FETCH_BYTES) / BOUNDARY_BYTES * BOUNDARY_BYTES;
        let range = start..end.min(piece_end);
        let clone = || file.source.file().try_clone();
        let handle = workplace.reserve.with(clone, is_without_descriptor)?;
        let read_ahead = workplace.read_ahead;
        let length_bytes = range.end.saturating_sub(start);
        let task = tokio::task::spawn_blocking(move || read_ahead(&handle, start, length_bytes));
        Ok(Self { range: FileRange { source: Rc::clone(&file.source), range }, task })
    }

    /// Whether it brings what is missing of `cold`. What lies before it came with the last piece: a mapping says of a batch
    /// as a whole that something is missing. Where memory was taken away since, the engine asks once more.
    fn is_of(&self, cold: &FileRange) -> bool {
        Rc::ptr_eq(&self.range.source, &cold.source)
            && self.range.range.start < cold.range.end
            && cold.range.start < self.range.range.end
    }
}
