//! Histograms of durations, with bounds fixed beforehand.

use super::Counter;
use std::time::Duration;

/// Bounds for handshakes: 100 µs to 10 s.
pub(crate) const HANDSHAKE_BOUNDS_US: [u64; 10] =
    [100, 250, 500, 1_000, 2_500, 10_000, 50_000, 250_000, 1_000_000, 10_000_000];
/// Bounds for requests, from their last byte read to the response's last byte sent: 50 µs to 1,000 s.
pub(crate) const REQUEST_BOUNDS_US: [u64; 12] =
    [50, 100, 250, 1_000, 5_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Counts of durations up to each bound; the last bucket has none.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds_us: &'static [u64],
    buckets: Vec<Counter>,
    sum_us: Counter,
}

impl Histogram {
    pub(crate) fn new(bounds_us: &'static [u64]) -> Self {
        let buckets = (0..=bounds_us.len()).map(|_| Counter::default()).collect();
        Self { bounds_us, buckets, sum_us: Counter::default() }
    }

    pub(crate) fn observe(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = self.bounds_us.partition_point(|&bound| bound < us);
        self.buckets[bucket].increment();
        self.sum_us.add(us);
    }

    pub(crate) fn bounds_us(&self) -> &'static [u64] {
        self.bounds_us
    }

    /// Counts of the buckets in order, not cumulated.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.buckets.iter().map(Counter::value)
    }

    pub(crate) fn sum_us(&self) -> u64 {
        self.sum_us.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_whose_bound_they_do_not_exceed() {
        let histogram = Histogram::new(&[10, 20]);
        for us in [0, 10, 11, 20, 21, 1000] {
            histogram.observe(Duration::from_micros(us));
        }
        assert_eq!(histogram.counts().collect::<Vec<_>>(), [2, 2, 2]);
        assert_eq!(histogram.sum_us(), 1062);
    }
}
