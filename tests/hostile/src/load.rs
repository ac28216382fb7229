//! Load beside a fault: the project's load client, which compares every byte, on a thread of its own.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Result, anyhow};
use linerate_load::{
    LoadError, LoadPlan, Sayings, Target,
    plan::{BodyUse, Trust, Until},
    report::LoadReport,
};

use crate::visitor::Visitor;

/// The longest that a load lasts that is not stopped.
const LIMIT: Duration = Duration::from_secs(3600);

/// Load under way. Stopped when dropped.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<LoadReport, LoadError>>>,
}

impl Load {
    /// Begins: `connections` ask for these files in turn, each as soon as it was answered. `compare_with` is the folder
    /// that URLs' paths are below.
    #[must_use]
    pub fn start(
        visitor: &Visitor,
        names: &[&str],
        compare_with: PathBuf,
        connections: u32,
        close: bool,
    ) -> Self {
        let target = |name: &&str| Target {
            tls: visitor.tls.is_some(),
            host: visitor.address.ip().to_string(),
            port: visitor.address.port(),
            path: format!("/{}{name}", visitor.prefix),
        };
        let plan = LoadPlan {
            connections,
            close,
            trust: if visitor.tls.is_some() { Trust::Anyone } else { Trust::System },
            body: BodyUse::Verify(compare_with),
            timeout: visitor.patience,
            ..LoadPlan::new(names.iter().map(target).collect(), Until::Time(LIMIT))
        };
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || linerate_load::run(&plan, &stopped, Sayings::default()));
        Self { stop, thread: Some(thread) }
    }

    /// Ends it and says what came.
    ///
    /// # Errors
    /// There was no run.
    pub fn finish(mut self) -> Result<LoadReport> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or_else(|| anyhow!("the load has ended before"))?;
        let report = thread.join().map_err(|_| anyhow!("the load client panicked"))?;
        report.map_err(|error| anyhow!("the load client: {error}"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How many requests failed, bytes that were wrong included.
#[must_use]
pub fn failures(report: &LoadReport) -> u64 {
    report.errors.values().sum::<u64>() + report.mismatches.len() as u64
}

/// Failures in words: "0 of 3,000 requests failed".
#[must_use]
pub fn say(report: &LoadReport) -> String {
    let mut text = format!("{} of {} requests failed", failures(report), report.totals.requests);
    let kinds: Vec<String> = report.errors.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if !kinds.is_empty() {
        text += &format!(" ({})", kinds.join(", "));
    }
    if !report.mismatches.is_empty() {
        text += &format!(", {} responses with wrong bytes", report.mismatches.len());
    }
    text
}
