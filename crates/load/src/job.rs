//! What one thread of a run is to do, and what it found out.

use std::time::{Duration, Instant};

use linerate_os::usage::ThreadCpu;

use crate::tally::Tally;

/// What one thread is to do.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) thread: u32,
    pub(crate) threads: u32,
    pub(crate) connections: u32,
    /// Requests a second of this thread alone.
    pub(crate) rate: Option<f64>,
    pub(crate) cpu: Option<usize>,
    pub(crate) spin: bool,
    pub(crate) timeout: Duration,
    pub(crate) warm_up: Duration,
    /// How long to measure; without it the requests' number decides.
    pub(crate) measure: Option<Duration>,
}

/// What one thread found out.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    pub(crate) cpu: ThreadCpu,
    /// Seconds that it could have run but was not given a CPU.
    pub(crate) waited_s: Option<f64>,
    /// Of a thread that spins, the share of its looks that found something.
    pub(crate) fruitful_looks: Option<f64>,
}
