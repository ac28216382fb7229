//! When requests are due at a given rate. Late ones are not forgotten: the next request is due when it is due, however
//! late the one before it was (no coordinated omission).

use std::time::{Duration, Instant};

/// The due times of one thread's requests.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    start: Instant,
    interval_s: f64,
    next: u64,
}

impl Schedule {
    /// `rate` requests a second from `start` on; threads that share a rate begin a `phase` (0 to 1) of an interval
    /// apart.
    pub(crate) fn new(start: Instant, rate: f64, phase: f64) -> Self {
        let interval_s = 1.0 / rate;
        Self { start: start + Duration::from_secs_f64(interval_s * phase), interval_s, next: 0 }
    }

    /// When the next request is due. Computed from the start, so that no error adds up.
    pub(crate) fn due(&self) -> Instant {
        self.start + Duration::from_secs_f64(self.next as f64 * self.interval_s)
    }

    /// The next request was sent, or at least taken on.
    pub(crate) fn advance(&mut self) {
        self.next += 1;
    }

    /// How many requests are due by `now` and were not taken on.
    pub(crate) fn overdue(&self, now: Instant) -> u64 {
        let elapsed_s = now.saturating_duration_since(self.start).as_secs_f64();
        let due = if now >= self.start { (elapsed_s / self.interval_s) as u64 + 1 } else { 0 };
        due.saturating_sub(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_do_not_depend_on_when_requests_are_sent() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, 1000.0, 0.5);
        assert_eq!(schedule.overdue(start), 0);
        assert_eq!(schedule.due(), start + Duration::from_micros(500));
        for _ in 0..1_000_000 {
            schedule.advance();
        }
        let late = schedule.due() - start;
        assert!(late.abs_diff(Duration::from_micros(1_000_000_500)) < Duration::from_micros(1), "{late:?}");
        assert_eq!(schedule.overdue(start + Duration::from_millis(1_000_010)), 10);
    }
}
