//! A run from its plan to its report.

use std::{
    io::{self, Write},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use linerate_os::usage::{self, ThreadCpu};

use crate::{
    LoadError, cost, environment,
    job::{Job, Outcome},
    plan::{BodyUse, LoadPlan, Until},
    progress::Watcher,
    report::{LINE_MEASURED, LINE_MEASURING, LoadReport, SCHEMA},
    shared::Shared,
    tally::Tally,
    workbench::Run,
    worker::Worker,
};

/// Descriptors beside those of connections.
const OTHER_FILES: u64 = 32;
/// How often the watching thread looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(20);

/// What is said on standard error while a run goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sayings {
    /// A line that tells how far it is, written over and over.
    pub progress: bool,
    /// [`LINE_MEASURING`] and [`LINE_MEASURED`], for a program that started this one.
    pub marks: bool,
}

/// How a run is shaped, whatever is asked for in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conduct<'a> {
    pub(crate) threads: u32,
    pub(crate) connections: u32,
    /// Files that bytes are compared with.
    pub(crate) sources: u64,
    pub(crate) until: Until,
    pub(crate) warm_up: Duration,
    /// Requests a second, all threads together.
    pub(crate) rate: Option<f64>,
    pub(crate) spin: bool,
    pub(crate) cpus: &'a [usize],
    pub(crate) timeout: Duration,
}

/// Makes the run that `plan` describes. It ends early, and is reported all the same, once `interrupt` is set.
///
/// # Errors
/// There was no run: [`LoadError`]. What fails within one is counted in the report.
pub fn run(plan: &LoadPlan, interrupt: &AtomicBool, sayings: Sayings) -> Result<LoadReport, LoadError> {
    plan.check()?;
    let prepared = Run::prepare(plan)?;
    let shape = Conduct {
        threads: plan.threads,
        connections: plan.connections,
        sources: prepared.origins.iter().map(|origin| origin.forms.len() as u64).sum(),
        until: plan.until,
        warm_up: plan.warm_up,
        rate: plan.rate,
        spin: plan.spin,
        cpus: &plan.cpus,
        timeout: plan.timeout,
    };
    let mut report = conduct(&shape, interrupt, sayings, |job, shared| {
        Worker::new(job, &prepared, shared).and_then(Worker::work)
    })?;
    report.command.clone_from(&plan.command);
    report.discarded = plan.body == BodyUse::Discard;
    report.verified = matches!(plan.body, BodyUse::Verify(_));
    Ok(report)
}

/// Runs threads that do `work`, from the moment when all are ready to the end, and adds up what they found out.
///
/// # Errors
/// There was no run.
pub(crate) fn conduct(
    shape: &Conduct<'_>,
    interrupt: &AtomicBool,
    sayings: Sayings,
    work: impl Fn(Job, &Shared) -> Result<Outcome, LoadError> + Sync,
) -> Result<LoadReport, LoadError> {
    let open_files = linerate_os::limits::raise_open_files();
    let needed = u64::from(shape.connections) + 2 * u64::from(shape.threads) + shape.sources + OTHER_FILES;
    if needed > open_files {
        return Err(LoadError::OpenFiles { needed, limit: open_files });
    }
    let requests = match shape.until {
        Until::Requests(requests) => requests,
        Until::Time(_) => u64::MAX,
    };
    let shared = Shared::new(shape.threads, shape.connections, requests);
    let (outcomes, control, started_unix_s) = thread::scope(|scope| {
        let mut threads = Vec::new();
        for thread in 0..shape.threads {
            let job = job(shape, thread);
            let (work, shared) = (&work, &shared);
            let work = move || match work(job, shared) {
                Ok(outcome) => Some(outcome),
                Err(error) => {
                    shared.give_up(error);
                    None
                }
            };
            let name = format!("load-{thread}");
            match thread::Builder::new().name(name).spawn_scoped(scope, work) {
                Ok(handle) => threads.push(handle),
                Err(source) => {
                    shared.give_up(LoadError::System { what: "a thread cannot be started", source });
                    break;
                }
            }
        }
        let start = shared.begin();
        let started_unix_s =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| (since + shape.warm_up).as_secs());
        let before = watch(shape, &shared, start, interrupt, sayings);
        shared.release();
        let outcomes: Vec<Outcome> =
            threads.into_iter().filter_map(|handle| handle.join().ok().flatten()).collect();
        let after = usage::current_thread().unwrap_or_default();
        let before = before.unwrap_or(after);
        let control =
            ThreadCpu { user_s: after.user_s - before.user_s, system_s: after.system_s - before.system_s };
        (outcomes, control, started_unix_s)
    });
    if let Some(failure) = shared.take_failure() {
        return Err(failure);
    }
    let interrupted = interrupt.load(Ordering::Relaxed);
    Ok(report(shape, outcomes, control, (started_unix_s, open_files, interrupted)))
}

/// Watches until the run is over. Gives what this thread had cost when measuring began.
fn watch(
    shape: &Conduct<'_>,
    shared: &Shared,
    start: Instant,
    interrupt: &AtomicBool,
    sayings: Sayings,
) -> Option<ThreadCpu> {
    let mark = |line: &str| {
        if sayings.marks {
            // The reader may be gone.
            let _ = writeln!(io::stderr(), "{line}");
        }
    };
    let measure_from = start + shape.warm_up;
    let stop_at = measured_time(shape).map(|time| measure_from + time);
    let mut watcher = Watcher::new((shape.warm_up, shape.until), start, sayings.progress);
    let mut before = None;
    loop {
        let now = Instant::now();
        if before.is_none() && now >= measure_from {
            before = Some(usage::current_thread().unwrap_or_default());
            mark(LINE_MEASURING);
        }
        if interrupt.load(Ordering::Relaxed) {
            shared.stop();
        }
        if shared.is_stopped() || stop_at.is_some_and(|end| now >= end) {
            break;
        }
        watcher.look(shared, now);
        let next = if before.is_none() { Some(measure_from) } else { stop_at };
        // The thread that stops the run wakes this one.
        thread::park_timeout(next.map_or(LOOK, |next| LOOK.min(next.saturating_duration_since(now))));
    }
    if before.is_some() {
        mark(LINE_MEASURED);
    }
    watcher.end();
    before
}

fn measured_time(shape: &Conduct<'_>) -> Option<Duration> {
    match shape.until {
        Until::Time(time) => Some(time),
        Until::Requests(_) => None,
    }
}

fn job(shape: &Conduct<'_>, thread: u32) -> Job {
    // The first threads take what does not divide evenly.
    let connections =
        shape.connections / shape.threads + u32::from(thread < shape.connections % shape.threads);
    let share = f64::from(connections) / f64::from(shape.connections);
    Job {
        thread,
        threads: shape.threads,
        connections,
        rate: shape.rate.map(|rate| rate * share),
        cpu: (!shape.cpus.is_empty()).then(|| shape.cpus[thread as usize % shape.cpus.len()]),
        spin: shape.spin,
        timeout: shape.timeout,
        warm_up: shape.warm_up,
        measure: measured_time(shape),
    }
}

fn report(
    shape: &Conduct<'_>,
    outcomes: Vec<Outcome>,
    control: ThreadCpu,
    (started_unix_s, open_files, interrupted): (u64, u64, bool),
) -> LoadReport {
    let from = outcomes.iter().map(|outcome| outcome.from).min();
    let to = outcomes.iter().map(|outcome| outcome.to).max();
    let measured_s = match (from, to) {
        (Some(from), Some(to)) => (to - from).as_secs_f64(),
        _ => 0.0,
    };
    let client = cost::of_threads(&outcomes, control, measured_s);
    let client_limited = cost::limit(&client, &outcomes);
    let mut all = Tally::default();
    outcomes.into_iter().for_each(|outcome| all.add(outcome.tally));
    LoadReport {
        schema: SCHEMA.to_owned(),
        command: Vec::new(),
        started_unix_s,
        environment: environment::capture(open_files),
        measured_s,
        totals: all.totals,
        latency: all.latency.distribution(),
        first_byte: all.first_byte.distribution(),
        transfer: all.transfer.distribution(),
        connect: all.connect.distribution(),
        handshake: all.handshake.distribution(),
        errors: all.errors,
        statuses: all.statuses,
        mismatches: all.mismatches,
        rate_per_s: shape.rate,
        client,
        negotiated: all
            .negotiated
            .into_iter()
            .map(|((version, suite, group), count)| {
                let version = version.label().replace("TLSv", "TLS ");
                let group = group.map_or(String::new(), |group| format!(", {group}"));
                (format!("{version}, {suite}{group}"), count)
            })
            .collect(),
        discarded: false,
        verified: false,
        client_limited,
        interrupted,
    }
}
