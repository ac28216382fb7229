//! Keeps a stream to a rate.

use std::time::{Duration, Instant};

/// A stream's rate, and when it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    began: Instant,
    rate_bits: u64,
}

impl Pacer {
    pub(crate) fn new(began: Instant, rate_bits: u64) -> Self {
        Self { began, rate_bits: rate_bits.max(1) }
    }

    /// How long to wait, at `now`, before what follows the first `bytes` may move.
    pub(crate) fn delay(&self, bytes: u64, now: Instant) -> Duration {
        let due_s = bytes as f64 * 8.0 / self.rate_bits as f64;
        let due = Duration::try_from_secs_f64(due_s).unwrap_or(Duration::MAX);
        due.saturating_sub(now.saturating_duration_since(self.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_due_at_the_rate() {
        let began = Instant::now();
        let pacer = Pacer::new(began, 8_000_000);
        let after = |milliseconds| began + Duration::from_millis(milliseconds);
        assert_eq!(pacer.delay(0, began), Duration::ZERO);
        assert_eq!(pacer.delay(500_000, began), Duration::from_millis(500));
        assert_eq!(pacer.delay(500_000, after(400)), Duration::from_millis(100));
        assert_eq!(pacer.delay(500_000, after(600)), Duration::ZERO);
        assert!(Pacer::new(began, 1).delay(u64::MAX, began) > Duration::from_secs(1 << 40));
    }
}
