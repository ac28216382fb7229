//! One thread of a run: its connections, and what the next of them is to do.

mod slots;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    time::{Duration, Instant},
};

use crate::{
    LoadError,
    event_loop::EventLoop,
    job::{Job, Outcome},
    schedule::Schedule,
    shared::Shared,
    workbench::{Run, Workbench},
};

use slots::Slot;

/// How long a server may take to close a connection after its last response.
const CLOSING_LIMIT: Duration = Duration::from_secs(1);
/// Connections that a process opens at once when it begins. More would overflow a listener's queue, and those that it
/// drops come back after a second.
const OPENING_LIMIT: u32 = 256;

/// A thread at work.
pub(crate) struct Worker<'run> {
    event_loop: EventLoop<'run>,
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
}

impl<'run> Worker<'run> {
    /// A thread's work, to be done by the thread that calls this. Waits until all threads are ready.
    ///
    /// # Errors
    /// The CPU cannot be had, or no descriptor is left.
    pub(crate) fn new(job: Job, run: &'run Run, shared: &'run Shared) -> Result<Self, LoadError> {
        let (event_loop, bench) = EventLoop::begin(job, shared, |job| {
            run.prepare_thread();
            Workbench::new(run, job.thread)
        })?;
        let job = &event_loop.job;
        let phase = f64::from(job.thread) / f64::from(job.threads);
        Ok(Self {
            bench,
            slots: (0..job.connections).map(|_| Slot::default()).collect(),
            schedule: job.rate.map(|rate| Schedule::new(event_loop.start, rate, phase)),
            idle: VecDeque::new(),
            to_open: VecDeque::new(),
            opening: 0,
            resting: BinaryHeap::new(),
            unfinished: Vec::new(),
            event_loop,
        })
    }

    /// Works until the run is over.
    ///
    /// # Errors
    /// The system refuses to wait for sockets.
    pub(crate) fn work(mut self) -> Result<Outcome, LoadError> {
        for index in 0..self.slots.len() {
            self.begin(index);
        }
        let mut told = Vec::new();
        loop {
            let now = Instant::now();
            if self.event_loop.is_over(now, &mut self.bench.tally) {
                break;
            }
            self.open_more();
            self.send_due(now);
            self.wake_rested(now);
            if self.event_loop.is_time_to_sweep(now) {
                self.sweep(now);
            }
            self.event_loop.wait(self.next(), !self.unfinished.is_empty())?;
            self.event_loop.take_told(&mut told);
            for connection in &told {
                self.turn(connection.index, connection.end_is_near);
            }
            for index in std::mem::take(&mut self.unfinished) {
                self.turn(index, false);
            }
            self.event_loop.publish(&self.bench.tally);
        }
        let end = self.event_loop.end();
        self.count_unanswered(end);
        Ok(self.event_loop.finish(end, self.bench.tally))
    }

    /// When a slot that rests or a request at a given rate wants to go on.
    fn next(&self) -> Option<Instant> {
        let rested = self.resting.peek().map(|Reverse((at, _))| *at);
        let due = self.schedule.as_ref().filter(|_| !self.idle.is_empty()).map(Schedule::due);
        rested.into_iter().chain(due).min()
    }

    fn count_unanswered(&mut self, end: Instant) {
        let mut waiting: Vec<Instant> = self.slots.iter().filter_map(Slot::waiting_since).collect();
        let mut overdue = 0;
        if let Some(schedule) = &self.schedule {
            overdue = schedule.overdue(end);
            waiting.extend((overdue > 0).then(|| schedule.due()));
            overdue = overdue.saturating_sub(1);
        }
        let count = waiting.len() as u64 + overdue;
        self.bench.tally.leave_unanswered(count, waiting.into_iter().min(), end);
    }
}
