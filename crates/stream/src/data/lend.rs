//! Sending without a copy: the kernel is lent the memory that a stream is sent from, and says when it needs it no more.
//!
//! In the clear each I/O is a loan: of memory that all streams share and nobody writes to, or with a pattern of a slot that is
//! filled anew only when the kernel has completed it (INV-LENT-1). On the user engine it is batches of sealed records that are lent.

use super::{LOOK, Moved, send::Course};
use crate::{
    group::{Group, Lane},
    keys::Keys,
    plan::ZeroCopySend,
    report::LentReport,
    wait,
};
use linerate_engine::{
    Fault, FileRange, Queue,
    batches::{BatchEnd, Batches},
    pattern::Pattern,
    user::Sizing,
    zero_copy::{
        Counts, Lendable, Ring, Slot,
        sealed::{Passed, SealedRing},
    },
};
use linerate_os::{
    pages::Pages,
    socket::{self, Follows},
    zero_copy::{self as kernel, Notices, Submissions},
};
use linerate_record::{Channel, MAX_PLAINTEXT_BYTES};
use rustix::event::PollFlags;
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Memory of a stream's slots, as far as all streams' fits: what a fast path has in flight at once.
pub(super) const SLOTS_BYTES: usize = 4 << 20;
/// Slots of a stream: with one it would wait for an acknowledgement behind every send; more than these are of no use.
const SLOTS: (usize, usize) = (2, 64);
/// Loans of shared memory between two looks at what was completed.
const LOANS_PER_LOOK: u32 = 32;
/// A wait that ended without a completion is followed by such a pause.
const PAUSE: Duration = Duration::from_millis(1);
/// What the other end has not acknowledged after so long is stuck with it.
const COMPLETION_TIME: Duration = Duration::from_secs(60);

/// Whether this process may lend memory in this way: asked before a run begins.
///
/// # Errors
/// Why not, in words.
pub(crate) fn check(by: ZeroCopySend) -> Result<(), String> {
    match by {
        // A kernel that does not know it refuses it for the stream.
        ZeroCopySend::MsgZerocopy => Ok(()),
        ZeroCopySend::IoUring => match Submissions::new() {
            Ok(_) => Ok(()),
            Err(refusal) => Err(format!("zero-copy send by io_uring: {refusal}")),
        },
    }
}

fn carrier(by: ZeroCopySend, lane: &Lane) -> Result<Box<dyn kernel::ZeroCopySend>, Fault> {
    Ok(match by {
        ZeroCopySend::MsgZerocopy => Box::new(Notices::of(&lane.socket).map_err(Fault::Socket)?),
        ZeroCopySend::IoUring => Box::new(
            Submissions::new().map_err(|refusal| Fault::Socket(io::Error::other(refusal.to_string())))?,
        ),
    })
}

/// How many slots of `slot_bytes` a stream has that may have `all_bytes` of memory.
fn slots(slot_bytes: usize, all_bytes: usize) -> usize {
    (all_bytes / slot_bytes.max(1)).clamp(SLOTS.0, SLOTS.1)
}

/// What lends, whatever it is that is lent.
trait Lender {
    fn take_completions(&mut self, socket: BorrowedFd<'_>) -> io::Result<()>;
    fn wait(&mut self, socket: BorrowedFd<'_>, limit: Duration) -> io::Result<()>;
    fn counts(&self) -> Counts;
}

impl<T: Lendable> Lender for Ring<T> {
    fn take_completions(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        Self::take_completions(self, socket)
    }

    fn wait(&mut self, socket: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
        Self::wait(self, socket, limit)
    }

    fn counts(&self) -> Counts {
        Self::counts(self)
    }
}

impl Lender for SealedRing {
    fn take_completions(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        Self::take_completions(self, socket)
    }

    fn wait(&mut self, socket: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
        Self::wait(self, socket, limit)
    }

    fn counts(&self) -> Counts {
        Self::counts(self)
    }
}

/// Waits until the socket can be written. Notices of completions make it ready, too: they are taken.
fn wait_for_room(lender: &mut impl Lender, lane: &Lane) -> Result<(), Fault> {
    loop {
        lender.take_completions(lane.socket.as_fd()).map_err(Fault::Socket)?;
        let ready = wait::for_any(&lane.socket, PollFlags::OUT).map_err(Fault::Socket)?;
        if ready.intersects(PollFlags::OUT | PollFlags::HUP) {
            return Ok(());
        }
    }
}

/// Waits until the kernel has completed something.
fn wait_for_completion(lender: &mut impl Lender, lane: &Lane, group: &Group) -> Result<(), Fault> {
    let before = lender.counts().completed;
    loop {
        lender.wait(lane.socket.as_fd(), LOOK).map_err(Fault::Socket)?;
        if lender.counts().completed > before {
            return Ok(());
        }
        if group.is_cut() {
            return Err(Fault::Socket(io::ErrorKind::ConnectionAborted.into()));
        }
        thread::sleep(PAUSE);
    }
}

/// Waits until the kernel has completed all: only then is every loan accounted for.
fn wait_for_all(lender: &mut impl Lender, lane: &Lane, group: &Group) -> Result<(), Fault> {
    let deadline = Instant::now() + COMPLETION_TIME;
    while lender.counts().in_flight() > 0 {
        if Instant::now() > deadline {
            return Err(Fault::Socket(io::ErrorKind::TimedOut.into()));
        }
        wait_for_completion(lender, lane, group)?;
    }
    Ok(())
}

/// What a stream in the clear lends.
pub(super) enum Loan {
    /// The same memory again and again.
    Shared(Arc<Pages>),
    /// A pattern's bytes, in slots of up to so many bytes.
    Pattern(Pattern, usize),
}

/// Sends in the clear until the course is over, and ends the stream.
pub(super) fn send_plain(
    lane: &Lane,
    group: &Group,
    by: ZeroCopySend,
    loan: Loan,
    slots_bytes: usize,
    course: &mut Course<'_>,
    moved: &mut Moved,
) -> Result<(), Fault> {
    let carrier = carrier(by, lane)?;
    match loan {
        Loan::Shared(memory) => {
            let mut ring = Ring::new(vec![memory], carrier);
            let mut loans = 0;
            let slot = |ring: &mut Ring<Arc<Pages>>, _: u64, _: usize| {
                loans += 1;
                if loans % LOANS_PER_LOOK == 0 {
                    ring.take_completions(lane.socket.as_fd()).map_err(Fault::Socket)?;
                }
                Ok(ring.any())
            };
            send_loans(lane, group, by, &mut ring, slot, course, moved)
        }
        Loan::Pattern(pattern, io_bytes) => {
            let memory = (0..slots(io_bytes, slots_bytes)).map(|_| Pages::new(io_bytes));
            let memory = memory.collect::<io::Result<Vec<_>>>().map_err(Fault::Unreadable)?;
            let mut ring = Ring::new(memory, carrier);
            let slot = |ring: &mut Ring<Pages>, offset: u64, bytes: usize| {
                let slot = loop {
                    if let Some(slot) = ring.free(lane.socket.as_fd()).map_err(Fault::Socket)? {
                        break slot;
                    }
                    wait_for_completion(ring, lane, group)?;
                };
                pattern.fill(offset, &mut ring.write(slot)[..bytes]);
                Ok(slot)
            };
            send_loans(lane, group, by, &mut ring, slot, course, moved)
        }
    }
}

/// Each I/O is a loan of a slot that `slot` makes ready: for so many bytes, from that offset of the stream on.
fn send_loans<T: Lendable>(
    lane: &Lane,
    group: &Group,
    by: ZeroCopySend,
    ring: &mut Ring<T>,
    mut slot: impl FnMut(&mut Ring<T>, u64, usize) -> Result<Slot, Fault>,
    course: &mut Course<'_>,
    moved: &mut Moved,
) -> Result<(), Fault> {
    let socket = lane.socket.as_fd();
    let mut send = || {
        while let Some(io_bytes) = course.next(moved.bytes) {
            let slot = slot(ring, moved.bytes, io_bytes)?;
            moved.calls += 1;
            let mut sent_bytes = 0;
            while sent_bytes < io_bytes {
                match ring.send(socket, slot, sent_bytes..io_bytes, Follows::Nothing) {
                    Ok(bytes) => {
                        sent_bytes += bytes;
                        moved.bytes += bytes as u64;
                        lane.tell(moved.bytes);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for_room(ring, lane)?,
                    Err(error) => return Err(Fault::Socket(error)),
                }
            }
        }
        socket::finish_sending(&lane.socket).map_err(Fault::Socket)?;
        wait_for_all(ring, lane, group)
    };
    let sent = send();
    moved.lent = Some(LentReport::new(by, ring.counts()));
    sent
}

/// The user engine's side of a stream whose batches are lent.
pub(super) struct LentSealing {
    pub(super) channel: Channel<Keys>,
    by: ZeroCopySend,
    ring: SealedRing,
    batches: Batches,
    largest_batch_bytes: usize,
}

impl LentSealing {
    pub(super) fn new(
        lane: &Lane,
        channel: Channel<Keys>,
        by: ZeroCopySend,
        largest_batch_bytes: usize,
        slots_bytes: usize,
    ) -> Result<Self, Fault> {
        let ring =
            SealedRing::new(largest_batch_bytes, slots(largest_batch_bytes, slots_bytes), carrier(by, lane)?);
        Ok(Self { channel, by, ring, batches: Batches::default(), largest_batch_bytes })
    }

    pub(super) fn report(&self) -> LentReport {
        LentReport::new(self.by, self.ring.counts())
    }

    /// A batch, sealed and sent whole. `Some`: these bytes of a file have to be fetched first.
    pub(super) fn turn(
        &mut self,
        lane: &Lane,
        group: &Group,
        queue: &mut Queue,
    ) -> Result<Option<FileRange>, Fault> {
        let socket = lane.socket.as_fd();
        let batch_bytes = self
            .batches
            .queue_bytes(&socket, queue.remaining_bytes(), self.largest_batch_bytes, BatchEnd::WithTheQueue)
            .map_err(Fault::Socket)?;
        let sizing = Sizing { record_bytes: MAX_PLAINTEXT_BYTES, batch_bytes, opening_bytes: 0 };
        let mut was_full = false;
        loop {
            match self.ring.turn(socket, &mut self.channel, queue, sizing)? {
                Passed::Sent(_) => break,
                Passed::Full(_) => {
                    was_full = true;
                    wait_for_room(&mut self.ring, lane)?;
                }
                Passed::AllLent => wait_for_completion(&mut self.ring, lane, group)?,
                Passed::Cold(range) => return Ok(Some(range)),
            }
        }
        if was_full {
            self.batches.taken_in_part();
        } else {
            self.batches.taken_whole();
        }
        // As where batches are copied: what is sealed before there is room is out of the processor's cache when it leaves.
        let has_room =
            socket::not_sent_bytes(&socket).is_none_or(|bytes| bytes == 0) || socket::is_writable(&socket);
        if !has_room {
            wait_for_room(&mut self.ring, lane)?;
        }
        Ok(None)
    }

    /// Waits until the socket can be written.
    pub(super) fn wait_for_room(&mut self, lane: &Lane) -> Result<(), Fault> {
        wait_for_room(&mut self.ring, lane)
    }

    /// Nothing follows: waits until the kernel has completed all.
    pub(super) fn wait_for_all(&mut self, lane: &Lane, group: &Group) -> Result<(), Fault> {
        wait_for_all(&mut self.ring, lane, group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_two_slots_at_least() {
        assert_eq!(slots(1 << 20, 4 << 20), 4);
        assert_eq!(slots(16 << 20, 4 << 20), 2);
        assert_eq!(slots(1, 4 << 20), 64);
        assert_eq!(slots(0, 0), 2);
    }
}
