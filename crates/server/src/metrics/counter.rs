//! A number that one worker writes and a scrape reads.
//!
//! `tests/shared-memory` includes this file to run it in loom's model, so it names atomics by `crate::sync` alone.

use crate::sync::{AtomicU64, Ordering};

/// A number that one worker writes and a scrape reads.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`. Only the owning worker writes, so no locked instruction is needed.
    pub(crate) fn add(&self, amount: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }

    pub(crate) fn decrement(&self) {
        self.add(u64::MAX);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
