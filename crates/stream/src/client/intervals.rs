//! What is told while a run goes on: how far each stream is, interval by interval.

use crate::{
    group::Group,
    report::{Interval, IntervalStream, PathReport},
};
use std::time::{Duration, Instant};

/// The intervals of a run.
pub(super) struct Intervals<'a> {
    length: Option<Duration>,
    group: &'a Group,
    began: Instant,
    /// The end of the last one, and what had moved by then.
    last: Instant,
    bytes: Vec<u64>,
    retransmits: Vec<u32>,
    pub(super) all: Vec<Interval>,
    /// Nothing more is told: the run is over, and what is under way arrives.
    is_over: bool,
}

impl<'a> Intervals<'a> {
    pub(super) fn new(length: Option<Duration>, group: &'a Group, began: Instant) -> Self {
        let streams = group.lanes.len();
        let retransmits =
            group.lanes.iter().map(|lane| lane.path().map_or(0, |path| path.retransmits)).collect();
        Self {
            length,
            group,
            began,
            last: began,
            bytes: vec![0; streams],
            retransmits,
            all: Vec::new(),
            is_over: false,
        }
    }

    /// When the next is over.
    pub(super) fn next(&self) -> Option<Instant> {
        self.length.filter(|_| !self.is_over).map(|length| self.last + length)
    }

    /// The interval that is over now, if one is. Times are as the clock has them, not as they were due.
    pub(super) fn look(&mut self, now: Instant, end: Option<Instant>, is_stopped: bool) -> Option<Interval> {
        if is_stopped && !self.is_over && self.length.is_some() {
            self.is_over = true;
            // The part that is left behind the last whole one, unless it is a whole one that ends with the run.
            let least = if end.is_some() { Duration::from_millis(100) } else { Duration::ZERO };
            return (now.saturating_duration_since(self.last) > least).then(|| self.take(now));
        }
        let is_due = self.next().is_some_and(|next| now >= next);
        is_due.then(|| self.take(now))
    }

    /// What has come since, if no other interval tells of it.
    pub(super) fn rest(&mut self) -> Option<Interval> {
        (self.length.is_some() && !self.is_over).then(|| self.take(Instant::now()))
    }

    fn take(&mut self, now: Instant) -> Interval {
        let mut streams = Vec::with_capacity(self.bytes.len());
        let lanes = self.group.lanes.iter().zip(self.bytes.iter_mut().zip(&mut self.retransmits));
        for (lane, (bytes, retransmits)) in lanes {
            let moved = lane.moved_bytes();
            let path = if lane.sends { lane.path() } else { None };
            let path = path.map(|path| {
                let fresh = path.retransmits.saturating_sub(*retransmits);
                *retransmits = path.retransmits;
                PathReport { retransmits: fresh, ..path }
            });
            streams.push(IntervalStream {
                number: lane.number,
                sends: lane.sends,
                bytes: moved - *bytes,
                path,
            });
            *bytes = moved;
        }
        let since = |moment: Instant| moment.saturating_duration_since(self.began).as_secs_f64();
        let interval = Interval { start_s: since(self.last), end_s: since(now), streams };
        self.last = now;
        self.all.push(interval.clone());
        interval
    }
}
