//! Slow clients by the thousand, each kind beside a well-behaved client.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Result;

use crate::{Arena, Findings, Row, Server, Visitor, Wishes, arena::PROBE, probe::Probe, visitor::Visit};

/// A file that no slow reader ever finishes.
const LARGE: (&str, usize) = ("slow-reader.bin", 8_388_617);
/// How long the next group waits for a probe that gets no answer.
const GROUP_PATIENCE: Duration = Duration::from_millis(500);
/// How often each client that drips sends a byte.
const DRIP: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Silent,
    DripHandshake,
    DripHead,
    SlowReader,
    Idle,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Silent, Self::DripHandshake, Self::DripHead, Self::SlowReader, Self::Idle];

    fn label(self) -> &'static str {
        match self {
            Self::Silent => "clients that connect and say nothing",
            Self::DripHandshake => "clients that drip the handshake",
            Self::DripHead => "clients that drip a request",
            Self::SlowReader => "clients that ask for a large file and hardly read",
            Self::Idle => "idle keep-alive clients",
        }
    }
}

/// One slow client. What it holds open is what matters.
enum Client {
    Stream { stream: TcpStream, drips: Vec<u8>, next: usize },
    Visit { _visit: Box<Visit> },
}

impl Client {
    fn new(kind: Kind, server: &Server, number: usize, arena: &Arena) -> Option<Self> {
        let source = Some(arena.family.source(number));
        let visitor = Visitor { source, patience: Duration::from_secs(5), ..server.visitor() };
        match kind {
            Kind::Silent => Some(Self::stream(visitor.connect().ok()?, Vec::new())),
            Kind::DripHandshake => Some(Self::stream(visitor.connect().ok()?, arena.tls.client_hello())),
            Kind::DripHead => {
                let visitor = Visitor { source, ..server.plain_visitor() };
                let head =
                    format!("GET /{} HTTP/1.1\r\nHost: localhost\r\nX-Slow: {}", PROBE.0, "s".repeat(500));
                Some(Self::stream(visitor.connect().ok()?, head.into_bytes()))
            }
            Kind::SlowReader => {
                let visitor = Visitor { receive_buffer_bytes: Some(4096), ..visitor };
                let mut visit = Box::new(visitor.visit().ok()?);
                visit.ask(LARGE.0).ok()?;
                Some(Self::Visit { _visit: visit })
            }
            Kind::Idle => {
                let mut visit = Box::new(visitor.visit().ok()?);
                (visit.fetch(PROBE.0).status == 200).then_some(())?;
                Some(Self::Visit { _visit: visit })
            }
        }
    }

    fn stream(stream: TcpStream, drips: Vec<u8>) -> Self {
        let _ = stream.set_nonblocking(true);
        Self::Stream { stream, drips, next: 0 }
    }

    /// Sends the next byte. False when the server has ended the connection.
    fn drip(&mut self) -> bool {
        let Self::Stream { stream, drips, next } = self else { return true };
        if let Ok(0) = stream.read(&mut [0; 256]) {
            return false;
        }
        let Some(byte) = drips.get(*next) else { return true };
        *next += 1;
        !matches!(stream.write(&[*byte]), Err(error) if error.kind() != std::io::ErrorKind::WouldBlock)
    }
}

/// Opens so many clients on a few threads; those that were refused are missing. Between two groups of them the probe makes
/// a request, so that it is not left behind by more clients than any server has places for, however the machine
/// schedules.
fn crowd(kind: Kind, server: &Server, count: usize, arena: &Arena, probe: &Probe) -> Vec<Client> {
    let mut clients = Vec::with_capacity(count);
    // Less than half of the places for handshakes: a request may begin in one group and end in the next.
    let group = arena.form.pick(24, 512);
    for first in (0..count).step_by(group) {
        let numbers = first..count.min(first + group);
        let threads = 8.min(numbers.len());
        thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|thread| {
                    let numbers = numbers.clone().skip(thread).step_by(threads);
                    scope.spawn(move || {
                        numbers
                            .filter_map(|number| Client::new(kind, server, number, arena))
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            clients.extend(handles.into_iter().flat_map(|handle| handle.join().unwrap_or_default()));
        });
        probe.wait_for_a_request(GROUP_PATIENCE);
    }
    clients
}

/// Drips until told to stop, and says how many connections the server has ended.
fn drip(mut clients: Vec<Client>, stop: &Arc<AtomicBool>) -> thread::JoinHandle<usize> {
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let all = clients.len();
        while !stop.load(Ordering::Relaxed) {
            clients.retain_mut(Client::drip);
            thread::sleep(DRIP);
        }
        all - clients.len()
    })
}

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    arena.content.add(LARGE.0, LARGE.1)?;
    let mut findings = Findings::default();
    // Ours and the server's descriptors: a client is one here and one there.
    let possible = usize::try_from(linerate_os::limits::raise_open_files()).unwrap_or(usize::MAX) / 2;
    let wanted = arena.form.pick(200, 8_000);
    let count = wanted.min(possible.saturating_sub(200));
    if count < wanted {
        findings.skip(format!("{wanted} slow clients"), format!("the limit of descriptors allows {count}"));
    }
    // The short form has few clients, so the door is narrower, too. The long form meets the server's own limit.
    let handshakes = arena.form.pick(Some(64), None);
    let span = arena.form.pick(Duration::from_millis(1500), Duration::from_secs(12));
    for kind in Kind::ALL {
        let server = arena.start(&Wishes { handshakes, ..Wishes::default() })?;
        let probe = Probe::start(server.visitor());
        let before = probe.watch(span / 3);
        drop(probe.take());
        let clients = crowd(kind, &server, count, arena, &probe);
        let came = clients.len();
        let crowd_met = probe.take();
        let stop = Arc::<AtomicBool>::default();
        let dripping = drip(clients, &stop);
        let during = probe.watch(span);
        stop.store(true, Ordering::Relaxed);
        let ended = dripping.join().unwrap_or(0);
        let after = probe.watch(span / 3);
        let failed = [&crowd_met, &during, &after].map(|figures| figures.errors.len() + figures.wrong);
        let did = format!(
            "a well-behaved client beside them: while they came {}; while they stayed {}; {came} had got in, of which {ended} \
             were ended meanwhile",
            crowd_met.say(),
            during.say()
        );
        findings.row(
            Row::new(format!("{count} {}", kind.label()), did)
                .expects(
                    "no request of the well-behaved client fails",
                    failed == [0, 0, 0]
                        && before.is_flawless()
                        && during.is_flawless()
                        && after.is_flawless(),
                )
                .figure("before", before.figures())
                .figure("coming", crowd_met.figures())
                .figure("during", during.figures())
                .figure("after", after.figures())
                .figure("ended", ended),
        );
    }
    Ok(findings)
}
