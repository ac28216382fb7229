//! A well-behaved client beside the fault: how long its requests take, and whether they succeed.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use linerate_end_to_end::pattern;
use serde_json::{Map, Value, json};

use crate::{arena::PROBE, visitor::Visitor};

/// The time from one request to the next.
const REST: Duration = Duration::from_millis(15);

/// What the probe met in a span of time.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// How long each request took that succeeded, connection and handshake included, in µs.
    times_us: Vec<u64>,
    /// Requests that failed, and how.
    pub errors: Vec<String>,
    /// Whole responses with bytes that are not the file's.
    pub wrong: usize,
}

impl Figures {
    /// So many requests were made.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.times_us.len() + self.errors.len() + self.wrong
    }

    /// Whether all succeeded, and there was at least one.
    #[must_use]
    pub fn is_flawless(&self) -> bool {
        !self.times_us.is_empty() && self.errors.is_empty() && self.wrong == 0
    }

    fn quantile_ms(&self, share: f64) -> f64 {
        let times_ms: Vec<f64> = self.times_us.iter().map(|&time_us| time_us as f64 / 1000.0).collect();
        linerate_figures::quantile(&times_ms, share).unwrap_or_default()
    }

    /// The figures by name.
    #[must_use]
    pub fn figures(&self) -> Value {
        let mut map = Map::new();
        map.insert("requests".to_owned(), self.requests().into());
        map.insert("errors".to_owned(), self.errors.len().into());
        map.insert("wrong".to_owned(), self.wrong.into());
        for (name, share) in [("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1.0)] {
            map.insert(name.to_owned(), json!(self.quantile_ms(share)));
        }
        map.into()
    }

    /// In words: "0 of 200 failed, p50 3 ms, p99 9 ms, max 12 ms".
    #[must_use]
    pub fn say(&self) -> String {
        let mut text = format!("{} of {} failed", self.errors.len() + self.wrong, self.requests());
        if let Some(first) = self.errors.first() {
            text += &format!(" ({first})");
        }
        if !self.times_us.is_empty() {
            let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| self.quantile_ms(share));
            text += &format!(", p50 {p50:.0} ms, p99 {p99:.0} ms, max {max:.0} ms");
        }
        text
    }
}

/// The probe, on a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Probe {
    figures: Arc<Mutex<Figures>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Probe {
    /// Begins to ask for the probe's file, with a connection for each request.
    #[must_use]
    pub fn start(visitor: Visitor) -> Self {
        let (figures, stop) = (Arc::<Mutex<Figures>>::default(), Arc::<AtomicBool>::default());
        let (seen, stopped) = (Arc::clone(&figures), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let bytes = pattern(PROBE.0, PROBE.1);
            while !stopped.load(Ordering::Relaxed) {
                ask(&visitor, &bytes, &seen);
                thread::sleep(REST);
            }
        });
        Self { figures, stop, thread: Some(thread) }
    }

    /// What it met since the last call.
    #[must_use]
    pub fn take(&self) -> Figures {
        std::mem::take(&mut *self.figures.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until one more request is over, whether it succeeded or not, but not longer than this.
    pub fn wait_for_a_request(&self, patience: Duration) {
        let requests = || self.figures.lock().unwrap_or_else(PoisonError::into_inner).requests();
        let (before, begun) = (requests(), Instant::now());
        while requests() == before && begun.elapsed() < patience {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets it work for so long, and until it has made at least one request, and says what it met.
    #[must_use]
    pub fn watch(&self, span: Duration) -> Figures {
        drop(self.take());
        thread::sleep(span);
        while self.figures.lock().unwrap_or_else(PoisonError::into_inner).requests() == 0 {
            thread::sleep(REST);
        }
        self.take()
    }
}

fn ask(visitor: &Visitor, bytes: &[u8], seen: &Mutex<Figures>) {
    let fetched = visitor.fetch(PROBE.0);
    let mut figures = seen.lock().unwrap_or_else(PoisonError::into_inner);
    if fetched.is(bytes) {
        figures.times_us.push(u64::try_from(fetched.took.as_micros()).unwrap_or(u64::MAX));
    } else if fetched.status == 200 && !fetched.is_right_as_far_as_it_came(bytes) {
        figures.wrong += 1;
    } else {
        figures.errors.push(match fetched.status {
            0 | 200 => fetched.ending.to_string(),
            status => format!("status {status}"),
        });
    }
}

/// One request of a well-behaved client: whether the file came, whole and right.
#[must_use]
pub fn serves(visitor: &Visitor) -> bool {
    visitor.fetch(PROBE.0).is(&pattern(PROBE.0, PROBE.1))
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
