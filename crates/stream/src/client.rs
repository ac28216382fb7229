//! The client's end: a plan becomes a run, and the run a report.
//!
//! - `meeting`: the greeting, and what the listener agrees to.
//! - `intervals`: what is told while the run goes on.
//! - `outcome`: both ends in one report.

mod intervals;
mod meeting;
mod outcome;

use crate::{
    StreamError, StreamPlan, StreamReport,
    conduct::{Conduct, expect},
    control::{
        link::ControlLink,
        message::{Message, Request},
        secret::random,
    },
    data::{Content, Job, Running, check_lending},
    group::{Group, Opened},
    listener::start_all,
    opening::{OPENING_TIME, Opening},
    plan::{Amount, Direction},
    report::{Connected, Interval},
    resolve,
};
use intervals::Intervals;
use linerate_os::{limits, processor};
use linerate_tls::{CipherSuite, Connector};
use meeting::{ask, connector, greet, refused, unexpected};
use outcome::{Conducted, report};
use std::{
    fs::File,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

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
    let connector = data_connector(plan)?;
    // What handshakes take is there before anybody waits for one.
    let client_nonce = random()?;
    let mut request = request(plan)?;
    let content = content(plan, &request)?;
    if plan.direction != Direction::Receive
        && let Some(by) = plan.zero_copy_send
    {
        check_lending(by).map_err(StreamError::Refused)?;
    }
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
        zero_copy_send: request.zero_copy_send,
        reception: request.reception,
        cpus: plan.cpus.clone(),
        streams: opened.len(),
    });
    let group = Arc::new(Group::new(opened.iter().map(|one| Arc::clone(&one.lane)).collect()));
    let running = start_all(opened, &request, &job, &group).map_err(StreamError::Refused)?;
    let ready = expect(&mut link, Instant::now() + OPENING_TIME).map_err(|fault| refused(&fault));
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
fn content(plan: &StreamPlan, request: &Request) -> Result<Content, StreamError> {
    let Some(path) = &plan.send_file else { return Ok(Content::memory(request)) };
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

fn request(plan: &StreamPlan) -> Result<Request, StreamError> {
    Ok(Request {
        streams: plan.streams,
        direction: plan.direction,
        engine: plan.engine,
        receive_engine: plan.receive_engine,
        zero_copy_send: plan.zero_copy_send,
        reception: plan.reception,
        version: plan.version,
        key_records: plan.key_records,
        cipher: plan.cipher,
        io_bytes: plan.io_bytes,
        socket_buffer_bytes: plan.socket_buffer_bytes,
        amount: plan.amount,
        rate_bits: plan.rate_bits,
        congestion: plan.congestion.clone(),
        verify_seed: if plan.verify { Some(u64::from_le_bytes(random()?)) } else { None },
    })
}

fn connected(opened: &Opened) -> Connected {
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    Connected {
        number: opened.lane.number,
        sends: opened.lane.sends,
        local: opened.lane.socket.local_addr().unwrap_or(nowhere),
        remote: opened.lane.socket.peer_addr().unwrap_or(nowhere),
    }
}

fn conduct(
    plan: &StreamPlan,
    link: &mut ControlLink,
    group: &Arc<Group>,
    interrupt: &AtomicBool,
    watch: &mut dyn Watch,
    running: Vec<Running>,
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
