//! One client: it is greeted, asks for a run, connects its streams, and is told what this end measured.

use super::{House, door, registry::Arrival};
use crate::{
    conduct::{Conduct, expect},
    control::{
        frame::REQUEST_LIMIT_BYTES,
        greeting::{Greeting, Step},
        link::{ControlLink, LinkFault},
        message::{Hexadecimal, Message, Request},
        preamble::token,
        secret::random,
    },
    data::{self, Content, Job, Protected, Running, check_lending},
    group::{Group, Lane, Opened},
    handshake,
    keys::KeyUse,
    opening::{OPENERS, OPENING_TIME, shape_socket},
    plan::{Amount, Direction, IO_BYTES_LIMIT, Reception, STREAMS_LIMIT, StreamEngine, check_copies},
    report::EndReport,
};
use linerate_figures::{bits, bytes};
use std::{
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Handshake and greeting of a stranger.
const GREETING_TIME: Duration = Duration::from_secs(20);
/// A client that was welcomed says within this time what it wants.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// And begins within this, once its streams are connected.
const START_TIME: Duration = Duration::from_secs(60);
/// How long a client may take to read the result and close.
const PARTING_TIME: Duration = Duration::from_secs(5);
/// How often it is looked whether a client whose streams are awaited is still there.
const LOOK: Duration = Duration::from_millis(50);

/// Why there was no run.
enum Refusal {
    /// The client is told.
    Told(String),
    /// It is gone, or does not speak this protocol.
    Gone(String),
}

impl From<LinkFault> for Refusal {
    fn from(fault: LinkFault) -> Self {
        Self::Gone(fault.to_string())
    }
}

/// Serves one client to its end.
pub(super) fn conduct(socket: TcpStream, house: &House, place: door::Greeting) {
    let Ok(client) = socket.peer_addr() else { return };
    let deadline = Instant::now() + GREETING_TIME;
    // Whatever is no TLS, and no greeting, is nobody's business but the client's own.
    let Ok(secured) = handshake::accept(&socket, &house.acceptor, KeyUse::default(), deadline) else {
        return;
    };
    let certificate = secured.certificate.clone();
    let mut link = ControlLink::new(socket, secured, REQUEST_LIMIT_BYTES);
    match greet(&mut link, house, &certificate, deadline) {
        Ok(()) => {}
        Err(Refusal::Told(reason)) => {
            (house.tell)(&format!("{client}: refused: {reason}"));
            let _ = link.send(&Message::Refused { reason });
            return;
        }
        Err(Refusal::Gone(_)) => return,
    }
    drop(place);
    match serve(&mut link, house, client) {
        Ok(()) => {}
        Err(Refusal::Told(reason)) => {
            (house.tell)(&format!("{client}: no run: {reason}"));
            let _ = link.send(&Message::Refused { reason });
            part(&mut link);
        }
        Err(Refusal::Gone(reason)) => (house.tell)(&format!("{client}: no run: {reason}")),
    }
}

/// Waits until the client has closed, so that what was said last is not lost with a reset.
fn part(link: &mut ControlLink) {
    let deadline = Instant::now() + PARTING_TIME;
    while let Ok(Some(_)) = link.receive(deadline) {}
}

fn greet(link: &mut ControlLink, house: &House, certificate: &str, deadline: Instant) -> Result<(), Refusal> {
    let nonce = random().map_err(|error| Refusal::Gone(error.to_string()))?;
    let mut greeting = Greeting::new(house.secret.as_ref(), certificate, nonce);
    loop {
        let said = link.receive(deadline)?.ok_or(LinkFault::Silent)?;
        match greeting.take(&said) {
            Step::Say(message) => link.send(&message)?,
            Step::Welcome(message) => return Ok(link.send(&message)?),
            Step::Refuse(Message::Refused { reason }) => return Err(Refusal::Told(reason)),
            Step::Refuse(_) => return Err(Refusal::Gone("a greeting without end".to_owned())),
        }
    }
}

/// What the client asks for, if it is possible and allowed. The rate is what each stream is held to.
fn judge(request: &mut Request, house: &House) -> Result<(), String> {
    if !(1..=STREAMS_LIMIT).contains(&request.streams) || !(1..=IO_BYTES_LIMIT).contains(&request.io_bytes) {
        return Err("a number of streams, or an I/O size, that is not possible".to_owned());
    }
    if !matches!(request.receive_engine, StreamEngine::User | StreamEngine::Kernel) {
        return Err("an engine that receives nothing".to_owned());
    }
    check_copies(request.engine, request.zero_copy_send, request.reception)?;
    if request.reception == Reception::Discarded && request.verify_seed.is_some() {
        return Err("bytes that are to be thrown away and compared".to_owned());
    }
    if request.direction != Direction::Send
        && let Some(by) = request.zero_copy_send
    {
        check_lending(by).map_err(|reason| format!("at the listener: {reason}"))?;
    }
    let longest_s = house.limits.time.as_secs();
    match request.amount {
        Amount::Milliseconds(milliseconds) if Duration::from_millis(milliseconds) > house.limits.time => {
            return Err(format!("the listener allows runs of up to {longest_s} s (its --max-time)"));
        }
        Amount::Milliseconds(0) | Amount::Bytes(0) => return Err("a run of nothing".to_owned()),
        _ => {}
    }
    if let Some(most_bits) = house.limits.rate_bits {
        let streams = u64::from(request.direction.connections(request.streams));
        let each_bits = (most_bits / streams.max(1)).max(1);
        request.rate_bits = Some(request.rate_bits.map_or(each_bits, |rate_bits| rate_bits.min(each_bits)));
    }
    Ok(())
}

fn serve(link: &mut ControlLink, house: &House, client: SocketAddr) -> Result<(), Refusal> {
    let Message::Run(mut request) = expect(link, Instant::now() + REQUEST_TIME)? else {
        return Err(Refusal::Told("a run has to be asked for first".to_owned()));
    };
    judge(&mut request, house).map_err(Refusal::Told)?;
    request.engines().find_out(request.direction != Direction::Send);
    let run_key: [u8; 32] = random().map_err(|error| Refusal::Told(error.to_string()))?;
    let connections = request.direction.connections(request.streams);
    let tokens = (0..connections).map(|number| token(&run_key, number)).collect();
    let (to, arrivals) = channel();
    let places = house.registry.expect(tokens, &to, house.limits.streams).map_err(|room| {
        Refusal::Told(format!(
            "{connections} connections are needed, and the listener has room for {room} of the {} that it allows (its \
             --max-streams)",
            house.limits.streams
        ))
    })?;
    let chosen = house.congestion.choose(request.congestion.as_deref());
    let chosen = chosen.map_err(|error| Refusal::Told(format!("at the listener: {error}")))?;
    link.send(&Message::Accepted { key: Hexadecimal(run_key), rate_bits: request.rate_bits })?;
    drop(to);
    let opened = gather(link, house, &request, arrivals, connections)?;
    drop(chosen);
    (house.tell)(&format!("{client}: {} {}", connections, words(&request)));
    let report = run(link, house, &request, opened)?;
    drop(places);
    (house.tell)(&format!("{client}: {}", outcome(&report)));
    link.send(&Message::Result(Box::new(report)))?;
    part(link);
    Ok(())
}

fn words(request: &Request) -> String {
    let engine = request.engine.name();
    match request.direction {
        Direction::Send => format!("streams to here, {engine}"),
        Direction::Receive => format!("streams from here, {engine}"),
        Direction::Both => format!("streams, half of them each way, {engine}"),
    }
}

fn outcome(report: &EndReport) -> String {
    let moved = (report.bytes(true) + report.bytes(false)) as f64;
    let rate = if report.seconds > 0.0 { moved * 8.0 / report.seconds } else { 0.0 };
    let fault = report.fault.as_ref().map_or(String::new(), |fault| format!("; {fault}"));
    format!("{} in {:.2} s, {}/s{fault}", bytes(moved, 3), report.seconds, bits(rate, 3))
}

/// Takes the streams as they come, and makes their handshakes.
fn gather(
    link: &mut ControlLink,
    house: &House,
    request: &Request,
    arrivals: Receiver<Arrival>,
    connections: u32,
) -> Result<Vec<Opened>, Refusal> {
    let arrivals = Arrivals { waiting: Mutex::new(arrivals), is_over: AtomicBool::new(false) };
    let (done, opened) = channel();
    thread::scope(|scope| {
        let _over = Over(&arrivals.is_over);
        for _ in 0..OPENERS.min(connections as usize) {
            let (arrivals, done) = (&arrivals, done.clone());
            scope.spawn(move || open_arrivals(house, request, arrivals, &done));
        }
        drop(done);
        let mut all = Vec::with_capacity(connections as usize);
        let mut deadline = Instant::now() + OPENING_TIME;
        while all.len() < connections as usize {
            match opened.recv_timeout(LOOK) {
                Ok(Ok(one)) => {
                    deadline = Instant::now() + OPENING_TIME;
                    all.push(one);
                }
                Ok(Err(reason)) => return Err(Refusal::Told(reason)),
                Err(RecvTimeoutError::Timeout) => {
                    // A client that is gone is waited for no longer.
                    if let Some(Message::Stop {}) = link.receive(Instant::now())? {
                        return Err(Refusal::Gone("the client has given it up".to_owned()));
                    }
                    if Instant::now() > deadline {
                        let came = all.len();
                        return Err(Refusal::Told(format!("only {came} of {connections} streams came")));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Refusal::Told("the streams could not be taken".to_owned()));
                }
            }
        }
        all.sort_by_key(|one: &Opened| one.lane.number);
        Ok(all)
    })
}

/// Streams that come, for the threads that make their handshakes.
struct Arrivals {
    waiting: Mutex<Receiver<Arrival>>,
    /// Nobody wants more of them.
    is_over: AtomicBool,
}

/// Says so when it is dropped, however gathering ends: the threads would wait for ever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Until no more can come, or nobody waits for them.
fn open_arrivals(
    house: &House,
    request: &Request,
    arrivals: &Arrivals,
    done: &Sender<Result<Opened, String>>,
) {
    while !arrivals.is_over.load(Relaxed) {
        let next = arrivals.waiting.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK);
        let (number, socket) = match next {
            Ok(arrival) => arrival,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let opened = open_arrival(house, request, number, socket);
        if done.send(opened).is_err() {
            return;
        }
    }
}

fn open_arrival(house: &House, request: &Request, number: u32, socket: TcpStream) -> Result<Opened, String> {
    let cannot = |reason: &dyn std::fmt::Display| format!("stream {number}, at the listener: {reason}");
    let wanted = house.congestion.of_stream(request.congestion.as_deref());
    shape_socket(&socket, request, wanted).map_err(|error| cannot(&error))?;
    let sends = !request.direction.client_sends(number, request.streams);
    let engines = request.engines();
    let protected = if request.engine.is_tls() {
        let deadline = Instant::now() + OPENING_TIME;
        let secured = handshake::accept(&socket, &house.acceptor, request.key_use(sends), deadline)
            .map_err(|failure| cannot(&failure))?;
        Protected::by_engine(&socket, secured, engines, sends, request.stream_bytes(number))
            .map_err(|reason| format!("at the listener: {reason}"))?
    } else {
        Protected::plain()
    };
    Ok(Opened { lane: Arc::new(Lane::new(number, sends, socket)), protected })
}

/// The run itself.
fn run(
    link: &mut ControlLink,
    house: &House,
    request: &Request,
    opened: Vec<Opened>,
) -> Result<EndReport, Refusal> {
    let io_bytes = request.io_bytes as usize;
    let job = Arc::new(Job {
        io_bytes,
        rate_bits: request.rate_bits,
        verify_seed: request.verify_seed,
        content: Content::memory(request),
        zero_copy_send: request.zero_copy_send,
        reception: request.reception,
        cpus: house.cpus.clone(),
        streams: opened.len(),
    });
    let group = Arc::new(Group::new(opened.iter().map(|one| Arc::clone(&one.lane)).collect()));
    let running = start_all(opened, request, &job, &group).map_err(Refusal::Told)?;
    let started = link.send(&Message::Ready {}).and_then(|()| expect(link, Instant::now() + START_TIME));
    match started {
        Ok(Message::Start {}) => {}
        Ok(_) => {
            group.give_up();
            return Err(Refusal::Gone("the client does not want it any more".to_owned()));
        }
        Err(fault) => {
            group.give_up();
            return Err(fault.into());
        }
    }
    let mut conduct = Conduct::begin(link, &group, "the client");
    let time = match request.amount {
        Amount::Milliseconds(milliseconds) => Duration::from_millis(milliseconds),
        Amount::Bytes(_) => house.limits.time,
    };
    let end = conduct.began() + time;
    while !group.all_ended() {
        let now = Instant::now();
        if now >= end && !group.is_stopped() {
            match request.amount {
                Amount::Milliseconds(_) => conduct.stop(),
                Amount::Bytes(_) => conduct.fail(format!(
                    "the listener allows runs of up to {} s (its --max-time)",
                    house.limits.time.as_secs()
                )),
            }
        }
        let until = if now < end { end } else { now + LOOK };
        if conduct.look(until).is_some() {
            conduct.fail("the client said what nobody says during a run".to_owned());
        }
    }
    Ok(conduct.end(running))
}

/// Starts the threads of all streams. If one cannot be had, none begins.
pub(crate) fn start_all(
    opened: Vec<Opened>,
    request: &Request,
    job: &Arc<Job>,
    group: &Arc<Group>,
) -> Result<Vec<Running>, String> {
    let mut running = Vec::with_capacity(opened.len());
    for one in opened {
        let number = one.lane.number;
        let limit_bytes = request.amount.share_bytes(number % request.streams.max(1), request.streams);
        match data::start(one, limit_bytes, job, group) {
            Ok(thread) => running.push(thread),
            Err(error) => {
                group.give_up();
                return Err(format!("a thread for stream {number} cannot be started: {error}"));
            }
        }
    }
    Ok(running)
}
