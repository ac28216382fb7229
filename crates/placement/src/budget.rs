//! Which connections get a set-up on the adapter: a token bucket with a price.
//!
//! An adapter sets connections up one after the other, by commands to its firmware. Asked for more than it can do, it makes
//! everybody wait. The bucket keeps what is asked for below that; how fast it fills is its pace's to say ([`Pace`]).
//!
//! # The price
//! When more responses would gain by a set-up than there are set-ups, those that gain most should have them. What comes next
//! is not known. So a set-up has a price, in the nanoseconds of CPU time that it has to save. While over half of the
//! bucket is full there is none. Below that it rises exponentially, from [`SetUpBudget::LEAST_PRICE_NS`] to
//! [`SetUpBudget::MOST_PRICE_NS`] for the last one:
//!
//! > price = least · (most / least) ^ (the part of the lower half that is gone)
//!
//! It is the threshold by which an online knapsack is filled: no rule that does not know the future is better against every
//! order in which responses may come (Zhou, Chakrabarty and Lukose, WINE 2008: of the best choice in hindsight at least
//! one part in `1 + ln(most / least)`). Where demand is steady it does far better: the level settles where as many
//! responses gain more than the price as set-ups come in. Let `p` be that price. The best choice in hindsight,
//! with `n` set-ups in hand, gains at most `n · p` and what single responses gain over `p`; those are all served here, and
//! the others that are served gain `p`. So what is lost is what the price wavers by. `tests/short_of_set_ups.rs` holds it
//! against the best choice in hindsight.
//!
//! Responses that gain much find set-ups left, because those that gain little stop at a higher level: between a gain and its
//! hundredfold lies a third of the lower half.

use crate::pace::Pace;

/// Set-ups that may still be made. In any span of time no more are granted than `burst + rate · span` (INV-PLACE-1).
#[derive(Clone, Debug, PartialEq)]
pub struct SetUpBudget {
    pace: Pace,
    burst: f64,
    level: f64,
    /// The latest time that was heard of.
    now_ns: u64,
}

impl SetUpBudget {
    /// The time for which a budget may be spent at once.
    const BURST_S: f64 = 0.5;
    /// But as many set-ups as this: with fewer there were no room for a price.
    const LEAST_BURST: f64 = 8.0;
    /// Below this no response gains.
    pub const LEAST_PRICE_NS: f64 = 1e3;
    /// A response that gains this much (about 10 GB) has a set-up as long as there is one.
    pub const MOST_PRICE_NS: f64 = 1e9;
    /// The binary logarithm of their quotient.
    const PRICE_DOUBLINGS: f64 = 19.931_568_569_324_174;

    /// A full bucket, which fills at `rate_per_s`; 0 or less grants nothing.
    #[must_use]
    pub fn new(rate_per_s: f64) -> Self {
        let rate_per_s = if rate_per_s.is_finite() { rate_per_s.max(0.0) } else { 0.0 };
        let burst = if rate_per_s > 0.0 { (rate_per_s * Self::BURST_S).max(Self::LEAST_BURST) } else { 0.0 };
        Self { pace: Pace::new(rate_per_s), burst, level: burst, now_ns: 0 }
    }

    /// Set-ups a second that it grants in the long run at most.
    #[must_use]
    pub fn most_per_s(&self) -> f64 {
        self.pace.most_per_s()
    }

    /// Set-ups a second that it grants as things are: less where they queue at the adapter.
    #[must_use]
    pub fn rate_per_s(&self) -> f64 {
        self.pace.rate_per_s()
    }

    /// Set-ups that it grants at once at most.
    #[must_use]
    pub fn burst(&self) -> f64 {
        self.burst
    }

    /// Set-ups that are left.
    #[must_use]
    pub fn left(&self) -> f64 {
        self.level
    }

    /// What a set-up has to save to be had; `None`: there is none left.
    #[must_use]
    pub fn price_ns(&self) -> Option<f64> {
        if self.level < 1.0 {
            return None;
        }
        let half = self.burst / 2.0;
        let gone = (half - (self.level - 1.0)) / half;
        Some(if gone <= 0.0 { 0.0 } else { Self::LEAST_PRICE_NS * (Self::PRICE_DOUBLINGS * gone).exp2() })
    }

    /// Takes one set-up; false if none is left.
    pub fn take(&mut self) -> bool {
        let is_left = self.level >= 1.0;
        if is_left {
            self.level -= 1.0;
        }
        is_left
    }

    /// One that was taken was not made.
    pub fn give_back(&mut self) {
        self.level = (self.level + 1.0).min(self.burst);
    }

    /// The adapter took a connection, in so much time: where set-ups queue there, it fills more slowly for a while.
    pub fn took(&mut self, took_ns: u64, now_ns: u64) {
        self.fill(now_ns);
        self.pace.took(took_ns, now_ns);
    }

    /// Adds what has become due. A clock that goes back adds nothing.
    pub fn fill(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        self.pace.pass(now_ns);
        self.level = (self.level + elapsed_ns as f64 * 1e-9 * self.pace.rate_per_s()).min(self.burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(budget: &mut SetUpBudget, now_ns: u64) -> bool {
        budget.fill(now_ns);
        budget.take()
    }

    /// INV-PLACE-1, whatever the times at which it is asked, what it is told, and what is given back.
    #[test]
    fn no_span_of_time_grants_more_than_burst_and_rate() {
        let mut dice = fastrand::Rng::with_seed(11);
        for _ in 0..200 {
            let rate_per_s = [1.0, 17.0, 850.0, 16_500.0, 100_000.0][dice.usize(0..5)];
            let mut budget = SetUpBudget::new(rate_per_s);
            let mut now_ns = dice.u64(0..1 << 40);
            let mut made_ns = Vec::new();
            for _ in 0..2000 {
                now_ns += dice.u64(0..=(4e9 / rate_per_s) as u64) * u64::from(dice.u8(0..4) == 0);
                if take(&mut budget, now_ns) {
                    if dice.u8(0..4) == 0 {
                        budget.give_back();
                        continue;
                    }
                    budget.took(dice.u64(0..1 << 24), now_ns);
                    made_ns.push(now_ns);
                }
            }
            assert!(!made_ns.is_empty());
            for first in (0..made_ns.len()).step_by(7) {
                for last in (first..made_ns.len()).step_by(5) {
                    let span_s = (made_ns[last] - made_ns[first]) as f64 * 1e-9;
                    let allowed = budget.burst() + rate_per_s * span_s + 1e-6;
                    assert!((last - first + 1) as f64 <= allowed, "{} in {span_s} s", last - first + 1);
                }
            }
        }
    }

    #[test]
    fn in_the_long_run_it_grants_its_rate() {
        let mut budget = SetUpBudget::new(850.0);
        let granted = (0..10_000_000).step_by(100).filter(|us| take(&mut budget, us * 1000)).count();
        assert!((8900..=8950).contains(&granted), "{granted}");
    }

    #[test]
    fn there_is_no_price_while_there_is_plenty() {
        for rate_per_s in [0.1, 10.0, 850.0, 100_000.0] {
            let mut budget = SetUpBudget::new(rate_per_s);
            let free = (0..).take_while(|_| budget.price_ns() == Some(0.0) && budget.take()).count() as f64;
            assert!((free - budget.burst() / 2.0).abs() <= 1.0, "{free} of {}", budget.burst());
            assert!(free >= 2.0, "a lone response always has one");
        }
    }

    #[test]
    fn the_price_rises_while_it_drains_and_falls_while_it_fills() {
        let mut budget = SetUpBudget::new(1000.0);
        assert_eq!(budget.burst(), 500.0);
        let mut prices = Vec::new();
        while let Some(price_ns) = budget.price_ns() {
            prices.push(price_ns);
            budget.take();
        }
        assert!(prices.is_sorted() && prices.len() == 500);
        // The first that has one, in the middle, the last.
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-6;
        assert!(prices[249] == 0.0 && prices[250] > SetUpBudget::LEAST_PRICE_NS);
        assert!(near(prices[374], 1e6), "{}", prices[374]);
        assert!(near(prices[499], SetUpBudget::MOST_PRICE_NS), "{}", prices[499]);
        let mut now_ns = 0;
        let mut before_ns = f64::INFINITY;
        while before_ns > 0.0 {
            now_ns += 1_000_000;
            budget.fill(now_ns);
            let price_ns = budget.price_ns().unwrap();
            assert!(price_ns < before_ns);
            before_ns = price_ns;
        }
        assert!(
            (249..=252).contains(&(now_ns / 1_000_000)),
            "half of it after a quarter of a second: {now_ns}"
        );
    }

    #[test]
    fn what_is_given_back_can_be_taken_and_no_more() {
        let mut budget = SetUpBudget::new(10.0);
        budget.give_back();
        assert_eq!(budget.left(), 8.0);
        assert_eq!((0..100).filter(|_| take(&mut budget, 0)).count(), 8);
        assert_eq!(budget.left(), 0.0);
        budget.give_back();
        assert!(take(&mut budget, 0) && !take(&mut budget, 0));
    }

    #[test]
    fn a_queue_at_the_adapter_makes_it_fill_more_slowly() {
        let mut budget = SetUpBudget::new(1000.0);
        let mut now_ns = 0;
        for set_up in 0..600 {
            now_ns += 20_000_000;
            budget.took(1_000_000 + set_up * 1_000_000, now_ns);
        }
        assert!(budget.rate_per_s() < 100.0, "{}", budget.rate_per_s());
        assert_eq!(budget.most_per_s(), 1000.0);
        while budget.take() {}
        let granted = (0..1000).filter(|ms| take(&mut budget, now_ns + ms * 1_000_000)).count();
        assert!(granted < 100, "{granted} in a second");
    }

    #[test]
    fn a_clock_that_goes_back_grants_nothing() {
        let mut budget = SetUpBudget::new(1.0);
        assert_eq!((0..9).filter(|_| take(&mut budget, 5_000_000_000)).count(), 8);
        assert!(!take(&mut budget, 1));
        assert!(!take(&mut budget, 5_500_000_000), "half a second of one a second");
        assert!(take(&mut budget, 6_000_000_001));
    }

    #[test]
    fn no_rate_grants_nothing() {
        for rate_per_s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut budget = SetUpBudget::new(rate_per_s);
            budget.fill(u64::MAX);
            budget.give_back();
            assert!(budget.price_ns().is_none() && !budget.take(), "{rate_per_s}");
        }
    }
}
