//! One connection: from `connect` over the handshake to one response after the other.
//!
//! It never waits: [`Connection::drive`] does what can be done and says what came of it.

mod discard;
mod exchange;

use std::{
    io, mem,
    time::{Duration, Instant},
};

use linerate_os::socket::{self, Socket};
use linerate_record::{Channel, KeyUpdateRate};
use linerate_tls::{ClientHandshake, ClientKeySchedule, ConnectFailure, ConnectStep};

use crate::{
    fault::Fault,
    wire::{Incoming, LowWater, Outgoing},
    workbench::Workbench,
};

use discard::Walk;
use exchange::Exchange;

/// How much a connection may receive before the others have their turn.
const TURN_BYTES: usize = 1 << 20;
/// Key updates in a second that are taken from a server.
const KEY_UPDATES_LIMIT: u32 = 100;

/// A request that a connection is to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// When it should have been sent, at a given rate; else it counts from when it is sent.
    pub(crate) due: Option<Instant>,
    /// It was sent before, on a connection that the server had closed.
    pub(crate) retried: bool,
}

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The socket has to be waited for.
    Wait,
    /// There is more to do, after the others' turns.
    More,
    /// A request can be sent.
    Ready,
    /// The connection is over, in order.
    Closed,
}

enum Link {
    Connecting,
    Handshaking { handshake: Box<ClientHandshake>, incoming: Vec<u8>, since: Instant },
    Plain,
    Tls(Box<Channel<ClientKeySchedule>>),
}

/// A connection.
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    origin: usize,
    link: Link,
    began: Instant,
    outgoing: Outgoing,
    incoming: Incoming,
    walk: Walk,
    exchange: Option<Exchange>,
    requests: u64,
    /// When something last came or went.
    pub(crate) progressed: Instant,
    /// The last response was, nothing more is asked.
    closing: bool,
    /// The kernel said that the peer's end is under way: no short `recv` means that the socket is empty.
    end_is_near: bool,
    low_water: LowWater,
}

/// What a step of receiving found.
enum Received {
    /// Nothing.
    Nothing,
    /// Less than there was room for: nothing is left, unless the end is.
    Drained,
    /// So many bytes, and there may be more.
    Bytes(usize),
    /// The handshake is over.
    Connected,
    /// The peer's end.
    End,
}

impl Connection {
    /// A connection that is being made to this origin.
    pub(crate) fn new(socket: Socket, origin: usize, now: Instant) -> Self {
        Self {
            socket,
            origin,
            link: Link::Connecting,
            began: now,
            outgoing: Outgoing::default(),
            low_water: LowWater::default(),
            incoming: Incoming::default(),
            walk: Walk::default(),
            exchange: None,
            requests: 0,
            progressed: now,
            closing: false,
            end_is_near: false,
        }
    }

    /// Whether it can take a request.
    pub(crate) fn is_ready(&self) -> bool {
        self.exchange.is_none() && !self.closing && matches!(self.link, Link::Plain | Link::Tls(_))
    }

    /// Whether the socket has to take something: the connection itself, or what did not fit.
    pub(crate) fn waits_to_send(&self) -> bool {
        matches!(self.link, Link::Connecting) || !self.outgoing.is_empty()
    }

    /// Whether a request is under way, and when it was due.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        self.exchange.as_ref().map(|exchange| exchange.due)
    }

    /// What it waits for from the server, in a word; nothing between two requests.
    pub(crate) fn stage(&self) -> Option<&'static str> {
        match (&self.link, &self.exchange) {
            (Link::Connecting, _) => Some("connect"),
            (Link::Handshaking { .. }, _) => Some("handshake"),
            (_, Some(exchange)) => Some(exchange.stage()),
            (_, None) => None,
        }
    }

    /// Whether it only waits for the server to close.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing && self.exchange.is_none()
    }

    /// The kernel says that the peer has closed its side.
    pub(crate) fn end_is_near(&mut self) {
        self.end_is_near = true;
    }

    /// Sends a request. The connection has to be ready.
    pub(crate) fn request(&mut self, bench: &mut Workbench<'_>, pending: Pending) -> Result<(), Fault> {
        let run = bench.run;
        let origin = &run.origins[self.origin];
        let form = bench.next_form(origin);
        let span = match &mut self.link {
            Link::Tls(channel) => {
                bench.request.clear();
                let span = origin.forms[form].request.write(&mut bench.random, &mut bench.request);
                self.outgoing.seal(channel, &bench.request)?;
                span
            }
            _ => origin.forms[form].request.write(&mut bench.random, self.outgoing.buffer()),
        };
        let now = Instant::now();
        self.exchange = Some(Exchange::new(form, span, pending.due.unwrap_or(now)));
        self.requests += 1;
        self.progressed = now;
        bench.tally.totals.requests += 1;
        self.flush(bench)
    }

    /// Does what can be done without waiting.
    pub(crate) fn drive(&mut self, bench: &mut Workbench<'_>) -> Result<Turn, Fault> {
        if matches!(self.link, Link::Connecting) {
            match self.finish_connecting(bench)? {
                Turn::Wait => {}
                other => return Ok(other),
            }
        }
        self.flush(bench)?;
        let mut budget = TURN_BYTES;
        loop {
            let was_asking = self.exchange.is_some();
            match self.receive(bench)? {
                Received::End => return self.end(bench),
                Received::Connected => return Ok(Turn::Ready),
                received => {
                    if was_asking && self.is_ready() {
                        return Ok(Turn::Ready);
                    }
                    let bytes = match received {
                        Received::Bytes(bytes) => bytes,
                        Received::Drained if self.end_is_near => 0,
                        _ => return Ok(Turn::Wait),
                    };
                    budget = budget.saturating_sub(bytes);
                    if budget == 0 {
                        return Ok(Turn::More);
                    }
                }
            }
        }
    }

    fn finish_connecting(&mut self, bench: &mut Workbench<'_>) -> Result<Turn, Fault> {
        socket::connect_result(&self.socket).map_err(Fault::Connect)?;
        if self.socket.peer_addr().is_err() {
            return Ok(Turn::Wait);
        }
        let now = Instant::now();
        bench.tally.connect.record(now - self.began);
        bench.tally.totals.connections += 1;
        self.progressed = now;
        let origin = &bench.run.origins[self.origin];
        let Some(connector) = &origin.connector else {
            self.link = Link::Plain;
            return Ok(Turn::Ready);
        };
        let handshake = ClientHandshake::start(connector, &origin.host, self.outgoing.buffer())
            .map_err(Fault::Handshake)?;
        self.link = Link::Handshaking { handshake: Box::new(handshake), incoming: Vec::new(), since: now };
        Ok(Turn::Wait)
    }

    /// Sends what waits, as far as the socket takes it.
    pub(crate) fn flush(&mut self, bench: &mut Workbench<'_>) -> Result<(), Fault> {
        let sent = self.outgoing.send(&self.socket, &mut bench.tally.totals);
        sent.map_err(|error| self.broken(error))
    }

    /// What a broken connection means: on one that has served before, before a byte of the response, the server has
    /// closed it while the request was under way.
    fn broken(&self, error: io::Error) -> Fault {
        match &self.exchange {
            Some(exchange) if !exchange.has_begun() && self.requests > 1 => Fault::Stale,
            _ => Fault::Socket(error),
        }
    }

    fn receive(&mut self, bench: &mut Workbench<'_>) -> Result<Received, Fault> {
        if bench.run.discards
            && let Some(received) = self.receive_discarding(bench)?
        {
            return Ok(received);
        }
        let mut buffer = mem::take(&mut bench.buffer);
        let received = self.receive_into(&mut buffer, bench);
        bench.buffer = buffer;
        received
    }

    /// One `recv`, and what follows from it.
    fn receive_into(&mut self, buffer: &mut [u8], bench: &mut Workbench<'_>) -> Result<Received, Fault> {
        let carried = self.incoming.partial.len();
        buffer[..carried].copy_from_slice(&self.incoming.partial);
        let room_bytes = if bench.run.discards { carried + discard::HEAD_READ_BYTES } else { buffer.len() };
        let room = &mut buffer[carried..room_bytes];
        let room_bytes = room.len();
        let bytes = match self.received(socket::receive(&self.socket, room))? {
            Some(0) => return Ok(Received::End),
            Some(bytes) => bytes,
            None => return Ok(Received::Nothing),
        };
        self.incoming.partial.clear();
        bench.tally.totals.received_bytes += bytes as u64;
        let now = Instant::now();
        self.progressed = now;
        match &mut self.link {
            Link::Connecting => {}
            Link::Plain => self.take_plaintext(&buffer[..bytes], bench, now)?,
            Link::Tls(_) => self.open_records(&mut buffer[..carried + bytes], bench, now)?,
            Link::Handshaking { incoming, .. } => {
                incoming.extend_from_slice(&buffer[..bytes]);
                if self.advance_handshake(bench, now)? {
                    return Ok(Received::Connected);
                }
            }
        }
        if bytes == room_bytes {
            return Ok(Received::Bytes(bytes));
        }
        if !bench.run.discards {
            let remaining_bytes =
                self.exchange.as_ref().and_then(|exchange| exchange.response.remaining_bytes());
            // A body takes more bytes on the wire than it has, less what is here of a record that is not whole.
            let certain_bytes = usize::try_from(remaining_bytes.unwrap_or(0)).unwrap_or(usize::MAX);
            self.low_water.set(&self.socket, certain_bytes.saturating_sub(self.incoming.partial.len()))?;
        }
        Ok(Received::Drained)
    }

    /// Tells nothing (`None`) from bytes and from the end (0).
    fn received(&self, result: io::Result<usize>) -> Result<Option<usize>, Fault> {
        match result {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // A reset instead of an orderly end, after everything has come.
            Err(_) if self.is_closing() => Ok(Some(0)),
            Err(error) => Err(self.broken(error)),
        }
    }

    /// True once the handshake is over.
    fn advance_handshake(&mut self, bench: &mut Workbench<'_>, now: Instant) -> Result<bool, Fault> {
        let Link::Handshaking { handshake, incoming, since } = &mut self.link else { return Ok(false) };
        let (since, step) = (*since, handshake.advance(incoming, self.outgoing.buffer()));
        match step {
            Ok(ConnectStep::NeedInput) => {
                self.flush(bench)?;
                Ok(false)
            }
            Ok(ConnectStep::Connected(connected)) => {
                let mut rest = mem::take(incoming);
                bench.tally.handshake.record(now - since);
                bench.agreed(&connected);
                self.link = Link::Tls(Box::new(
                    connected.into_channel(KeyUpdateRate::new(KEY_UPDATES_LIMIT)).map_err(Fault::Record)?,
                ));
                self.open_records(&mut rest, bench, now)?;
                // What the handshake leaves to be sent goes with the first request, or now if there is none yet.
                Ok(true)
            }
            Err(failure) => {
                // The alert is a courtesy: whether it can be sent makes no difference.
                let _ = self.flush(bench);
                Err(Fault::Handshake(failure))
            }
        }
    }

    /// Takes what all whole records in `wire` have, and keeps the rest for later.
    fn open_records(
        &mut self,
        wire: &mut [u8],
        bench: &mut Workbench<'_>,
        now: Instant,
    ) -> Result<(), Fault> {
        let (mut rest, elapsed_ms) = (wire, bench.elapsed_ms(now));
        while let Link::Tls(channel) = &mut self.link {
            let sending = (&mut self.outgoing, &self.socket, &mut bench.tally.totals);
            let next = self.incoming.next_data(channel, &mut rest, elapsed_ms, sending);
            let next = next.map_err(|fault| match fault {
                Fault::Socket(error) => self.broken(error),
                fault => fault,
            });
            let Some(data) = next? else { break };
            self.take_plaintext(data, bench, now)?;
        }
        Ok(())
    }

    /// The peer has closed.
    fn end(&mut self, bench: &mut Workbench<'_>) -> Result<Turn, Fault> {
        if matches!(self.link, Link::Connecting | Link::Handshaking { .. }) {
            return Err(Fault::ClosedInHandshake);
        }
        let Some(exchange) = &self.exchange else { return Ok(Turn::Closed) };
        if !exchange.has_begun() {
            return Err(if self.requests > 1 { Fault::Stale } else { Fault::ClosedBeforeResponse });
        }
        // RFC 8446 6.1: without close_notify nobody knows whether the server meant to end there.
        let is_in_order = matches!(self.link, Link::Plain) || self.incoming.close_notified;
        if !self.finish_thrown_away(bench) {
            match &self.exchange {
                Some(exchange) if exchange.response.ends_with_close() && is_in_order => {}
                _ => return Err(Fault::ClosedInResponse),
            }
        }
        self.complete(bench, Instant::now());
        Ok(Turn::Closed)
    }

    /// Whether nothing has come for `limit`.
    pub(crate) fn is_overdue(&self, now: Instant, limit: Duration) -> bool {
        now.saturating_duration_since(self.progressed) > limit
    }
}

impl From<ConnectFailure> for Fault {
    fn from(failure: ConnectFailure) -> Self {
        Self::Handshake(failure)
    }
}
