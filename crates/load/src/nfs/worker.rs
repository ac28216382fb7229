//! One thread of a run: its connections, and what each of them reads next.

use std::time::{Duration, Instant};

use super::{
    connection::{Bench, Connection, Turn},
    plan::{Order, Prepared},
};
use crate::{
    LoadError,
    event_loop::EventLoop,
    fault::Fault,
    job::{Job, Outcome},
    request::Random,
    shared::Shared,
};

/// The rest after a failure.
const REST: Duration = Duration::from_millis(100);

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
    event_loop: EventLoop<'run>,
    prepared: &'run Prepared,
    bench: Bench,
    random: Random,
    slots: Vec<Slot>,
    /// Connections that have more to do than fits into a turn.
    unfinished: Vec<usize>,
}

impl<'run> Worker<'run> {
    /// A thread's work, to be done by the thread that calls this. Waits until all threads are ready.
    ///
    /// # Errors
    /// The CPU cannot be had, or no descriptor is left.
    pub(super) fn new(job: Job, prepared: &'run Prepared, shared: &'run Shared) -> Result<Self, LoadError> {
        let (event_loop, bench) = EventLoop::begin(job, shared, |_| Bench::new())?;
        let job = &event_loop.job;
        Ok(Self {
            prepared,
            bench,
            random: Random::new(u64::from(job.thread) + 1),
            slots: (0..job.connections).map(|_| Slot::default()).collect(),
            unfinished: Vec::new(),
            event_loop,
        })
    }

    /// Works until the run is over.
    ///
    /// # Errors
    /// The system refuses to wait for sockets.
    pub(super) fn work(mut self) -> Result<Outcome, LoadError> {
        for index in 0..self.slots.len() {
            self.open(index);
        }
        let mut told = Vec::new();
        loop {
            let now = Instant::now();
            if self.event_loop.is_over(now, &mut self.bench.tally) {
                break;
            }
            if self.event_loop.is_time_to_sweep(now) {
                self.sweep(now);
            }
            self.event_loop.wait(None, !self.unfinished.is_empty())?;
            self.event_loop.take_told(&mut told);
            for connection in &told {
                self.turn(connection.index);
            }
            for index in std::mem::take(&mut self.unfinished) {
                self.turn(index);
            }
            self.event_loop.publish(&self.bench.tally);
        }
        let end = self.event_loop.end();
        let connections = self.slots.iter().filter_map(|slot| slot.connection.as_ref());
        let waiting: Vec<Instant> = connections.flat_map(Connection::waiting_since).collect();
        self.bench.tally.leave_unanswered(waiting.len() as u64, waiting.into_iter().min(), end);
        Ok(self.event_loop.finish(end, self.bench.tally))
    }

    fn origin(&self, index: usize) -> usize {
        let job = &self.event_loop.job;
        (index * job.threads as usize + job.thread as usize) % self.prepared.origins.len()
    }

    fn open(&mut self, index: usize) {
        let origin = self.origin(index);
        let address = self.prepared.origins[origin].address;
        let opened = self.event_loop.connect(address, self.prepared.shape, index);
        match opened {
            Ok(socket) => {
                let subject = self.prepared.subject(origin, self.event_loop.job.thread, index);
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
            self.event_loop.shared.connected();
        }
        for _ in 0..ended {
            self.event_loop.ended();
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
        while connection.has_room() && self.event_loop.shared.take_request() {
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

    fn watch(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = &slot.connection else { return };
        let watches = (connection.waits_to_send(), &mut slot.watches_writing);
        if let Err(fault) = self.event_loop.watch_writing(&connection.socket, index, watches) {
            self.failed(index, &fault);
        }
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
        if lost == 0 && self.event_loop.shared.take_request() {
            lost = 1;
        }
        let address = self.prepared.origins[origin].address;
        self.event_loop.shared.not_connected(|| LoadError::Unreachable {
            server: address.to_string(),
            reason: fault.story(),
            untrusted: fault.is_about_trust(),
        });
        for _ in 0..lost {
            self.event_loop.ended();
        }
    }

    /// Ends what waits for too long, opens what has rested, and asks again for what was put off.
    fn sweep(&mut self, now: Instant) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            let fault = match &mut slot.connection {
                None if slot.rests_until.is_none_or(|until| until <= now) => {
                    self.open(index);
                    continue;
                }
                None => continue,
                Some(connection) => match connection.overdue(now, self.event_loop.job.timeout) {
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
}
