//! One thread of a run: its connections, and the loop that serves whichever of them can go on.

use std::{
    io,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use linerate_os::{processor, usage};
use mio::{Events, Interest, Poll, Token, unix::SourceFd};

use super::{
    connection::{Bench, Connection, Turn},
    plan::{Order, Prepared},
};
use crate::{
    LoadError,
    alarm::Alarm,
    cost::Waited,
    fault::Fault,
    request::Random,
    shared::Shared,
    tally::Tally,
    worker::{Job, Outcome},
};

/// Events taken from the kernel at once.
const EVENTS: usize = 1024;
/// The longest sleep: how late a stop or the end of the time may be noticed by a thread with nothing to do.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);
/// How often connections that wait for too long are looked for, and what was put off is asked for again.
const SWEEP: Duration = Duration::from_millis(250);
/// The rest after a failure.
const REST: Duration = Duration::from_millis(100);
/// The alarm's token; connections have their index.
const ALARM: Token = Token(usize::MAX);

/// A place for one connection at a time.
#[derive(Default)]
struct Slot {
    connection: Option<Connection>,
    /// The kernel tells when its socket can be written to.
    watches_writing: bool,
    /// It rests after a failure until then.
    rests_until: Option<Instant>,
    /// Where a file that is read from beginning to end is read next.
    next_offset: u64,
    /// READs that were taken on and have not ended.
    under_way: u64,
}

/// A thread at work.
pub(super) struct Worker<'run> {
    job: Job,
    measure_from: Instant,
    stop_at: Option<Instant>,
    prepared: &'run Prepared,
    shared: &'run Shared,
    poll: Poll,
    alarm: Alarm,
    alarm_at: Option<Instant>,
    bench: Bench,
    random: Random,
    slots: Vec<Slot>,
    /// Connections that have more to do than fits into a turn.
    unfinished: Vec<usize>,
    swept: Instant,
    last_end: Option<Instant>,
    looks: u64,
    fruitful_looks: u64,
}

impl<'run> Worker<'run> {
    /// A thread's work, to be done by the thread that calls this. Waits until all threads are ready.
    ///
    /// # Errors
    /// The CPU cannot be had, or no descriptor is left.
    pub(super) fn new(job: Job, prepared: &'run Prepared, shared: &'run Shared) -> Result<Self, LoadError> {
        if let Some(cpu) = job.cpu {
            processor::pin_current_thread(cpu).map_err(|source| LoadError::Pin { cpu, source })?;
        }
        let system = |source| LoadError::System { what: "waiting for sockets cannot be set up", source };
        let poll = Poll::new().map_err(system)?;
        let alarm = Alarm::new(poll.registry(), ALARM).map_err(system)?;
        let bench = Bench::new();
        let start = shared.wait_for_begin();
        let measure_from = start + job.warm_up;
        Ok(Self {
            measure_from,
            stop_at: job.measure.map(|time| measure_from + time),
            prepared,
            shared,
            poll,
            alarm,
            alarm_at: None,
            bench,
            random: Random::new(u64::from(job.thread) + 1),
            slots: (0..job.connections).map(|_| Slot::default()).collect(),
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
    pub(super) fn work(mut self) -> Result<Outcome, LoadError> {
        let mut events = Events::with_capacity(EVENTS);
        let mut measured: Option<(Instant, usage::ThreadCpu, Waited)> = None;
        for index in 0..self.slots.len() {
            self.open(index);
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
            self.sweep(now);
            self.wait(&mut events)?;
            for event in &events {
                match event.token() {
                    ALARM => self.alarm_at = None,
                    Token(index) => self.turn(index),
                }
            }
            for index in std::mem::take(&mut self.unfinished) {
                self.turn(index);
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
        let waiting = self.slots.iter().filter_map(|slot| slot.connection.as_ref());
        let since: Vec<Instant> = waiting.flat_map(Connection::waiting_since).collect();
        let totals = &mut self.bench.tally.totals;
        totals.unanswered = since.len() as u64;
        let oldest =
            since.into_iter().min().map_or(Duration::ZERO, |since| to.saturating_duration_since(since));
        totals.oldest_unanswered_us = u64::try_from(oldest.as_micros()).unwrap_or(u64::MAX);
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

    fn origin(&self, index: usize) -> usize {
        (index * self.job.threads as usize + self.job.thread as usize) % self.prepared.origins.len()
    }

    fn open(&mut self, index: usize) {
        let origin = self.origin(index);
        let address = self.prepared.origins[origin].address;
        let opened = self.shared.local.connect(address, self.prepared.shape).and_then(|socket| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), Token(index), interest)?;
            Ok(socket)
        });
        match opened {
            Ok(socket) => {
                let subject = self.prepared.subject(origin, self.job.thread, index);
                let slot = &mut self.slots[index];
                slot.watches_writing = true;
                slot.connection = Some(Connection::new(socket, subject, Instant::now()));
            }
            Err(error) => self.failed(index, &Fault::Connect(error)),
        }
    }

    /// Lets a connection do what it can.
    fn turn(&mut self, index: usize) {
        let prepared = self.prepared;
        let target = &prepared.origins[self.origin(index)].target;
        let Some(slot) = self.slots.get_mut(index) else { return };
        let Some(connection) = &mut slot.connection else { return };
        let result = connection.drive(target, &mut self.bench);
        let ended = connection.take_ended();
        slot.under_way = slot.under_way.saturating_sub(ended);
        if connection.file().is_some() {
            self.shared.connected();
        }
        for _ in 0..ended {
            self.ended();
        }
        match result.and_then(|turn| self.ask(index).map(|()| turn)) {
            Ok(Turn::More) => self.unfinished.push(index),
            Ok(Turn::Wait) => self.watch(index),
            Err(fault) => self.failed(index, &fault),
        }
    }

    /// Has as many READs under way as there may be.
    fn ask(&mut self, index: usize) -> Result<(), Fault> {
        let slot = &mut self.slots[index];
        let Some(connection) = &mut slot.connection else { return Ok(()) };
        while connection.has_room() && self.shared.take_request() {
            let length_bytes = connection.file().map_or(1, |file| file.length_bytes);
            let block_bytes = u64::from(self.prepared.block_bytes).min(length_bytes);
            let offset = match self.prepared.order {
                Order::Sequential => slot.next_offset % length_bytes,
                Order::Random => self.random.below(length_bytes.div_ceil(block_bytes)) * block_bytes,
                Order::Anywhere => self.random.below(length_bytes - block_bytes + 1),
            };
            // At most a block, which has 32 bits.
            let count = block_bytes.min(length_bytes - offset) as u32;
            slot.next_offset = offset + u64::from(count);
            slot.under_way += 1;
            connection.read(offset, count, &mut self.bench)?;
        }
        connection.send_calls(&mut self.bench)
    }

    /// A socket that can be written to is told of with each piece that arrives, one that need not be is not.
    fn watch(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = &slot.connection else { return };
        let wanted = connection.waits_to_send();
        if wanted == slot.watches_writing {
            return;
        }
        slot.watches_writing = wanted;
        let interest = if wanted { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        let descriptor = connection.socket.as_raw_fd();
        if let Err(error) =
            self.poll.registry().reregister(&mut SourceFd(&descriptor), Token(index), interest)
        {
            self.failed(index, &Fault::Socket(error));
        }
    }

    fn ended(&mut self) {
        self.last_end = Some(Instant::now());
        self.shared.request_ended();
    }

    /// A connection has failed, and with it the READs that were under way on it.
    fn failed(&mut self, index: usize, fault: &Fault) {
        let origin = self.origin(index);
        let slot = &mut self.slots[index];
        slot.connection = None;
        slot.rests_until = Some(Instant::now() + REST);
        let mut lost = std::mem::take(&mut slot.under_way);
        self.bench.forget_calls();
        self.bench.tally.fail(&fault.kind());
        // A server that has gone must not be asked for ever: each failure is a request's.
        if lost == 0 && self.shared.take_request() {
            lost = 1;
        }
        let address = self.prepared.origins[origin].address;
        self.shared.not_connected(|| LoadError::Unreachable {
            server: address.to_string(),
            reason: fault.story(),
            untrusted: fault.is_about_trust(),
        });
        for _ in 0..lost {
            self.ended();
        }
    }

    /// Ends what waits for too long, opens what has rested, and asks again for what was put off.
    fn sweep(&mut self, now: Instant) {
        if now.saturating_duration_since(self.swept) < SWEEP {
            return;
        }
        self.swept = now;
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            let fault = match &mut slot.connection {
                None if slot.rests_until.is_none_or(|until| until <= now) => {
                    self.open(index);
                    continue;
                }
                None => continue,
                Some(connection) => match connection.overdue(now, self.job.timeout) {
                    Some(stage) => Some(Fault::TimedOut(stage)),
                    None if connection.has_put_off() => connection.ask_again(&mut self.bench).err(),
                    None => None,
                },
            };
            if let Some(fault) = fault {
                self.failed(index, &fault);
            }
        }
    }

    /// Waits for a socket, or for the next thing to do.
    fn wait(&mut self, events: &mut Events) -> Result<(), LoadError> {
        let system = |source| LoadError::System { what: "waiting for sockets failed", source };
        let now = Instant::now();
        let mut timeout = LONGEST_SLEEP;
        let ends = [self.stop_at, Some(self.measure_from).filter(|from| *from > now)];
        for at in ends.into_iter().flatten() {
            timeout = timeout.min(at.saturating_duration_since(now));
        }
        if self.job.spin || !self.unfinished.is_empty() {
            timeout = Duration::ZERO;
        }
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
