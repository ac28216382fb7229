//! What became of the last set-ups of one version and cipher on one adapter, and whether another is worth a try.
//!
//! Nothing but trying tells whether a kernel and a driver offload a version, nor whether there is room for another flow; and
//! a connection that tries in vain stays in the kernel's software for good. So a refusal is remembered for a while, longer each time,
//! and until something is known one connection tries at a time.

use std::time::{Duration, Instant};

/// After the first refusal nobody tries for so long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause for a combination that the adapter has carried: its table is full, and flows end.
const LAST_PAUSE: Duration = Duration::from_secs(16);
/// The longest for one that it has never carried: a driver does not learn.
const LAST_PAUSE_UNKNOWN: Duration = Duration::from_secs(1024);

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The adapter has carried it.
    carried: bool,
    /// Refusals since then.
    refusals: u32,
    /// Nobody tries before.
    not_before: Option<Instant>,
}

impl Memory {
    /// Whether a connection could try now.
    pub(super) fn may_be_tried(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|not_before| now >= not_before)
    }

    /// Whether a connection may try now; if so, it does.
    pub(super) fn may_try(&mut self, now: Instant) -> bool {
        if !self.may_be_tried(now) {
            return false;
        }
        if !self.carried || self.refusals > 0 {
            // The others wait for what becomes of this one.
            self.not_before = Some(now + FIRST_PAUSE);
        }
        true
    }

    /// The adapter took it.
    pub(super) fn carried(&mut self) {
        *self = Self { carried: true, ..Self::default() };
    }

    /// The adapter did not.
    pub(super) fn refused(&mut self, now: Instant) {
        let last = if self.carried { LAST_PAUSE } else { LAST_PAUSE_UNKNOWN };
        let pause = FIRST_PAUSE.saturating_mul(1 << self.refusals.min(16)).min(last);
        self.refusals = self.refusals.saturating_add(1);
        self.not_before = Some(now + pause);
    }

    /// Whether it has ever been carried.
    pub(super) fn was_carried(&self) -> bool {
        self.carried
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tries_until_something_is_known_and_then_all_do() {
        let mut memory = Memory::default();
        let now = Instant::now();
        assert!(memory.may_try(now) && !memory.may_try(now));
        // Should nothing ever come of it, another tries.
        assert!(memory.may_try(now + FIRST_PAUSE));
        memory.carried();
        assert!(memory.may_try(now) && memory.may_try(now));
    }

    #[test]
    fn after_a_refusal_one_tries_at_a_time_again() {
        let mut memory = Memory::default();
        let now = Instant::now();
        memory.carried();
        memory.refused(now);
        let later = now + FIRST_PAUSE;
        assert!(!memory.may_try(now) && memory.may_try(later) && !memory.may_try(later));
    }

    #[test]
    fn pauses_grow_and_end_where_they_should() {
        for (carried, last) in [(false, LAST_PAUSE_UNKNOWN), (true, LAST_PAUSE)] {
            let mut memory = Memory::default();
            let mut now = Instant::now();
            if carried {
                memory.carried();
            }
            let mut longest = Duration::ZERO;
            for refusal in 0..40 {
                memory.refused(now);
                let mut waited = Duration::ZERO;
                while !memory.may_try(now + waited) {
                    waited += FIRST_PAUSE;
                }
                assert!(waited >= longest, "refusal {refusal}");
                longest = waited;
                now += waited;
            }
            assert_eq!(longest, last);
            assert_eq!(memory.was_carried(), carried);
            memory.carried();
            assert!(memory.may_try(now) && memory.may_try(now));
        }
    }
}
