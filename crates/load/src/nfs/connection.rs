//! One connection: its socket, TLS, and the conversation on it. It never waits: [`Connection::drive`] does what can be done.

use std::{
    io, mem,
    time::{Duration, Instant},
};

use linerate_os::socket::{self, Socket};
use linerate_record::{Channel, KeyUpdateRate};
use linerate_tls::{ClientHandshake, ClientKeySchedule, ConnectStep, Connected, Connector};

use super::{
    conversation::{Conversation, Event, FoundFile, Read, Subject},
    status,
};
use crate::{
    fault::Fault,
    report::Mismatch,
    response_fault::ResponseFault,
    tally::Tally,
    verify::{Compared, Source},
    wire::{Incoming, LowWater, Outgoing},
};

/// Received with one `recv`.
const RECEIVE_BYTES: usize = 256 * 1024;
/// How much a connection may receive before the others have their turn.
const TURN_BYTES: usize = 1 << 20;
/// Key updates in a second that are taken from a server.
const KEY_UPDATES_LIMIT: u32 = 100;

/// The file that READs are of, as this side knows it.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) url: String,
    pub(super) host: String,
    /// With TLS.
    pub(super) connector: Option<Connector>,
    /// What the bytes are compared with.
    pub(super) source: Option<Source>,
}

/// Buffers and counts that connections share. Lent to one at a time.
pub(super) struct Bench {
    pub(super) tally: Tally,
    buffer: Vec<u8>,
    calls: Vec<u8>,
    compared: Vec<u8>,
    began: Instant,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            tally: Tally::default(),
            buffer: vec![0; RECEIVE_BYTES],
            calls: Vec::new(),
            compared: Vec::new(),
            began: Instant::now(),
        }
    }

    /// What a connection that has failed did not send goes to no other.
    pub(super) fn forget_calls(&mut self) {
        self.calls.clear();
    }

    /// Milliseconds since the thread began.
    fn elapsed_ms(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }

    fn agreed(&mut self, connected: &Connected) {
        self.tally.totals.full_handshakes += 1;
        let group = connected.group.map(linerate_tls::Group::iana_name);
        let agreement = (connected.version, connected.cipher_suite.iana_name(), group);
        *self.tally.negotiated.entry(agreement).or_default() += 1;
    }
}

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The socket has to be waited for.
    Wait,
    /// There is more to do, after the others' turns.
    More,
}

enum Link {
    Connecting,
    /// In the clear: for good, or until the server agrees to TLS.
    Plain,
    Handshaking {
        handshake: Box<ClientHandshake>,
        incoming: Vec<u8>,
        since: Instant,
    },
    Tls(Box<Channel<ClientKeySchedule>>),
}

/// A connection.
pub(super) struct Connection {
    pub(super) socket: Socket,
    link: Link,
    conversation: Conversation<Instant>,
    outgoing: Outgoing,
    incoming: Incoming,
    began: Instant,
    /// When something last came or went.
    progressed: Instant,
    first_byte: Instant,
    low_water: LowWater,
    /// READs that ended since they were taken by [`Self::take_ended`].
    ended: u64,
    /// READs that the server wants to be asked for later.
    put_off: Vec<Read<Instant>>,
    /// The READ that is coming is not what its source is: counted once.
    is_wrong: bool,
}

impl Connection {
    /// A connection that is being made.
    pub(super) fn new(socket: Socket, subject: Subject, now: Instant) -> Self {
        Self {
            socket,
            link: Link::Connecting,
            conversation: Conversation::new(subject),
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            began: now,
            progressed: now,
            first_byte: now,
            low_water: LowWater::default(),
            ended: 0,
            put_off: Vec::new(),
            is_wrong: false,
        }
    }

    /// The file, once READs of it can be sent.
    pub(super) fn file(&self) -> Option<&FoundFile> {
        self.conversation.file()
    }

    /// Whether another READ can be sent. Those that were put off come first.
    pub(super) fn has_room(&self) -> bool {
        self.conversation.has_room() && self.put_off.is_empty()
    }

    /// Whether the socket has to take something.
    pub(super) fn waits_to_send(&self) -> bool {
        matches!(self.link, Link::Connecting) || !self.outgoing.is_empty()
    }

    /// How many READs have ended since this was asked last.
    pub(super) fn take_ended(&mut self) -> u64 {
        mem::take(&mut self.ended)
    }

    /// When the READs that are under way were asked for.
    pub(super) fn waiting_since(&self) -> impl Iterator<Item = Instant> {
        self.conversation.under_way().chain(&self.put_off).map(|read| read.tag)
    }

    /// What is waited for, if nothing has come for `limit`.
    pub(super) fn overdue(&self, now: Instant, limit: Duration) -> Option<&'static str> {
        let is_idle = self.file().is_some() && self.waiting_since().next().is_none();
        if is_idle || now.saturating_duration_since(self.progressed) <= limit {
            return None;
        }
        Some(match self.link {
            Link::Connecting => "connect",
            Link::Handshaking { .. } => "handshake",
            _ => self.conversation.stage(),
        })
    }

    /// Asks for bytes; there has to be room.
    pub(super) fn read(&mut self, offset: u64, count: u32, bench: &mut Bench) -> Result<(), Fault> {
        bench.tally.totals.requests += 1;
        let now = Instant::now();
        if self.waiting_since().next().is_none() {
            self.progressed = now;
        }
        self.conversation.read(Read { offset, count, tag: now }, &mut bench.calls);
        Ok(())
    }

    /// Asks once more for what the server had no time for.
    pub(super) fn ask_again(&mut self, bench: &mut Bench) -> Result<(), Fault> {
        while self.conversation.has_room()
            && let Some(read) = self.put_off.pop()
        {
            self.conversation.read(read, &mut bench.calls);
        }
        self.send_calls(bench)
    }

    /// Whether something was put off.
    pub(super) fn has_put_off(&self) -> bool {
        !self.put_off.is_empty()
    }

    /// Sends what was asked for.
    pub(super) fn send_calls(&mut self, bench: &mut Bench) -> Result<(), Fault> {
        if !bench.calls.is_empty() {
            match &mut self.link {
                Link::Tls(channel) => self.outgoing.seal(channel, &bench.calls)?,
                _ => self.outgoing.buffer().extend_from_slice(&bench.calls),
            }
            bench.calls.clear();
        }
        self.flush(bench)
    }

    fn flush(&mut self, bench: &mut Bench) -> Result<(), Fault> {
        self.outgoing.send(&self.socket, &mut bench.tally.totals).map_err(Fault::Socket)
    }

    /// Does what can be done without waiting.
    pub(super) fn drive(&mut self, target: &Target, bench: &mut Bench) -> Result<Turn, Fault> {
        if matches!(self.link, Link::Connecting) && !self.is_connected(target, bench)? {
            return Ok(Turn::Wait);
        }
        self.flush(bench)?;
        let mut budget_bytes = TURN_BYTES;
        loop {
            let mut buffer = mem::take(&mut bench.buffer);
            let received = self.receive(&mut buffer, target, bench);
            bench.buffer = buffer;
            let Some((bytes, is_drained)) = received? else { return Ok(Turn::Wait) };
            self.send_calls(bench)?;
            if is_drained {
                return Ok(Turn::Wait);
            }
            budget_bytes = budget_bytes.saturating_sub(bytes);
            if budget_bytes == 0 {
                return Ok(Turn::More);
            }
        }
    }

    fn is_connected(&mut self, target: &Target, bench: &mut Bench) -> Result<bool, Fault> {
        socket::connect_result(&self.socket).map_err(Fault::Connect)?;
        if self.socket.peer_addr().is_err() {
            return Ok(false);
        }
        let now = Instant::now();
        bench.tally.connect.record(now - self.began);
        bench.tally.totals.connections += 1;
        self.progressed = now;
        self.link = Link::Plain;
        match target.connector {
            Some(_) => self.conversation.ask_for_tls(&mut bench.calls),
            None => self.conversation.begin(&mut bench.calls),
        }
        self.send_calls(bench)?;
        Ok(true)
    }

    /// One `recv`: how much came, and whether that was all that there is. Nothing, if nothing came.
    fn receive(
        &mut self,
        buffer: &mut [u8],
        target: &Target,
        bench: &mut Bench,
    ) -> Result<Option<(usize, bool)>, Fault> {
        let carried = self.incoming.partial.len();
        buffer[..carried].copy_from_slice(&self.incoming.partial);
        let room_bytes = buffer.len() - carried;
        let bytes = match socket::receive(&self.socket, &mut buffer[carried..]) {
            Ok(0) => return Err(self.closed()),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(Fault::Socket(error)),
        };
        self.incoming.partial.clear();
        bench.tally.totals.received_bytes += bytes as u64;
        let now = Instant::now();
        self.progressed = now;
        match &mut self.link {
            Link::Connecting => {}
            Link::Plain => self.take_plaintext(&buffer[..bytes], target, bench, now)?,
            Link::Tls(_) => self.open_records(&mut buffer[..carried + bytes], target, bench, now)?,
            Link::Handshaking { incoming, .. } => {
                incoming.extend_from_slice(&buffer[..bytes]);
                self.advance_handshake(target, bench, now)?;
            }
        }
        let is_drained = bytes < room_bytes;
        if is_drained {
            let certain_bytes = self.conversation.certain_bytes().saturating_sub(self.incoming.partial.len());
            self.low_water.set(&self.socket, certain_bytes)?;
        }
        Ok(Some((bytes, is_drained)))
    }

    fn closed(&self) -> Fault {
        match self.link {
            Link::Connecting | Link::Handshaking { .. } => Fault::ClosedInHandshake,
            _ if self.conversation.certain_bytes() > 0 => Fault::ClosedInResponse,
            _ => Fault::ClosedBeforeResponse,
        }
    }

    fn advance_handshake(&mut self, target: &Target, bench: &mut Bench, now: Instant) -> Result<(), Fault> {
        let Link::Handshaking { handshake, incoming, since } = &mut self.link else { return Ok(()) };
        let (since, step) = (*since, handshake.advance(incoming, self.outgoing.buffer()));
        match step {
            Ok(ConnectStep::NeedInput) => self.flush(bench),
            Ok(ConnectStep::Connected(connected)) => {
                let mut rest = mem::take(incoming);
                bench.tally.handshake.record(now - since);
                bench.agreed(&connected);
                let channel = connected.into_channel(KeyUpdateRate::new(KEY_UPDATES_LIMIT));
                self.link = Link::Tls(Box::new(channel.map_err(Fault::Record)?));
                self.conversation.begin(&mut bench.calls);
                self.send_calls(bench)?;
                self.open_records(&mut rest, target, bench, now)
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
        target: &Target,
        bench: &mut Bench,
        now: Instant,
    ) -> Result<(), Fault> {
        let (mut rest, elapsed_ms) = (wire, bench.elapsed_ms(now));
        while let Link::Tls(channel) = &mut self.link {
            let sending = (&mut self.outgoing, &self.socket, &mut bench.tally.totals);
            let next = self.incoming.next_data(channel, &mut rest, elapsed_ms, sending);
            let Some(data) = next? else { break };
            self.take_plaintext(data, target, bench, now)?;
        }
        Ok(())
    }

    /// Takes bytes of replies.
    fn take_plaintext(
        &mut self,
        mut bytes: &[u8],
        target: &Target,
        bench: &mut Bench,
        now: Instant,
    ) -> Result<(), Fault> {
        loop {
            let (taken, event) = self.conversation.take(bytes, &mut bench.calls)?;
            bytes = &bytes[taken..];
            match event {
                Event::Nothing => return Ok(()),
                Event::StartTls => return self.start_tls(bytes, target, now),
                Event::Ready => {}
                Event::Begins(read) => {
                    self.first_byte = now;
                    self.is_wrong = false;
                    bench.tally.first_byte.record(now.saturating_duration_since(read.tag));
                }
                Event::Bytes { offset, bytes } => {
                    bench.tally.totals.body_bytes += bytes.len() as u64;
                    if let Some(source) = target.source.as_ref().filter(|_| !self.is_wrong) {
                        self.is_wrong = differs((offset, bytes), source, target, bench)?;
                    }
                }
                Event::Ends { read, length_bytes, is_end } => {
                    self.complete((read, length_bytes, is_end), target, bench, now);
                }
                Event::Refused { read, status } if status::ASKS_FOR_PATIENCE.contains(&status) => {
                    self.put_off.push(read);
                }
                Event::Refused { status, .. } => {
                    // A status of version 4 is below 2^16; a larger one is no status.
                    *bench.tally.statuses.entry(u16::try_from(status).unwrap_or(u16::MAX)).or_default() += 1;
                    bench.tally.fail(&format!("nfs: READ: {}", status::name(status)));
                    bench.tally.totals.responses += 1;
                    self.ended += 1;
                }
            }
        }
    }

    fn start_tls(&mut self, behind: &[u8], target: &Target, now: Instant) -> Result<(), Fault> {
        if !behind.is_empty() {
            return Err(Fault::Response(ResponseFault("bytes that nobody asked for")));
        }
        let Some(connector) = &target.connector else {
            return Err(Fault::Response(ResponseFault("TLS that nobody asked for")));
        };
        let handshake = ClientHandshake::start(connector, &target.host, self.outgoing.buffer())
            .map_err(Fault::Handshake)?;
        self.link = Link::Handshaking { handshake: Box::new(handshake), incoming: Vec::new(), since: now };
        Ok(())
    }

    /// A READ's bytes have all come.
    fn complete(
        &mut self,
        (read, length_bytes, is_end): (Read<Instant>, u32, bool),
        target: &Target,
        bench: &mut Bench,
        now: Instant,
    ) {
        let tally = &mut bench.tally;
        tally.totals.responses += 1;
        *tally.statuses.entry(0).or_default() += 1;
        tally.latency.record(now.saturating_duration_since(read.tag));
        tally.transfer.record(now.saturating_duration_since(self.first_byte));
        self.ended += 1;
        let file_bytes = self.file().map_or(0, |file| file.length_bytes);
        let end = read.offset + u64::from(length_bytes);
        if length_bytes != read.count || is_end != (end == file_bytes) {
            tally.fail("nfs: READ: another length than the file's");
            if let Some(source) = &target.source {
                let (url, file) = (target.url.clone(), source.path.display().to_string());
                tally.mismatch(Mismatch { url, file, offset: end, wanted: None, received: None });
            }
        }
    }
}

/// Whether the bytes at this offset are not those of the source. Counted.
fn differs(
    (offset, bytes): (u64, &[u8]),
    source: &Source,
    target: &Target,
    bench: &mut Bench,
) -> Result<bool, Fault> {
    let compared = source.compare(offset, bytes, &mut bench.compared).map_err(Fault::Source)?;
    let Compared::Differs { offset, wanted, received } = compared else { return Ok(false) };
    bench.tally.fail("verify: a byte differs");
    bench.tally.mismatch(Mismatch {
        url: target.url.clone(),
        file: source.path.display().to_string(),
        offset,
        wanted,
        received: Some(received),
    });
    Ok(true)
}
