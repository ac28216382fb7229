//! Medians, quartiles and the question whether a ratio has settled.
//!
//! A ratio is taken within a round, where both servers met the same state of the machine, and the rounds' ratios
//! are summed up by their median. Its uncertainty is the distribution-free confidence interval of a median: the
//! narrowest pair of order statistics, symmetric by rank, that covers the true median with at least 95 %
//! (binomial distribution with p = 1/2; no assumption on the shape of the noise). Unlike the range between the
//! quartiles this interval does become narrower with more rounds, so that "enough rounds" is a question with an
//! answer. With fewer than six rounds no pair reaches 95 %; the extremes are used then (five rounds: 93.75 %).

use serde::Serialize;

/// The interval's least coverage.
const COVERAGE: f64 = 0.95;

/// A series summed up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// How many values there are.
    pub(crate) count: usize,
    /// The middle value.
    pub(crate) median: f64,
    /// A quarter of the values lie below.
    pub(crate) lower_quartile: f64,
    /// A quarter of the values lie above.
    pub(crate) upper_quartile: f64,
    /// Lower end of the median's confidence interval.
    pub(crate) interval_low: f64,
    /// Upper end of the median's confidence interval.
    pub(crate) interval_high: f64,
}

impl Summary {
    /// Sums up `values`; `None` when there are none or one is not a number.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = interval_rank(sorted.len());
        Some(Self {
            count: sorted.len(),
            median: quantile(&sorted, 0.5),
            lower_quartile: quantile(&sorted, 0.25),
            upper_quartile: quantile(&sorted, 0.75),
            interval_low: sorted[rank],
            interval_high: sorted[sorted.len() - 1 - rank],
        })
    }

    /// Width of the median's confidence interval as a share of the median.
    pub(crate) fn spread(&self) -> f64 {
        if self.median == 0.0 {
            return f64::INFINITY;
        }
        (self.interval_high - self.interval_low) / self.median.abs()
    }
}

/// The quantile by linear interpolation between order statistics (Hyndman and Fan's type 7). `sorted` is not empty.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// How many values may be left out at each end so that the rest still covers the median with [`COVERAGE`].
fn interval_rank(count: usize) -> usize {
    let mut rank = 0;
    while 2 * (rank + 1) < count && coverage(count, rank + 1) >= COVERAGE {
        rank += 1;
    }
    rank
}

/// The chance that the true median lies between the values of rank `rank` from either end (ranks from 0).
fn coverage(count: usize, rank: usize) -> f64 {
    let mut term = 0.5_f64.powi(count as i32);
    let mut below = 0.0;
    for successes in 0..=rank {
        below += term;
        term *= (count - successes) as f64 / (successes + 1) as f64;
    }
    1.0 - 2.0 * below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn quartiles_interpolate() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        close(summary.median, 2.5);
        close(summary.lower_quartile, 1.75);
        close(summary.upper_quartile, 3.25);
        assert_eq!(summary.count, 4);
    }

    #[test]
    fn one_value_is_all_of_its_summary() {
        let summary = Summary::of(&[0.7]).unwrap();
        for found in [summary.median, summary.lower_quartile, summary.interval_low, summary.interval_high] {
            close(found, 0.7);
        }
        close(summary.spread(), 0.0);
    }

    #[test]
    fn nothing_and_not_a_number_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn coverage_is_the_binomial_one() {
        close(coverage(5, 0), 0.9375);
        close(coverage(6, 0), 0.96875);
        // Tables of the sign test: n = 9, second from either end, 96.09 %.
        close(coverage(9, 1), 1.0 - 2.0 * 10.0 / 512.0);
        assert!(coverage(30, 9) > 0.95 && coverage(30, 10) < 0.95);
    }

    #[test]
    fn the_interval_drops_outliers_once_there_are_enough_values() {
        assert_eq!(interval_rank(5), 0);
        assert_eq!(interval_rank(8), 0);
        assert_eq!(interval_rank(9), 1);
        assert_eq!(interval_rank(12), 2);
        assert_eq!(interval_rank(30), 9);
        let mut values = vec![1.0; 8];
        values.push(5.0);
        close(Summary::of(&values).unwrap().spread(), 0.0);
    }

    #[test]
    fn spread_is_relative_to_the_median() {
        let summary = Summary::of(&[0.48, 0.49, 0.50, 0.51, 0.52]).unwrap();
        close(summary.spread(), 0.08);
    }
}
