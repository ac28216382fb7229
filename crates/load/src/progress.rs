//! The line that tells how far a run is.

use std::{
    io::{self, Write},
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use linerate_figures::{bytes, count, duration};

use crate::{plan::Until, shared::Shared};

/// How often it is written anew.
const INTERVAL: Duration = Duration::from_millis(500);

/// Watches a run from outside.
#[derive(Debug)]
pub(crate) struct Watcher {
    shows: bool,
    start: Instant,
    warm_up: Duration,
    until: Until,
    last: (Instant, u64),
    width: usize,
}

impl Watcher {
    pub(crate) fn new((warm_up, until): (Duration, Until), start: Instant, shows: bool) -> Self {
        Self { shows, start, warm_up, until, last: (start, 0), width: 0 }
    }

    /// Writes the line, if it is time.
    pub(crate) fn look(&mut self, shared: &Shared, now: Instant) {
        if !self.shows || now - self.last.0 < INTERVAL {
            return;
        }
        let sum =
            |counter: fn(&crate::shared::Progress) -> u64| shared.progress.iter().map(counter).sum::<u64>();
        let (responses, body_bytes, errors) = (
            sum(|progress| progress.responses.load(Relaxed)),
            sum(|progress| progress.body_bytes.load(Relaxed)),
            sum(|progress| progress.errors.load(Relaxed)),
        );
        let elapsed_s = (now - self.last.0).as_secs_f64();
        let rate = body_bytes.saturating_sub(self.last.1) as f64 / elapsed_s;
        self.last = (now, body_bytes);
        let line = format!(
            "{}: {} responses, {}, {}/s, {} errors",
            self.position(now - self.start, responses),
            count(responses),
            bytes(body_bytes as f64, 3),
            bytes(rate, 3),
            count(errors)
        );
        // Standard error gone is no reason to stop measuring.
        let _ =
            write!(io::stderr(), "\r{line:<width$}", width = self.width).and_then(|()| io::stderr().flush());
        self.width = line.chars().count();
    }

    fn position(&self, elapsed: Duration, responses: u64) -> String {
        if elapsed < self.warm_up {
            return format!("warming up, {} to go", duration(self.warm_up - elapsed));
        }
        match self.until {
            Until::Time(time) => format!("{} of {}", duration(elapsed - self.warm_up), duration(time)),
            Until::Requests(requests) => {
                format!("{:.0} % of {}", responses as f64 * 100.0 / requests as f64, count(requests))
            }
        }
    }

    /// Takes the line away.
    pub(crate) fn end(&mut self) {
        if self.width > 0 {
            let _ = write!(io::stderr(), "\r{:width$}\r", "", width = self.width);
        }
    }
}
