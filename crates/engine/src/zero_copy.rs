//! Sending without a copy: memory that the kernel is lent, and that is written to again only when the kernel needs it no more.
//!
//! A [`Ring`] holds such memory in slots, and keeps the ledger of what is lent. [`sealed`] is the user engine on it: batches are
//! sealed into free slots. In the clear the slots are plain memory, which a program fills, or lends again and again.
//!
//! INV-LENT-1: a slot is written to only while none of its bytes is lent.

mod ledger;
pub mod sealed;
#[cfg(test)]
mod tests;

pub use ledger::{Counts, Ledger};

use linerate_os::{
    pages::Pages,
    socket::{self, Follows},
    zero_copy::ZeroCopySend,
};
use std::{fmt, io, ops::Range, os::fd::BorrowedFd, sync::Arc, time::Duration};

/// Memory in a slot.
pub trait Lendable {
    /// The pages that the kernel is lent.
    fn pages(&self) -> &Pages;
}

impl Lendable for Pages {
    fn pages(&self) -> &Pages {
        self
    }
}

/// Memory that many connections send from, and that is never written to.
impl<T: Lendable> Lendable for Arc<T> {
    fn pages(&self) -> &Pages {
        (**self).pages()
    }
}

/// A slot of a [`Ring`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(usize);

/// Memory that one connection sends from without copying.
pub struct Ring<T> {
    slots: Vec<T>,
    ledger: Ledger,
    carrier: Box<dyn ZeroCopySend>,
    /// Where the search for a free slot begins: the one that was lent longest ago.
    next: usize,
}

impl<T> fmt::Debug for Ring<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ring").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl<T: Lendable> Ring<T> {
    /// A ring of these slots, on a connection for which nothing was sent by `carrier` before.
    #[must_use]
    pub fn new(slots: Vec<T>, mut carrier: Box<dyn ZeroCopySend>) -> Self {
        let ledger = Ledger::new(slots.len());
        let memory: Vec<&Pages> = slots.iter().map(Lendable::pages).collect();
        // Where it cannot be registered it is looked up for each send.
        let _ = carrier.prepare(&memory);
        Self { slots, ledger, carrier, next: 0 }
    }

    /// What was sent, completed and copied after all.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.ledger.counts()
    }

    /// A slot of which nothing is lent, if there is one after all completions that have come were taken.
    ///
    /// # Errors
    /// The kernel's; [`io::ErrorKind::InvalidData`] for a completion of what was never sent.
    pub fn free(&mut self, socket: BorrowedFd<'_>) -> io::Result<Option<Slot>> {
        if let Some(slot) = self.find_free() {
            return Ok(Some(slot));
        }
        self.take_completions(socket)?;
        Ok(self.find_free())
    }

    fn find_free(&mut self) -> Option<Slot> {
        let count = self.slots.len();
        let found =
            (self.next..self.next + count).map(|index| index % count).find(|&slot| self.ledger.is_free(slot));
        found.map(|slot| {
            self.next = slot;
            Slot(slot)
        })
    }

    /// The slot that was lent longest ago, whether or not it is lent still: to lend again what is never written to.
    #[must_use]
    pub fn any(&self) -> Slot {
        Slot(self.next)
    }

    /// The memory of a slot, to be read.
    #[must_use]
    pub fn read(&self, slot: Slot) -> &T {
        &self.slots[slot.0]
    }

    /// The memory of a slot, to be written to.
    ///
    /// # Panics
    /// If something of it is lent (INV-LENT-1): the peer would be sent what is written now in place of what was sent.
    pub fn write(&mut self, slot: Slot) -> &mut T {
        assert!(self.ledger.is_free(slot.0), "INV-LENT-1: slot {} is lent to the kernel", slot.0);
        &mut self.slots[slot.0]
    }

    /// Lends `range` of a slot's pages to the kernel, which sends what it has room for. Where it takes no more loans, even after
    /// all completions that have come were taken, it is given a copy.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`]: the socket is full. Else the connection is gone; as those of [`Ring::free`].
    pub fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        slot: Slot,
        range: Range<usize>,
        follows: Follows,
    ) -> io::Result<usize> {
        let pages = self.slots[slot.0].pages();
        let mut sent = self.carrier.send(socket, pages, range.clone(), follows);
        if is_over_account(&sent) {
            self.take_completions(socket)?;
            let pages = self.slots[slot.0].pages();
            sent = self.carrier.send(socket, pages, range.clone(), follows);
        }
        if is_over_account(&sent) {
            let bytes = self.slots[slot.0].pages().get(range).ok_or(io::ErrorKind::InvalidInput)?;
            let sent_bytes = socket::send(&socket, bytes, follows)?;
            self.ledger.refused();
            return Ok(sent_bytes);
        }
        let sent_bytes = sent?;
        self.ledger.lend(slot.0);
        // The next one is another: this one is the last that comes back.
        self.next = (slot.0 + 1) % self.slots.len();
        Ok(sent_bytes)
    }

    /// Takes all completions that have come.
    ///
    /// # Errors
    /// As those of [`Ring::free`].
    pub fn take_completions(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let ledger = &mut self.ledger;
        let mut told_wrong = false;
        self.carrier
            .completions(socket, &mut |completion| told_wrong |= ledger.complete(completion).is_err())?;
        if told_wrong {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the kernel completed a send that was not made, or twice",
            ));
        }
        Ok(())
    }

    /// Waits until a completion has come, at most `limit`, and takes all that have. Only for a thread that may wait.
    ///
    /// # Errors
    /// As those of [`Ring::free`].
    pub fn wait(&mut self, socket: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
        self.carrier.wait(socket, limit)?;
        self.take_completions(socket)
    }
}

/// The kernel takes no more loans now.
fn is_over_account(sent: &io::Result<usize>) -> bool {
    matches!(sent, Err(error) if rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::NOBUFS))
}
