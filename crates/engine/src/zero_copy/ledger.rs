//! What is lent: which sends each slot waits for, by number. Pure.

use linerate_os::zero_copy::Completion;
use std::collections::VecDeque;

/// What came of the sends of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sends that lent pages.
    pub sends: u64,
    /// Those of them that are complete.
    pub completed: u64,
    /// Those of the complete ones for which the kernel copied the pages after all.
    pub copied: u64,
    /// Sends for which the kernel took no loan (`ENOBUFS`), and was given a copy. Not among `sends`.
    pub refused: u64,
}

impl Counts {
    /// Sends that are not complete.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.sends - self.completed
    }

    /// The part (0 to 1) of the complete sends that the kernel copied after all; `None` before the first.
    #[must_use]
    pub fn copied_share(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.copied as f64 / self.completed as f64)
    }
}

/// A completion of what is not lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLent;

/// What is lent of a number of slots.
#[derive(Debug)]
pub struct Ledger {
    /// The slots of sends that are not complete, from the oldest such on; `None` for one that is.
    sends: VecDeque<Option<usize>>,
    /// The number of the first of them.
    first: u32,
    /// For each slot, how many of its sends are not complete.
    lent: Vec<u32>,
    counts: Counts,
    /// A test wants to see what the rule is good for.
    #[cfg(test)]
    pub(super) rule_is_off: bool,
}

impl Ledger {
    /// None of so many slots is lent.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self {
            sends: VecDeque::new(),
            first: 0,
            lent: vec![0; slots],
            counts: Counts::default(),
            #[cfg(test)]
            rule_is_off: false,
        }
    }

    /// What came of all sends.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether nothing of a slot is lent (INV-LENT-1).
    #[must_use]
    pub fn is_free(&self, slot: usize) -> bool {
        #[cfg(test)]
        if self.rule_is_off {
            return true;
        }
        self.lent[slot] == 0
    }

    /// A send succeeded: something of the slot is lent.
    pub fn lend(&mut self, slot: usize) {
        self.sends.push_back(Some(slot));
        self.lent[slot] += 1;
        self.counts.sends += 1;
    }

    /// The kernel took a copy, as it takes no loan.
    pub fn refused(&mut self) {
        self.counts.refused += 1;
    }

    /// Sends are complete, in whatever order that is told.
    ///
    /// # Errors
    /// One of them is none of those that are lent. Those that are count as complete all the same.
    pub fn complete(&mut self, completion: Completion) -> Result<(), NotLent> {
        let Completion { first, last, copied } = completion;
        // Numbers begin again behind the largest.
        let (from, to) = (first.wrapping_sub(self.first) as usize, last.wrapping_sub(self.first) as usize);
        if from > to || to >= self.sends.len() {
            return Err(NotLent);
        }
        let mut all_were_lent = true;
        for send in self.sends.range_mut(from..=to) {
            let Some(slot) = send.take() else {
                all_were_lent = false;
                continue;
            };
            self.lent[slot] -= 1;
            self.counts.completed += 1;
            self.counts.copied += u64::from(copied);
        }
        while let Some(None) = self.sends.front() {
            self.sends.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        if all_were_lent { Ok(()) } else { Err(NotLent) }
    }

    #[cfg(test)]
    pub(super) fn beginning_at(mut self, first: u32) -> Self {
        self.first = first;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(first: u32, last: u32) -> Completion {
        Completion { first, last, copied: false }
    }

    #[test]
    fn a_slot_is_free_when_all_of_its_sends_are_complete_in_any_order() {
        for beginning in [0, u32::MAX - 2] {
            let mut ledger = Ledger::new(3).beginning_at(beginning);
            for slot in [0, 1, 1, 2, 0] {
                ledger.lend(slot);
            }
            let number = |index: u32| beginning.wrapping_add(index);
            assert!((0..3).all(|slot| !ledger.is_free(slot)));
            ledger.complete(of(number(3), number(4))).unwrap();
            assert_eq!([0, 1, 2].map(|slot| ledger.is_free(slot)), [false, false, true]);
            ledger.complete(Completion { copied: true, ..of(number(0), number(1)) }).unwrap();
            assert_eq!([0, 1, 2].map(|slot| ledger.is_free(slot)), [true, false, true]);
            ledger.complete(of(number(2), number(2))).unwrap();
            assert!((0..3).all(|slot| ledger.is_free(slot)));
            let counts = ledger.counts();
            assert_eq!((counts.sends, counts.completed, counts.copied, counts.in_flight()), (5, 5, 2, 0));
            assert_eq!(counts.copied_share(), Some(0.4));
            // The numbers go on.
            ledger.lend(1);
            assert!(ledger.complete(of(number(4), number(4))).is_err(), "that one was complete");
            ledger.complete(of(number(5), number(5))).unwrap();
            assert!(ledger.is_free(1));
        }
    }

    #[test]
    fn what_is_not_lent_cannot_be_completed() {
        let mut ledger = Ledger::new(2);
        assert_eq!(ledger.complete(of(0, 0)), Err(NotLent));
        ledger.lend(0);
        ledger.lend(1);
        for (first, last) in [(0, 2), (1, 0), (u32::MAX, 0), (0, u32::MAX), (2, 2)] {
            assert_eq!(ledger.complete(of(first, last)), Err(NotLent), "{first} {last}");
        }
        assert_eq!(ledger.counts().completed, 0);
        ledger.complete(of(1, 1)).unwrap();
        assert_eq!(ledger.complete(of(1, 1)), Err(NotLent), "twice");
        assert!(!ledger.is_free(0) && ledger.is_free(1));
        assert_eq!(ledger.complete(of(0, 1)), Err(NotLent), "one of the two");
        assert!(ledger.is_free(0));
        assert_eq!(Ledger::new(1).counts().copied_share(), None);
    }
}
