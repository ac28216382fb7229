//! How many connections and handshakes there are, over all workers, and whether another may begin (INV-BOUND-1).
//!
//! `tests/shared-memory` includes this file to run it in loom's model, so it names what threads share by `crate::sync` alone.

use super::addresses::Addresses;
use crate::sync::{Arc, AtomicUsize, Ordering};

/// What all workers share and change once a connection.
#[derive(Debug)]
pub(crate) struct Totals {
    pub(crate) addresses: Addresses,
    connections: AtomicUsize,
    handshakes: AtomicUsize,
    workers: usize,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Connections,
    Handshakes,
}

impl Totals {
    /// For so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            addresses: Addresses::default(),
            connections: AtomicUsize::default(),
            handshakes: AtomicUsize::default(),
            workers: workers.max(1),
        }
    }

    fn of(&self, what: Count) -> &AtomicUsize {
        match what {
            Count::Connections => &self.connections,
            Count::Handshakes => &self.handshakes,
        }
    }

    /// How many there are.
    pub(crate) fn now(&self, what: Count) -> usize {
        self.of(what).load(Ordering::Relaxed)
    }

    /// How many there are above `limit`, and how many of them one worker is to give up.
    pub(crate) fn excess_of_one_worker(&self, what: Count, limit: usize) -> usize {
        self.now(what).saturating_sub(limit).div_ceil(self.workers)
    }

    /// What of `limit` is one worker's, whatever the others have taken.
    pub(crate) fn share_of(&self, limit: usize) -> usize {
        (limit / self.workers).max(1)
    }
}

/// A place in a total, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    totals: Arc<Totals>,
    what: Count,
}

impl Place {
    /// `None` where `limit` have been taken. One that is refused is at no time counted: it must not cost another, for which
    /// there is a place, that place.
    pub(crate) fn take(totals: &Arc<Totals>, what: Count, limit: usize) -> Option<Self> {
        let another = |count| (count < limit).then_some(count + 1);
        totals.of(what).fetch_update(Ordering::Relaxed, Ordering::Relaxed, another).ok()?;
        Some(Self { totals: Arc::clone(totals), what })
    }

    /// The same for a worker that has `own` of them. Where others have taken what is its share of `limit`, it takes it back:
    /// they give up what is above theirs at their next sweep. So for that long there are at most the share of every worker but
    /// one more than `limit`.
    pub(crate) fn take_or_claim(totals: &Arc<Totals>, what: Count, limit: usize, own: usize) -> Option<Self> {
        Self::take(totals, what, limit)
            .or_else(|| (own < totals.share_of(limit)).then(|| Self::take_anyway(totals, what)))
    }

    /// Whatever the limit: room was made for it.
    pub(crate) fn take_anyway(totals: &Arc<Totals>, what: Count) -> Self {
        totals.of(what).fetch_add(1, Ordering::Relaxed);
        Self { totals: Arc::clone(totals), what }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.totals.of(self.what).fetch_sub(1, Ordering::Relaxed);
    }
}
