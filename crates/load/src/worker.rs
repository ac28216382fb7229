//! One thread of a run: its connections, and the loop that serves whichever of them can go on.

mod slots;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    io,
    time::{Duration, Instant},
};

use linerate_os::{processor, usage};
use mio::{Events, Poll, Token};

use crate::{
    LoadError,
    alarm::Alarm,
    cost::Waited,
    schedule::Schedule,
    shared::Shared,
    tally::Tally,
    workbench::{Run, Workbench},
};

use slots::Slot;

/// Events taken from the kernel at once.
const EVENTS: usize = 1024;
/// The longest sleep: how late a stop or the end of the time may be noticed by a thread with nothing to do.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);
/// How often connections that wait for too long are looked for.
const SWEEP: Duration = Duration::from_millis(250);
/// How long a server may take to close a connection after its last response.
const CLOSING_LIMIT: Duration = Duration::from_secs(1);
/// Connections that a process opens at once when it begins. More would overflow a listener's queue, and those that it
/// drops come back after a second.
const OPENING_LIMIT: u32 = 256;
/// The alarm's token; connections have their index.
const ALARM: Token = Token(usize::MAX);

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
    pub(crate) cpu: usage::ThreadCpu,
    /// Seconds that it could have run but was not given a CPU.
    pub(crate) waited_s: Option<f64>,
    /// Of a thread that spins, the share of its looks that found something.
    pub(crate) fruitful_looks: Option<f64>,
}

/// A thread at work.
pub(crate) struct Worker<'run> {
    job: Job,
    measure_from: Instant,
    stop_at: Option<Instant>,
    shared: &'run Shared,
    poll: Poll,
    alarm: Alarm,
    /// When it rings, if that is still to come.
    alarm_at: Option<Instant>,
    bench: Workbench<'run>,
    slots: Vec<Slot>,
    schedule: Option<Schedule>,
    /// Slots without a request, at a given rate.
    idle: VecDeque<usize>,
    /// Slots that wait for their first connection.
    to_open: VecDeque<usize>,
    opening: u32,
    /// Slots that rest after a failure.
    resting: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Connections that have more to do than fits into a turn.
    unfinished: Vec<usize>,
    swept: Instant,
    last_end: Option<Instant>,
    looks: u64,
    fruitful_looks: u64,
}

impl<'run> Worker<'run> {
    /// A thread's work, to be done by the thread that calls this. Waits until all threads are ready, so that what they
    /// prepare is in no figure.
    ///
    /// # Errors
    /// The CPU cannot be had, or no descriptor is left.
    pub(crate) fn new(job: Job, run: &'run Run, shared: &'run Shared) -> Result<Self, LoadError> {
        if let Some(cpu) = job.cpu {
            processor::pin_current_thread(cpu).map_err(|source| LoadError::Pin { cpu, source })?;
        }
        let system = |source| LoadError::System { what: "waiting for sockets cannot be set up", source };
        let poll = Poll::new().map_err(system)?;
        let alarm = Alarm::new(poll.registry(), ALARM).map_err(system)?;
        run.prepare_thread();
        let bench = Workbench::new(run, job.thread);
        let start = shared.wait_for_begin();
        let measure_from = start + job.warm_up;
        let phase = f64::from(job.thread) / f64::from(job.threads);
        Ok(Self {
            shared,
            poll,
            alarm,
            alarm_at: None,
            bench,
            measure_from,
            stop_at: job.measure.map(|time| measure_from + time),
            slots: (0..job.connections).map(|_| Slot::default()).collect(),
            schedule: job.rate.map(|rate| Schedule::new(start, rate, phase)),
            idle: VecDeque::new(),
            to_open: VecDeque::new(),
            opening: 0,
            resting: BinaryHeap::new(),
            unfinished: Vec::new(),
            swept: start,
            last_end: None,
            looks: 0,
            fruitful_looks: 0,
            job,
        })
    }

    /// Works until the run is over.
    ///
    /// # Errors
    /// The system refuses to wait for sockets.
    pub(crate) fn work(mut self) -> Result<Outcome, LoadError> {
        let mut events = Events::with_capacity(EVENTS);
        let mut measured: Option<(Instant, usage::ThreadCpu, Waited)> = None;
        for index in 0..self.slots.len() {
            self.begin(index);
        }
        loop {
            let now = Instant::now();
            if measured.is_none() && now >= self.measure_from {
                self.bench.tally.forget_the_warm_up();
                let cpu = usage::current_thread().unwrap_or_default();
                measured = Some((now.min(self.measure_from), cpu, Waited::now()));
                (self.looks, self.fruitful_looks) = (0, 0);
            }
            if self.shared.is_stopped() || self.stop_at.is_some_and(|end| now >= end) {
                break;
            }
            self.open_more();
            self.send_due(now);
            self.wake_rested(now);
            self.sweep(now);
            self.wait(&mut events)?;
            for event in &events {
                match event.token() {
                    ALARM => self.alarm_at = None,
                    Token(index) => self.turn(index, event.is_read_closed()),
                }
            }
            for index in std::mem::take(&mut self.unfinished) {
                self.turn(index, false);
            }
            self.publish();
        }
        Ok(self.finish(measured))
    }

    fn finish(mut self, measured: Option<(Instant, usage::ThreadCpu, Waited)>) -> Outcome {
        let now = Instant::now();
        // With a number of requests the last response is the end; with a time, the time.
        let to = match self.stop_at {
            Some(end) => now.min(end),
            None if self.shared.is_stopped() => self.last_end.unwrap_or(now),
            None => now,
        };
        self.count_unanswered(to);
        let (from, cpu, waited_s) = match measured {
            Some((from, before, waited)) => {
                let after = usage::current_thread().unwrap_or_default();
                let cpu = usage::ThreadCpu {
                    user_s: after.user_s - before.user_s,
                    system_s: after.system_s - before.system_s,
                };
                (from, cpu, waited.elapsed_s())
            }
            // It was broken off while warming up.
            None => (to, usage::ThreadCpu::default(), None),
        };
        self.shared.wait_for_release();
        let tally = if measured.is_some() { self.bench.tally } else { Tally::default() };
        let looks = self.looks.max(1) as f64;
        let fruitful_looks = self.job.spin.then(|| self.fruitful_looks as f64 / looks);
        Outcome { tally, from, to: to.max(from), cpu, waited_s, fruitful_looks }
    }

    /// What is under way or due when the time is over is told, so that a server that stalls at the end cannot hide it.
    fn count_unanswered(&mut self, now: Instant) {
        let waiting = self.slots.iter().filter_map(Slot::waiting_since);
        let mut oldest = None;
        let mut count = 0;
        for since in waiting {
            oldest = Some(oldest.map_or(since, |oldest: Instant| oldest.min(since)));
            count += 1;
        }
        if let Some(schedule) = &self.schedule {
            let overdue = schedule.overdue(now);
            if overdue > 0 {
                count += overdue;
                oldest = Some(oldest.map_or(schedule.due(), |oldest| oldest.min(schedule.due())));
            }
        }
        let totals = &mut self.bench.tally.totals;
        totals.unanswered = count;
        totals.oldest_unanswered_us = oldest.map_or(0, |oldest| {
            u64::try_from(now.saturating_duration_since(oldest).as_micros()).unwrap_or(u64::MAX)
        });
    }

    /// Waits for a socket, or for the next thing to do.
    fn wait(&mut self, events: &mut Events) -> Result<(), LoadError> {
        let system = |source| LoadError::System { what: "waiting for sockets failed", source };
        let now = Instant::now();
        let mut timeout = LONGEST_SLEEP;
        let ends = [self.stop_at, Some(self.measure_from).filter(|from| *from > now)];
        let rested = self.resting.peek().map(|Reverse((at, _))| *at);
        for at in ends.into_iter().flatten().chain(rested) {
            timeout = timeout.min(at.saturating_duration_since(now));
        }
        if let (Some(schedule), false) = (&self.schedule, self.idle.is_empty()) {
            timeout = timeout.min(schedule.due().saturating_duration_since(now));
        }
        if self.job.spin || !self.unfinished.is_empty() {
            timeout = Duration::ZERO;
        }
        // One alarm that rings too early costs a turn of the loop; a time limit of each wait costs a timer that is started
        // and stopped, twice out of a virtual machine.
        let wake_at = now + timeout;
        if !timeout.is_zero() && self.alarm_at.is_none_or(|at| at > wake_at) {
            self.alarm.set(timeout).map_err(system)?;
            self.alarm_at = Some(wake_at);
        }
        match self.poll.poll(events, timeout.is_zero().then_some(Duration::ZERO)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(system(error)),
            _ => {}
        }
        self.looks += 1;
        self.fruitful_looks += u64::from(!events.is_empty() || !self.unfinished.is_empty());
        Ok(())
    }

    /// Tells the progress line how far this thread is.
    fn publish(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        let progress = &self.shared.progress[self.job.thread as usize];
        let tally = &self.bench.tally;
        progress.responses.store(tally.totals.responses, Relaxed);
        progress.body_bytes.store(tally.totals.body_bytes, Relaxed);
        if !tally.errors.is_empty() {
            progress.errors.store(tally.errors.values().sum(), Relaxed);
        }
    }
}
