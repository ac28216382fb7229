//! What the signal handler knows of a mapping, in one slot of a table. Threads that map and unmap write it while the handler,
//! on any thread, reads it without a lock.
//!
//! `tests/shared-memory` includes this file to run it in loom's model, so it names atomics by `crate::sync` alone.

use crate::sync::{AtomicBool, AtomicUsize, Ordering, fence};
use std::ops::Range;

/// `start` of a slot that is free.
const FREE: usize = 0;
/// `start` of a slot that is claimed and not yet filled.
const CLAIMED: usize = 1;

/// The place of one mapping.
pub(super) struct Slot {
    pub(super) start: AtomicUsize,
    pub(super) end: AtomicUsize,
    pub(super) broken: AtomicBool,
}

impl Slot {
    /// Takes the slot if it is free. Its owner publishes a mapping in it or releases it.
    pub(super) fn claim(&self) -> bool {
        self.start.compare_exchange(FREE, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Shows a mapping to the handler, by the owner of a claimed slot. `start` is stored last: a
    /// reader that sees it sees its end.
    pub(super) fn publish(&self, mapping: Range<usize>) {
        self.broken.store(false, Ordering::SeqCst);
        self.end.store(mapping.end, Ordering::SeqCst);
        self.start.store(mapping.start, Ordering::SeqCst);
    }

    /// Gives the slot back, by its owner.
    pub(super) fn release(&self) {
        self.start.store(FREE, Ordering::SeqCst);
    }

    /// Gives the slot back and unmaps, in this order: the addresses may be another mapping's as soon as they are free, and
    /// the handler must not take a fault there for one of this mapping.
    pub(super) fn release_and(&self, unmap: impl FnOnce()) {
        self.release();
        unmap();
    }

    /// The end of the slot's mapping if `address`, of a mapping that lives, lies in it.
    ///
    /// The slot may be given to another mapping meanwhile. Then the end that was read can be the other's, and the two
    /// together span addresses between both, which may belong to anything. So start is read again, and an end that belongs to
    /// another start is not believed. The thread that wrote that end wrote [`CLAIMED`] to start before it.
    pub(super) fn end_if_covering(&self, address: usize) -> Option<usize> {
        let start = self.start.load(Ordering::SeqCst);
        let end = self.end.load(Ordering::SeqCst);
        if self.start.load(Ordering::SeqCst) != start {
            return None;
        }
        (start > CLAIMED && (start..end).contains(&address)).then_some(end)
    }

    /// Notes that pages of the mapping were missing. Comes before the zeros appear in their place: no other thread can
    /// read those and still find the mapping whole.
    pub(super) fn mark_broken(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    /// Whether pages were missing, asked after reading.
    pub(super) fn is_broken(&self) -> bool {
        // Whatever was read before this call was read before the flag is: no stale "whole" after zeros.
        fence(Ordering::SeqCst);
        self.broken.load(Ordering::SeqCst)
    }
}
