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
    plan::{BodyUse, LoadPlan, Until},
    progress::Watcher,
    report::{LINE_MEASURED, LINE_MEASURING, LoadReport, SCHEMA},
    shared::Shared,
    tally::Tally,
    workbench::Run,
    worker::{Job, Outcome, Worker},
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

/// Makes the run that `plan` describes. It ends early, and is reported all the same, once `interrupt` is set.
///
/// # Errors
/// There was no run: [`LoadError`]. What fails within one is counted in the report.
pub fn run(plan: &LoadPlan, interrupt: &AtomicBool, sayings: Sayings) -> Result<LoadReport, LoadError> {
    plan.check()?;
    let prepared = Run::prepare(plan)?;
    let open_files = linerate_os::limits::raise_open_files();
    let sources = prepared.origins.iter().map(|origin| origin.forms.len() as u64).sum::<u64>();
    let needed = u64::from(plan.connections) + 2 * u64::from(plan.threads) + sources + OTHER_FILES;
    if needed > open_files {
        return Err(LoadError::OpenFiles { needed, limit: open_files });
    }
    let requests = match plan.until {
        Until::Requests(requests) => requests,
        Until::Time(_) => u64::MAX,
    };
    let shared = Shared::new(plan.threads, plan.connections, requests);
    let (outcomes, control, started_unix_s) = thread::scope(|scope| {
        let mut threads = Vec::new();
        for thread in 0..plan.threads {
            let job = job(plan, thread);
            let (prepared, shared) = (&prepared, &shared);
            let work = move || match Worker::new(job, prepared, shared).and_then(Worker::work) {
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
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| (since + plan.warm_up).as_secs());
        let before = watch(plan, &shared, start, interrupt, sayings);
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
    Ok(report(plan, outcomes, control, (started_unix_s, open_files, interrupted)))
}

/// Watches until the run is over. Gives what this thread had cost when measuring began.
fn watch(
    plan: &LoadPlan,
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
    let measure_from = start + plan.warm_up;
    let stop_at = measured_time(plan).map(|time| measure_from + time);
    let mut watcher = Watcher::new(plan, start, sayings.progress);
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

fn measured_time(plan: &LoadPlan) -> Option<Duration> {
    match plan.until {
        Until::Time(time) => Some(time),
        Until::Requests(_) => None,
    }
}

fn job(plan: &LoadPlan, thread: u32) -> Job {
    // The first threads take what does not divide evenly.
    let connections = plan.connections / plan.threads + u32::from(thread < plan.connections % plan.threads);
    let share = f64::from(connections) / f64::from(plan.connections);
    Job {
        thread,
        threads: plan.threads,
        connections,
        rate: plan.rate.map(|rate| rate * share),
        cpu: (!plan.cpus.is_empty()).then(|| plan.cpus[thread as usize % plan.cpus.len()]),
        spin: plan.spin,
        timeout: plan.timeout,
        warm_up: plan.warm_up,
        measure: measured_time(plan),
    }
}

fn report(
    plan: &LoadPlan,
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
        command: plan.command.clone(),
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
        rate_per_s: plan.rate,
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
        discarded: plan.body == BodyUse::Discard,
        verified: matches!(plan.body, BodyUse::Verify(_)),
        client_limited,
        interrupted,
    }
}
