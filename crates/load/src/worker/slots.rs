//! The places for connections: what each has to do next, after a response, a failure, or a closed connection.

use std::{
    cmp::Reverse,
    time::{Duration, Instant},
};

use super::{CLOSING_LIMIT, OPENING_LIMIT, Worker};
use crate::{
    LoadError,
    connection::{Connection, Pending, Turn},
    fault::Fault,
};

/// The first rest after a failure; it doubles with each further one.
const FIRST_REST: Duration = Duration::from_millis(10);
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// A place for one connection at a time.
#[derive(Default)]
pub(super) struct Slot {
    connection: Option<Box<Connection>>,
    /// The kernel tells when its socket can be written to.
    watches_writing: bool,
    /// The request that it has taken on.
    asking: Option<Pending>,
    /// That request was sent.
    sent: bool,
    /// It is in the list of idle slots.
    idle: bool,
    /// Its first connection is being made, and counts among those.
    opening: bool,
    /// It has had a connection.
    opened: bool,
    /// It has had a whole response.
    answered: bool,
    /// Failures in a row.
    failures: u32,
}

impl Slot {
    /// Since when it owes an answer.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        let sent = self.connection.as_ref().and_then(|connection| connection.waiting_since());
        sent.or_else(|| self.asking.as_ref()?.due)
    }
}

impl Worker<'_> {
    /// What a slot without a connection does: at a rate it keeps one ready, unless each request has its own; else it asks.
    pub(super) fn begin(&mut self, index: usize) {
        match self.schedule {
            None => self.ask(index),
            Some(_) if self.bench.run.closes => self.rest_idle(index),
            Some(_) => self.open(index),
        }
    }

    /// Takes on a request, if any is left.
    fn ask(&mut self, index: usize) {
        if !self.event_loop.shared.take_request() {
            return;
        }
        self.slots[index].asking = Some(Pending { due: None, retried: false });
        self.go_on(index);
    }

    /// Sends the request that was taken on, over a connection that may have to be opened first.
    fn go_on(&mut self, index: usize) {
        match &self.slots[index].connection {
            None => self.open(index),
            Some(connection) if connection.is_ready() => self.send(index),
            Some(_) => {}
        }
    }

    fn send(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let (Some(connection), Some(pending)) = (&mut slot.connection, slot.asking) else { return };
        slot.sent = true;
        match connection.request(&mut self.bench, pending) {
            Ok(()) => self.watch(index),
            Err(fault) => self.failed(index, &fault),
        }
    }

    /// Has the kernel tell when the socket can be written to, if it has to be. A connection for one request is not worth the
    /// system call.
    fn watch(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = &slot.connection else { return };
        let wanted = self.bench.run.closes || connection.waits_to_send();
        let watches = (wanted, &mut slot.watches_writing);
        if let Err(fault) = self.event_loop.watch_writing(&connection.socket, index, watches) {
            self.failed(index, &fault);
        }
    }

    /// Waits for a request, at a rate.
    fn rest_idle(&mut self, index: usize) {
        if !std::mem::replace(&mut self.slots[index].idle, true) {
            self.idle.push_back(index);
        }
    }

    /// Gives requests that are due to slots that have none.
    pub(super) fn send_due(&mut self, now: Instant) {
        while let Some(schedule) = &mut self.schedule {
            let due = schedule.due();
            if due > now || self.idle.is_empty() {
                return;
            }
            schedule.advance();
            if !self.event_loop.shared.take_request() {
                // There is nothing to be due any more.
                self.schedule = None;
                return;
            }
            let Some(index) = self.idle.pop_front() else { return };
            self.slots[index].idle = false;
            self.slots[index].asking = Some(Pending { due: Some(due), retried: false });
            self.go_on(index);
        }
    }

    /// Threads begin at different origins, so that few connections are spread over all of them, too.
    fn origin(&self, index: usize) -> usize {
        let job = &self.event_loop.job;
        (index * job.threads as usize + job.thread as usize) % self.bench.run.origins.len()
    }

    /// Opens a connection, or puts that off while too many are being opened for the first time.
    fn open(&mut self, index: usize) {
        let limit = (OPENING_LIMIT / self.event_loop.job.threads).max(1);
        if !self.slots[index].opened && self.opening >= limit {
            self.to_open.push_back(index);
            return;
        }
        let slot = &mut self.slots[index];
        if !slot.opened {
            slot.opened = true;
            slot.opening = true;
            self.opening += 1;
        }
        let run = self.bench.run;
        let origin = self.origin(index);
        let opened = self.event_loop.connect(run.origins[origin].address, run.shape, index);
        match opened {
            Ok(socket) => {
                self.slots[index].watches_writing = true;
                let connection = Connection::new(socket, origin, Instant::now());
                self.slots[index].connection = Some(Box::new(connection));
            }
            Err(error) => self.failed(index, &Fault::Connect(error)),
        }
    }

    /// Opens connections that were put off.
    pub(super) fn open_more(&mut self) {
        let limit = (OPENING_LIMIT / self.event_loop.job.threads).max(1);
        while self.opening < limit {
            let Some(index) = self.to_open.pop_front() else { return };
            self.open(index);
        }
    }

    fn is_opened(&mut self, index: usize) {
        if std::mem::take(&mut self.slots[index].opening) {
            self.opening -= 1;
        }
    }

    /// Lets a connection do what it can.
    pub(super) fn turn(&mut self, index: usize, end_is_near: bool) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let Some(connection) = &mut slot.connection else { return };
        if end_is_near {
            connection.end_is_near();
        }
        let result = connection.drive(&mut self.bench);
        if result.is_ok() && slot.sent && connection.waiting_since().is_none() {
            slot.sent = false;
            slot.asking = None;
            slot.answered = true;
            slot.failures = 0;
            self.event_loop.ended();
        }
        match result {
            Ok(Turn::Wait) => self.watch(index),
            Ok(Turn::More) => self.unfinished.push(index),
            Ok(Turn::Ready) => self.ready(index),
            Ok(Turn::Closed) => self.closed(index),
            Err(fault) => self.failed(index, &fault),
        }
    }

    /// A connection can take a request.
    fn ready(&mut self, index: usize) {
        self.is_opened(index);
        self.event_loop.shared.connected();
        let slot = &mut self.slots[index];
        if slot.asking.is_some() {
            self.send(index);
            return;
        }
        if self.bench.run.once && slot.answered {
            // The end may have come together with the response: the kernel does not tell of it again.
            self.unfinished.push(index);
        } else if self.schedule.is_none() {
            self.ask(index);
        } else {
            self.rest_idle(index);
        }
        // What the handshake left to be sent must not wait for a request.
        let slot = &mut self.slots[index];
        if let Some(connection) = &mut slot.connection
            && let Err(fault) = connection.flush(&mut self.bench)
        {
            self.failed(index, &fault);
        }
    }

    /// A connection is over, in order.
    fn closed(&mut self, index: usize) {
        self.is_opened(index);
        let slot = &mut self.slots[index];
        slot.connection = None;
        if self.bench.run.once && slot.answered {
            self.bench.tally.fail(&Fault::ClosedIdle.kind());
            return;
        }
        if slot.asking.is_some() { self.go_on(index) } else { self.begin(index) }
    }

    /// A connection has failed, and with it the request that it had taken on.
    fn failed(&mut self, index: usize, fault: &Fault) {
        let was_opening = self.slots[index].opening;
        self.is_opened(index);
        let slot = &mut self.slots[index];
        slot.connection = None;
        if let (Fault::Stale, Some(pending)) = (fault, &mut slot.asking)
            && !pending.retried
        {
            pending.retried = true;
            slot.sent = false;
            self.go_on(index);
            return;
        }
        slot.failures += 1;
        let failures = slot.failures;
        let had_request = slot.asking.take().is_some();
        slot.sent = false;
        self.bench.tally.fail(&fault.kind());
        if was_opening {
            let address = self.bench.run.origins[self.origin(index)].address;
            self.event_loop.shared.not_connected(|| LoadError::Unreachable {
                server: address.to_string(),
                reason: fault.story(),
                untrusted: fault.is_about_trust(),
            });
        }
        if had_request {
            self.event_loop.ended();
        }
        let rest = FIRST_REST.saturating_mul(1 << (failures - 1).min(10)).min(LONGEST_REST);
        self.resting.push(Reverse((Instant::now() + rest, index)));
    }

    /// Slots that have rested go on.
    pub(super) fn wake_rested(&mut self, now: Instant) {
        while let Some(&Reverse((at, index))) = self.resting.peek() {
            if at > now {
                return;
            }
            self.resting.pop();
            // At a rate a request may have come meanwhile.
            let slot = &self.slots[index];
            if slot.connection.is_none() {
                if slot.asking.is_some() { self.go_on(index) } else { self.begin(index) }
            }
        }
    }

    /// Ends what waits for too long.
    pub(super) fn sweep(&mut self, now: Instant) {
        for index in 0..self.slots.len() {
            let Some(connection) = &self.slots[index].connection else { continue };
            match connection.stage() {
                Some(stage) if connection.is_overdue(now, self.event_loop.job.timeout) => {
                    self.failed(index, &Fault::TimedOut(stage));
                }
                None if connection.is_closing() && connection.is_overdue(now, CLOSING_LIMIT) => {
                    self.closed(index);
                }
                _ => {}
            }
        }
    }
}
