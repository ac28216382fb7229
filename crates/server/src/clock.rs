//! A worker's clock: the time that its peers have had.
//!
//! Deadlines are about peers, so time in which the worker did not run is not theirs: it was stopped (SIGSTOP, a paused
//! virtual machine, a host that had no CPU for it), or a system call held it up. What the peers sent or took meanwhile waits
//! in the kernel, and would be judged before the worker has looked at it. So the clock stands still over such a gap, and no
//! deadline is judged before the tasks that the gap's end woke have run.
//!
//! `Instant` is `CLOCK_MONOTONIC` on Linux, which stands still by itself while the machine is suspended; `CLOCK_BOOTTIME`
//! would not, and no deadline depends on it.

use crate::watch::SWEEP_INTERVAL;
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// A sweep that comes later than this after the one before found the worker away in between.
const LONGEST_STEP: Duration = Duration::from_millis(2 * SWEEP_INTERVAL.as_millis() as u64);

/// Set by the worker's sweep, read by everything else: exact enough for deadlines, and free.
#[derive(Debug)]
pub(crate) struct WorkerClock {
    started: Instant,
    /// When the last sweep was, from `started` on.
    swept: Cell<Duration>,
    now_ms: Cell<u64>,
    was_away: Cell<bool>,
}

impl WorkerClock {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            swept: Cell::new(Duration::ZERO),
            now_ms: Cell::new(0),
            was_away: Cell::new(false),
        }
    }

    /// Milliseconds that the worker has run, as of the last sweep.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    /// A sweep begins. Returns whether it may judge deadlines.
    pub(crate) fn advance(&self) -> bool {
        self.advance_to(self.started.elapsed())
    }

    fn advance_to(&self, elapsed: Duration) -> bool {
        let step = elapsed.saturating_sub(self.swept.replace(elapsed));
        let is_away = step > LONGEST_STEP;
        // A worker that is late each time is short of CPU: its clock is slow then, and goes on all the same.
        let counts = !is_away || self.was_away.get();
        self.was_away.set(is_away);
        if counts {
            let counted = if is_away { SWEEP_INTERVAL } else { step };
            self.now_ms.set(self.now_ms.get() + u64::try_from(counted.as_millis()).unwrap_or(u64::MAX));
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each sweep at these times, in milliseconds, makes of the clock: what it says, and whether deadlines are judged.
    fn sweeps(at_ms: &[u64]) -> Vec<(u64, bool)> {
        let clock = WorkerClock::new();
        at_ms
            .iter()
            .map(|&elapsed_ms| {
                let judges = clock.advance_to(Duration::from_millis(elapsed_ms));
                (clock.now_ms(), judges)
            })
            .collect()
    }

    #[test]
    fn time_in_which_the_worker_did_not_run_is_not_its_peers() {
        assert_eq!(sweeps(&[200, 400, 650, 1050]), [(200, true), (400, true), (650, true), (1050, true)]);
        // Stopped for an hour: nothing is judged by the first sweep, and the hour does not count in those after it.
        assert_eq!(sweeps(&[200, 3_600_400, 3_600_600]), [(200, true), (200, false), (400, true)]);
        // Stopped twice in a row, with some sweeps in between.
        assert_eq!(
            sweeps(&[200, 9_200, 9_400, 9_600, 20_000, 20_200]),
            [(200, true), (200, false), (400, true), (600, true), (600, false), (800, true)]
        );
    }

    #[test]
    fn a_worker_that_is_always_late_judges_all_the_same() {
        let sweeps = sweeps(&[1000, 2000, 3000, 4000]);
        assert_eq!(sweeps, [(0, false), (200, true), (400, true), (600, true)]);
    }
}
