//! How many connections an adapter is asked to set up: a token bucket with hysteresis.
//!
//! An adapter sets connections up one after the other, by commands to its firmware, while the worker waits. Asked for
//! more than it can do, it makes everybody wait, accepts among them. The bucket keeps what is asked for below that.

/// Set-ups that may still be made. In any span of time no more are granted than `burst + rate · span` (INV-PLACE-1).
#[derive(Clone, Debug, PartialEq)]
pub struct SetUpBudget {
    rate_per_s: f64,
    burst: f64,
    level: f64,
    /// The latest time that was heard of.
    now_ns: u64,
    /// Spent, and not open again until half of the burst is there: a trickle of single set-ups between refusals would
    /// serve nobody well.
    closed: bool,
}

impl SetUpBudget {
    /// The time for which a budget may be spent at once.
    const BURST_S: f64 = 0.05;

    /// A full bucket, which fills at `rate_per_s`; 0 or less grants nothing.
    #[must_use]
    pub fn new(rate_per_s: f64) -> Self {
        let rate_per_s = if rate_per_s.is_finite() { rate_per_s.max(0.0) } else { 0.0 };
        let burst = if rate_per_s > 0.0 { (rate_per_s * Self::BURST_S).max(1.0) } else { 0.0 };
        Self { rate_per_s, burst, level: burst, now_ns: 0, closed: burst == 0.0 }
    }

    /// Set-ups a second that it grants in the long run.
    #[must_use]
    pub fn rate_per_s(&self) -> f64 {
        self.rate_per_s
    }

    /// Set-ups that it grants at once at most.
    #[must_use]
    pub fn burst(&self) -> f64 {
        self.burst
    }

    /// Set-ups that are left at this moment.
    #[must_use]
    pub fn left(&self) -> f64 {
        if self.closed { 0.0 } else { self.level }
    }

    /// Whether there is a set-up to be taken at this moment. A clock that goes back adds nothing.
    pub fn is_open(&mut self, now_ns: u64) -> bool {
        self.fill(now_ns);
        self.closed |= self.level < 1.0;
        !self.closed
    }

    /// Takes one set-up; false if the budget is spent.
    pub fn take(&mut self, now_ns: u64) -> bool {
        let taken = self.is_open(now_ns);
        if taken {
            self.level -= 1.0;
        }
        taken
    }

    /// Adds what has become due.
    pub fn fill(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        self.level = (self.level + elapsed_ns as f64 * 1e-9 * self.rate_per_s).min(self.burst);
        if self.closed && self.burst > 0.0 && self.level >= (self.burst / 2.0).max(1.0) {
            self.closed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INV-PLACE-1, whatever the times at which it is asked.
    #[test]
    fn no_span_of_time_grants_more_than_burst_and_rate() {
        let mut dice = fastrand::Rng::with_seed(11);
        for _ in 0..200 {
            let rate_per_s = [1.0, 17.0, 850.0, 16_500.0, 100_000.0][dice.usize(0..5)];
            let mut budget = SetUpBudget::new(rate_per_s);
            let mut now_ns = dice.u64(0..1 << 40);
            let mut granted_ns = Vec::new();
            for _ in 0..2000 {
                now_ns += dice.u64(0..=(4e9 / rate_per_s) as u64) * u64::from(dice.u8(0..4) == 0);
                if budget.take(now_ns) {
                    granted_ns.push(now_ns);
                }
            }
            assert!(!granted_ns.is_empty());
            for first in (0..granted_ns.len()).step_by(7) {
                for last in (first..granted_ns.len()).step_by(5) {
                    let span_s = (granted_ns[last] - granted_ns[first]) as f64 * 1e-9;
                    let allowed = budget.burst() + rate_per_s * span_s + 1e-6;
                    assert!((last - first + 1) as f64 <= allowed, "{} in {span_s} s", last - first + 1);
                }
            }
        }
    }

    #[test]
    fn in_the_long_run_it_grants_its_rate() {
        let mut budget = SetUpBudget::new(850.0);
        let granted = (0..10_000_000).step_by(100).filter(|us| budget.take(us * 1000)).count();
        assert!((8400..=8600).contains(&granted), "{granted}");
    }

    #[test]
    fn once_spent_it_stays_closed_until_half_is_back() {
        let mut budget = SetUpBudget::new(1000.0);
        assert_eq!((0..100).filter(|_| budget.take(1)).count(), 50);
        // One token is back after a millisecond, and is not granted alone.
        assert!(!budget.take(2_000_000));
        assert!(!budget.take(24_000_000));
        assert!(budget.take(26_000_000));
    }

    #[test]
    fn a_clock_that_goes_back_grants_nothing() {
        let mut budget = SetUpBudget::new(1.0);
        assert!(budget.take(5_000_000_000));
        assert!(!budget.take(1));
        assert!(!budget.take(5_500_000_000), "half a second of one a second");
        assert!(budget.take(6_000_000_001));
    }

    #[test]
    fn no_rate_grants_nothing() {
        for rate_per_s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(!SetUpBudget::new(rate_per_s).take(u64::MAX), "{rate_per_s}");
        }
    }
}
