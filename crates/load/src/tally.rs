//! What one thread counts, and how threads' counts are added up.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use linerate_record::Version;

use crate::report::{Distribution, Mismatch, Totals};

/// The longest time that is told from longer ones, in µs: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// Significant decimal digits of times.
const DIGITS: u8 = 3;
/// Mismatches that are described; all are counted.
const MISMATCHES_SHOWN: usize = 16;

/// Times, as they fall into a histogram; made with the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Option<Box<Histogram<u64>>>);

impl Times {
    pub(crate) fn record(&mut self, time: Duration) {
        if self.0.is_none() {
            self.0 = Histogram::new_with_bounds(1, LONGEST_US, DIGITS).ok().map(Box::new);
        }
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(LONGEST_US));
        }
    }

    fn add(&mut self, other: &Self) {
        match (&mut self.0, &other.0) {
            (Some(own), Some(other)) => {
                // Both have the same bounds, so that nothing in one is too large for the other.
                let _ = own.add(other.as_ref());
            }
            (None, Some(_)) => self.0.clone_from(&other.0),
            (_, None) => {}
        }
    }

    pub(crate) fn distribution(&self) -> Distribution {
        let Some(histogram) = self.0.as_ref().filter(|histogram| !histogram.is_empty()) else {
            return Distribution::default();
        };
        let at = |percentile: f64| histogram.value_at_percentile(percentile);
        Distribution {
            count: histogram.len(),
            mean_us: histogram.mean(),
            deviation_us: histogram.stdev(),
            min_us: histogram.min(),
            p50_us: at(50.0),
            p75_us: at(75.0),
            p90_us: at(90.0),
            p99_us: at(99.0),
            p999_us: at(99.9),
            p9999_us: at(99.99),
            max_us: histogram.max(),
        }
    }
}

/// What a handshake agreed on: version, cipher suite, and the group if keys were exchanged.
pub(crate) type Agreement = (Version, &'static str, Option<&'static str>);

/// The counts of one thread, or of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) totals: Totals,
    pub(crate) latency: Times,
    pub(crate) first_byte: Times,
    pub(crate) transfer: Times,
    pub(crate) connect: Times,
    pub(crate) handshake: Times,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) negotiated: BTreeMap<Agreement, u64>,
    pub(crate) mismatches: Vec<Mismatch>,
}

impl Tally {
    /// Begins to count; but what connections agreed on while warming up still holds for those that are kept.
    pub(crate) fn forget_the_warm_up(&mut self) {
        *self = Self { negotiated: std::mem::take(&mut self.negotiated), ..Self::default() };
    }

    /// Counts a failure of this kind.
    pub(crate) fn fail(&mut self, kind: &str) {
        match self.errors.get_mut(kind) {
            Some(count) => *count += 1,
            None => {
                self.errors.insert(kind.to_owned(), 1);
            }
        }
    }

    /// What is under way or due when the time is over is told, so that a server that stalls at the end cannot hide it.
    pub(crate) fn leave_unanswered(&mut self, count: u64, oldest: Option<Instant>, end: Instant) {
        self.totals.unanswered = count;
        self.totals.oldest_unanswered_us = oldest.map_or(0, |oldest| {
            u64::try_from(end.saturating_duration_since(oldest).as_micros()).unwrap_or(u64::MAX)
        });
    }

    /// Describes a mismatch, if there is room.
    pub(crate) fn mismatch(&mut self, mismatch: Mismatch) {
        if self.mismatches.len() < MISMATCHES_SHOWN {
            self.mismatches.push(mismatch);
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.totals.add(&other.totals);
        for (own, other) in [
            (&mut self.latency, &other.latency),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.transfer, &other.transfer),
            (&mut self.connect, &other.connect),
            (&mut self.handshake, &other.handshake),
        ] {
            own.add(other);
        }
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        for (agreed, count) in other.negotiated {
            *self.negotiated.entry(agreed).or_default() += count;
        }
        other.mismatches.into_iter().for_each(|mismatch| self.mismatch(mismatch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_over_threads() {
        let mut all = Tally::default();
        assert_eq!(all.latency.distribution().count, 0);
        for thread in 0..4u64 {
            let mut one = Tally::default();
            for time in 1..=250 {
                one.latency.record(Duration::from_millis(thread * 250 + time));
            }
            one.fail("kind");
            all.add(one);
        }
        let found = all.latency.distribution();
        assert_eq!((found.count, all.errors["kind"]), (1000, 4));
        for (found, expected) in [(found.p50_us, 500e3), (found.p90_us, 900e3), (found.max_us, 1000e3)] {
            assert!((found as f64 / expected - 1.0).abs() < 0.002, "{found} for {expected}");
        }
        all.latency.record(Duration::from_secs(1_000_000));
        assert!(all.latency.distribution().max_us >= LONGEST_US);
    }
}
