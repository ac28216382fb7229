//! The client's end: a plan becomes a run, and the run a report.

use crate::{
    StreamError, StreamPlan, StreamReport,
    conduct::{Conduct, expect},
    control::{
        frame::RESULT_LIMIT_BYTES,
        link::{ControlLink, LinkFault},
        message::{Hexadecimal, Message, PROTOCOL_VERSION, Request},
        secret::{Bond, Prover, random},
    },
    data::{Content, Job},
    group::{Group, Opened},
    handshake,
    listener::start_all,
    opening::Opening,
    plan::{Amount, Direction, Version},
    report::{Connected, EndReport, Interval, IntervalStream, PathReport},
    resolve,
};
use linerate_os::{limits, processor};
use linerate_tls::{CipherSuite, Connector, KeptKeys, TlsPolicy, Trust};
use std::{
    fs::File,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Handshake and greeting.
const GREETING_TIME: Duration = Duration::from_secs(30);
/// The listener finds out what its kernel carries before it answers.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Descriptors beside those of streams.
const OTHER_FILES: u64 = 32;

/// What is told while a run goes on.
pub trait Watch {
    /// The streams are connected, and the run is about to begin.
    fn connected(&mut self, streams: &[Connected]);
    /// An interval is over.
    fn interval(&mut self, interval: &Interval);
}

/// Makes the run that `plan` describes. It ends early, and is reported all the same, once `interrupt` is set.
///
/// # Errors
/// There was no run: [`StreamError`]. What goes wrong within one is in the report.
pub fn run(
    plan: &StreamPlan,
    interrupt: &AtomicBool,
    watch: &mut dyn Watch,
) -> Result<StreamReport, StreamError> {
    plan.check()?;
    let connections = plan.direction.connections(plan.streams);
    let (needed, limit) = (u64::from(connections) + OTHER_FILES, limits::raise_open_files());
    if needed > limit {
        return Err(StreamError::OpenFiles { needed, limit });
    }
    try_cpus(&plan.cpus)?;
    let content = content(plan)?;
    let connector = data_connector(plan)?;
    // What handshakes take is there before anybody waits for one.
    let client_nonce = random()?;
    let mut request = request(plan)?;
    request.engines().find_out(plan.direction != Direction::Receive);
    let socket = resolve::connect(&plan.host, plan.port)?;
    let (mut link, listener) = greet(plan, socket, client_nonce)?;
    let run_key = ask(&mut link, &mut request)?;
    let opening = Opening { listener, run_key: &run_key, request: &request, connector: connector.as_ref() };
    let opened = match opening.all() {
        Ok(opened) => opened,
        Err(reason) => {
            // If the listener knows better why, it has said so.
            let told = match link.receive(Instant::now() + Duration::from_millis(200)) {
                Ok(Some(Message::Refused { reason })) => reason,
                _ => reason,
            };
            let _ = link.send(&Message::Stop {});
            return Err(StreamError::Refused(told));
        }
    };
    let connected = opened.iter().map(connected).collect::<Vec<_>>();
    let job = Arc::new(Job {
        io_bytes: plan.io_bytes as usize,
        rate_bits: request.rate_bits,
        verify_seed: request.verify_seed,
        content,
        cpus: plan.cpus.clone(),
        streams: opened.len(),
    });
    let group = Arc::new(Group::new(opened.iter().map(|one| Arc::clone(&one.lane)).collect()));
    let running = start_all(opened, &request, &job, &group).map_err(StreamError::Refused)?;
    let ready =
        expect(&mut link, Instant::now() + crate::opening::OPENING_TIME).map_err(|fault| refused(&fault));
    let begun = ready.and_then(|message| match message {
        Message::Ready {} => link.send(&Message::Start {}).map_err(|fault| refused(&fault)),
        Message::Refused { reason } => Err(StreamError::Refused(reason)),
        _ => Err(unexpected()),
    });
    if let Err(error) = begun {
        group.give_up();
        return Err(error);
    }
    watch.connected(&connected);
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let conducted = conduct(plan, &mut link, &group, interrupt, watch, running);
    Ok(report(plan, &request, started_unix_s, connected, conducted))
}

/// Whether threads can be pinned to these CPUs. Tried by a thread of its own: this one stays where it is.
fn try_cpus(cpus: &[usize]) -> Result<(), StreamError> {
    let try_all = || {
        cpus.iter().try_for_each(|&cpu| {
            processor::pin_current_thread(cpu).map_err(|error| {
                StreamError::Plan(format!("CPU {cpu}: no thread can be pinned to it: {error}"))
            })
        })
    };
    thread::scope(|scope| scope.spawn(try_all).join().unwrap_or(Ok(())))
}

/// What the client sends.
fn content(plan: &StreamPlan) -> Result<Content, StreamError> {
    let Some(path) = &plan.send_file else { return Ok(Content::memory(plan.io_bytes as usize)) };
    let cannot = |reason: String| StreamError::File { file: path.clone(), reason };
    let file = File::open(path).map_err(|error| cannot(error.to_string()))?;
    let facts = file.metadata().map_err(|error| cannot(error.to_string()))?;
    if !facts.is_file() {
        return Err(cannot("it is no regular file".to_owned()));
    }
    if facts.len() == 0 {
        return Err(cannot("it is empty".to_owned()));
    }
    Ok(Content::File(file, facts.len()))
}

/// What the streams offer, if they are TLS.
fn data_connector(plan: &StreamPlan) -> Result<Option<Connector>, StreamError> {
    if !plan.engine.is_tls() {
        return Ok(None);
    }
    let is_wanted = |suite: &CipherSuite| {
        suite.version() == plan.version && plan.cipher.is_none_or(|cipher| cipher == suite.cipher())
    };
    Ok(Some(connector(is_wanted)?))
}

/// The listener's certificate is made by itself: what it is worth is shown by the proof of the secret, which is bound to it.
fn connector(is_wanted: impl Fn(&CipherSuite) -> bool) -> Result<Connector, StreamError> {
    let mut policy = TlsPolicy { session_tickets: false, ..TlsPolicy::default() };
    policy.cipher_suites.retain(is_wanted);
    Ok(Connector::new(&policy, &Trust::Anyone)?)
}

fn request(plan: &StreamPlan) -> Result<Request, StreamError> {
    Ok(Request {
        streams: plan.streams,
        direction: plan.direction,
        engine: plan.engine,
        receive_engine: plan.receive_engine,
        version: plan.version,
        cipher: plan.cipher,
        io_bytes: plan.io_bytes,
        socket_buffer_bytes: plan.socket_buffer_bytes,
        amount: plan.amount,
        rate_bits: plan.rate_bits,
        congestion: plan.congestion.clone(),
        verify_seed: if plan.verify { Some(u64::from_le_bytes(random()?)) } else { None },
    })
}

fn refused(fault: &LinkFault) -> StreamError {
    StreamError::Refused(format!("no run: of the listener: {fault}"))
}

fn unexpected() -> StreamError {
    StreamError::Refused("the listener said what does not come next: is it linerate?".to_owned())
}

/// The control connection, once both ends have proved what they have to. Gives the listener's address, too.
fn greet(
    plan: &StreamPlan,
    socket: TcpStream,
    client_nonce: [u8; 32],
) -> Result<(ControlLink, std::net::SocketAddr), StreamError> {
    let unreachable = |reason: String| StreamError::Unreachable {
        listener: format!("{}:{}", plan.host, plan.port),
        reason,
    };
    let deadline = Instant::now() + GREETING_TIME;
    let listener = socket.peer_addr().map_err(|error| unreachable(error.to_string()))?;
    socket.set_nonblocking(true).map_err(|error| unreachable(error.to_string()))?;
    let connector = connector(|suite| suite.version() == Version::Tls13)?;
    let secured = handshake::connect(&socket, &connector, KeptKeys::default(), deadline)
        .map_err(|failure| unreachable(failure.to_string()))?;
    let certificate = secured.certificate.clone();
    let mut link = ControlLink::new(socket, secured, RESULT_LIMIT_BYTES);
    say(&mut link, &Message::Hello { version: PROTOCOL_VERSION, nonce: Hexadecimal(client_nonce) })?;
    let (listener_nonce, needs_secret) = match hear(&mut link, deadline)? {
        Message::Challenge { nonce, needs_secret, .. } => (nonce.0, needs_secret),
        _ => return Err(unexpected()),
    };
    let bond =
        Bond { client_nonce: &client_nonce, listener_nonce: &listener_nonce, certificate: &certificate };
    let secret = match (&plan.secret, needs_secret) {
        (Some(secret), true) => Some(secret),
        (None, false) => None,
        (None, true) => {
            return Err(StreamError::Refused(
                "the listener has a secret: give the same here, by --secret FILE".to_owned(),
            ));
        }
        // It could be anybody.
        (Some(_), false) => {
            return Err(StreamError::Refused(
                "the listener has no secret, so it cannot prove to be the right one: leave --secret out, or give it the \
                 same"
                    .to_owned(),
            ));
        }
    };
    let proof = secret.map(|secret| Hexadecimal(secret.prove(Prover::Client, bond)));
    say(&mut link, &Message::Proof { proof })?;
    match hear(&mut link, deadline)? {
        Message::Welcome { proof } => {
            let is_right = match (secret, proof) {
                (None, None) => true,
                (Some(secret), Some(proof)) => secret.is_proved(Prover::Listener, bond, &proof.0),
                _ => false,
            };
            if is_right {
                Ok((link, listener))
            } else {
                Err(StreamError::Refused(
                    "what answers does not know the secret: it is not the listener that it should be"
                        .to_owned(),
                ))
            }
        }
        _ => Err(unexpected()),
    }
}

fn say(link: &mut ControlLink, message: &Message) -> Result<(), StreamError> {
    link.send(message).map_err(|fault| refused(&fault))
}

/// The next message; a refusal is an error.
fn hear(link: &mut ControlLink, deadline: Instant) -> Result<Message, StreamError> {
    match expect(link, deadline).map_err(|fault| refused(&fault))? {
        Message::Refused { reason } => Err(StreamError::Refused(format!("the listener refuses: {reason}"))),
        message => Ok(message),
    }
}

/// Asks for the run. The rate becomes what the listener holds streams to.
fn ask(link: &mut ControlLink, request: &mut Request) -> Result<[u8; 32], StreamError> {
    say(link, &Message::Run(request.clone()))?;
    match hear(link, Instant::now() + ANSWER_TIME)? {
        Message::Accepted { key, rate_bits } => {
            request.rate_bits = rate_bits;
            Ok(key.0)
        }
        _ => Err(unexpected()),
    }
}

fn connected(opened: &Opened) -> Connected {
    let nowhere = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
    Connected {
        number: opened.lane.number,
        sends: opened.lane.sends,
        local: opened.lane.socket.local_addr().unwrap_or(nowhere),
        remote: opened.lane.socket.peer_addr().unwrap_or(nowhere),
    }
}

/// What a run left.
struct Conducted {
    local: EndReport,
    remote: Option<EndReport>,
    intervals: Vec<Interval>,
    interrupted: bool,
}

fn conduct(
    plan: &StreamPlan,
    link: &mut ControlLink,
    group: &Arc<Group>,
    interrupt: &AtomicBool,
    watch: &mut dyn Watch,
    running: Vec<crate::data::Running>,
) -> Conducted {
    let mut conduct = Conduct::begin(link, group, "the listener");
    let end = match plan.amount {
        Amount::Milliseconds(milliseconds) => Some(conduct.began() + Duration::from_millis(milliseconds)),
        Amount::Bytes(_) => None,
    };
    let mut intervals = Intervals::new(plan.interval, group, conduct.began());
    let (mut remote, mut interrupted) = (None, false);
    loop {
        let now = Instant::now();
        if !interrupted && !group.is_stopped() && interrupt.load(Relaxed) {
            interrupted = true;
            conduct.stop_both();
        }
        if end.is_some_and(|end| now >= end) && !group.is_stopped() {
            conduct.stop();
        }
        if let Some(interval) = intervals.look(now, end, group.is_stopped() || group.all_ended()) {
            watch.interval(&interval);
        }
        let is_over = remote.is_some() || conduct.is_lost();
        if is_over && group.all_ended() {
            break;
        }
        let next = [end.filter(|end| *end > now), intervals.next()].into_iter().flatten().min();
        match conduct.look(next.unwrap_or(now + Duration::from_secs(1))) {
            None => {}
            Some(Message::Result(report)) => {
                remote = Some(*report);
                conduct.stop();
            }
            Some(Message::Refused { reason }) => conduct.fail(format!("the listener gave it up: {reason}")),
            Some(_) => conduct.fail("the listener said what nobody says during a run".to_owned()),
        }
    }
    if let Some(interval) = intervals.rest() {
        watch.interval(&interval);
    }
    let local = conduct.end(running);
    Conducted { local, remote, intervals: intervals.all, interrupted }
}

/// The intervals of a run.
struct Intervals<'a> {
    length: Option<Duration>,
    group: &'a Group,
    began: Instant,
    /// The end of the last one, and what had moved by then.
    last: Instant,
    bytes: Vec<u64>,
    retransmits: Vec<u32>,
    all: Vec<Interval>,
    /// Nothing more is told: the run is over, and what is under way arrives.
    is_over: bool,
}

impl<'a> Intervals<'a> {
    fn new(length: Option<Duration>, group: &'a Group, began: Instant) -> Self {
        let streams = group.lanes.len();
        let retransmits =
            group.lanes.iter().map(|lane| lane.path().map_or(0, |path| path.retransmits)).collect();
        Self {
            length,
            group,
            began,
            last: began,
            bytes: vec![0; streams],
            retransmits,
            all: Vec::new(),
            is_over: false,
        }
    }

    /// When the next is over.
    fn next(&self) -> Option<Instant> {
        self.length.filter(|_| !self.is_over).map(|length| self.last + length)
    }

    /// The interval that is over now, if one is. Times are as the clock has them, not as they were due.
    fn look(&mut self, now: Instant, end: Option<Instant>, is_stopped: bool) -> Option<Interval> {
        if is_stopped && !self.is_over && self.length.is_some() {
            self.is_over = true;
            // The part that is left behind the last whole one, unless it is a whole one that ends with the run.
            let least = if end.is_some() { Duration::from_millis(100) } else { Duration::ZERO };
            return (now.saturating_duration_since(self.last) > least).then(|| self.take(now));
        }
        let is_due = self.next().is_some_and(|next| now >= next);
        is_due.then(|| self.take(now))
    }

    /// What has come since, if no other interval tells of it.
    fn rest(&mut self) -> Option<Interval> {
        (self.length.is_some() && !self.is_over).then(|| self.take(Instant::now()))
    }

    fn take(&mut self, now: Instant) -> Interval {
        let mut streams = Vec::with_capacity(self.bytes.len());
        let lanes = self.group.lanes.iter().zip(self.bytes.iter_mut().zip(&mut self.retransmits));
        for (lane, (bytes, retransmits)) in lanes {
            let moved = lane.moved_bytes();
            let path = if lane.sends { lane.path() } else { None };
            let path = path.map(|path| {
                let fresh = path.retransmits.saturating_sub(*retransmits);
                *retransmits = path.retransmits;
                PathReport { retransmits: fresh, ..path }
            });
            streams.push(IntervalStream {
                number: lane.number,
                sends: lane.sends,
                bytes: moved - *bytes,
                path,
            });
            *bytes = moved;
        }
        let since = |moment: Instant| moment.saturating_duration_since(self.began).as_secs_f64();
        let interval = Interval { start_s: since(self.last), end_s: since(now), streams };
        self.last = now;
        self.all.push(interval.clone());
        interval
    }
}

/// Puts both ends together, and says what does not agree.
fn report(
    plan: &StreamPlan,
    request: &Request,
    started_unix_s: u64,
    connected: Vec<Connected>,
    conducted: Conducted,
) -> StreamReport {
    let Conducted { local, remote, intervals, interrupted } = conducted;
    let mut faults: Vec<String> = local.fault.iter().cloned().collect();
    for (end, name) in [(Some(&local), "here"), (remote.as_ref(), "at the listener")] {
        let Some(end) = end else { continue };
        if name != "here" {
            faults.extend(end.fault.iter().map(|fault| format!("at the listener: {fault}")));
        }
        for stream in &end.streams {
            let number = stream.number;
            faults.extend(stream.fault.iter().map(|fault| format!("stream {number}, {name}: {fault}")));
            faults.extend(
                stream
                    .wrong_at
                    .map(|offset| format!("stream {number}, {name}: the byte at offset {offset} is wrong")),
            );
        }
    }
    if let (Some(remote), true) = (&remote, faults.is_empty()) {
        faults.extend(disagreements(&local, remote));
    }
    StreamReport {
        command: plan.command.clone(),
        started_unix_s,
        host: plan.host.clone(),
        port: plan.port,
        engine: plan.engine,
        receive_engine: plan.receive_engine,
        direction: plan.direction,
        streams: plan.streams,
        io_bytes: plan.io_bytes,
        amount: plan.amount,
        rate_bits: request.rate_bits,
        verified: plan.verify,
        connected,
        intervals,
        local,
        remote,
        interrupted,
        faults,
    }
}

/// Every byte that one end sent has come to the other.
fn disagreements(local: &EndReport, remote: &EndReport) -> Vec<String> {
    let pairs = local.streams.iter().zip(&remote.streams);
    pairs
        .filter(|(here, there)| here.bytes != there.bytes || here.number != there.number)
        .map(|(here, there)| {
            let (sent, received) = if here.sends { (here, there) } else { (there, here) };
            format!("stream {}: {} bytes were sent, and {} came", here.number, sent.bytes, received.bytes)
        })
        .collect()
}

/// Bytes that have moved each way, in all.
#[must_use]
pub(crate) fn ways(direction: Direction) -> &'static [bool] {
    match direction {
        Direction::Send => &[true],
        Direction::Receive => &[false],
        Direction::Both => &[true, false],
    }
}
