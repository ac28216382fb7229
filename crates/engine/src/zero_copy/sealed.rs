//! The user engine without the copy into the socket: batches are sealed into a ring, and a batch is sealed anew only when the
//! kernel has completed it.

use super::{Counts, Lendable, Ring, Slot};
use crate::{
    Fault, FileRange, Queue,
    user::{Batch, Sealed, Sizing},
};
use linerate_os::{pages::Pages, socket::Follows, zero_copy::ZeroCopySend};
use linerate_record::{Channel, KeySource};
use std::{io, os::fd::BorrowedFd, time::Duration};

impl Lendable for Batch {
    fn pages(&self) -> &Pages {
        self.memory()
    }
}

/// A connection's batches.
#[derive(Debug)]
pub struct SealedRing {
    ring: Ring<Batch>,
    /// The batch that is on its way into the socket, and how many of its bytes are in.
    leaving: Option<(Slot, usize)>,
}

/// What a turn came to.
#[derive(Debug)]
pub enum Passed {
    /// So many sealed bytes went into the socket, which took all that was there of the batch.
    Sent(usize),
    /// So many went, and the socket is full. The rest goes first when it has room.
    Full(usize),
    /// The kernel has all batches: a completion has to come before anything is sealed ([`SealedRing::wait`]).
    AllLent,
    /// These bytes of a file are not in memory: nothing was sealed.
    Cold(FileRange),
}

impl SealedRing {
    /// So many batches, each with room for `batch_bytes` of plaintext in full records. At least two, or the sender waits for the
    /// peer's acknowledgement after each.
    #[must_use]
    pub fn new(batch_bytes: usize, batches: usize, carrier: Box<dyn ZeroCopySend>) -> Self {
        let batches = (0..batches.max(1)).map(|_| Batch::new(batch_bytes)).collect();
        Self { ring: Ring::new(batches, carrier), leaving: None }
    }

    /// What was sent, completed and copied after all.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.ring.counts()
    }

    /// Whether everything that was sealed is in the socket: control records and other engines may go on from here.
    #[must_use]
    pub fn is_at_boundary(&self) -> bool {
        self.leaving.is_none()
    }

    /// Sends the rest of the batch that is leaving; if there is none, seals what comes next in `queue` into a free batch and sends
    /// that. Sealed bytes leave in order, each once (INV-ORDER-1).
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn turn<K: KeySource>(
        &mut self,
        socket: BorrowedFd<'_>,
        channel: &mut Channel<K>,
        queue: &mut Queue,
        sizing: Sizing,
    ) -> Result<Passed, Fault> {
        if let Some((slot, sent_bytes)) = self.leaving {
            return self.send(socket, slot, sent_bytes);
        }
        if queue.is_done() && !channel.owes_key_update() {
            return Ok(Passed::Sent(0));
        }
        let Some(slot) = self.ring.free(socket).map_err(Fault::Socket)? else { return Ok(Passed::AllLent) };
        match self.ring.write(slot).seal(channel, queue, sizing)? {
            Sealed::Records => self.send(socket, slot, 0),
            Sealed::Cold(range) => Ok(Passed::Cold(range)),
        }
    }

    fn send(&mut self, socket: BorrowedFd<'_>, slot: Slot, sent_bytes: usize) -> Result<Passed, Fault> {
        let sealed_bytes = self.ring.read(slot).sealed().len();
        // A segment that is held back holds its batch.
        let now_bytes = match self.ring.send(socket, slot, sent_bytes..sealed_bytes, Follows::Nothing) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(Fault::Socket(error)),
        };
        let sent_bytes = sent_bytes + now_bytes;
        if sent_bytes < sealed_bytes {
            self.leaving = Some((slot, sent_bytes));
            Ok(Passed::Full(now_bytes))
        } else {
            self.leaving = None;
            Ok(Passed::Sent(now_bytes))
        }
    }

    /// Waits until a completion has come, at most `limit`. Only for a thread that may wait.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self, socket: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
        self.ring.wait(socket, limit)
    }

    /// Takes all completions that have come: for the count, and behind the end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn take_completions(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.ring.take_completions(socket)
    }

    #[cfg(test)]
    pub(super) fn switch_the_rule_off(&mut self) {
        self.ring.ledger.rule_is_off = true;
    }
}
