//! Splits and ends at every byte: of what the client sends (handshake and request) and of what it receives.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Duration,
};

use anyhow::Result;
use linerate_end_to_end::reset;

use super::holds_within;
use crate::{
    Arena, Ending, Findings, Row, Server, Visitor, Wishes,
    arena::PROBE,
    probe,
    visitor::{Fetched, PATIENCE},
};

/// The file that is asked for: small, so that every byte of the response can have its turn.
const FILE: (&str, usize) = ("every-byte.bin", 1_501);

/// What happens at a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// What follows goes in a segment of its own.
    Split,
    /// FIN.
    Fin,
    /// RST.
    Rst,
}

/// Which bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Sent,
    Received,
}

/// A stream on which something happens after so many bytes.
struct Interrupted {
    stream: Option<TcpStream>,
    way: Way,
    act: Act,
    /// Bytes until then; none after it has happened.
    left_bytes: Option<usize>,
    passed_bytes: usize,
}

impl Interrupted {
    fn stream(&mut self) -> io::Result<&mut TcpStream> {
        self.stream.as_mut().ok_or_else(|| io::ErrorKind::ConnectionAborted.into())
    }

    /// How many of so many bytes may pass before something happens.
    fn allowed(&self, way: Way, bytes: usize) -> usize {
        match self.left_bytes {
            Some(left) if way == self.way => bytes.min(left.max(1)),
            _ => bytes,
        }
    }

    fn passed(&mut self, way: Way, bytes: usize) -> io::Result<()> {
        if way != self.way {
            return Ok(());
        }
        self.passed_bytes += bytes;
        let Some(left) = self.left_bytes else { return Ok(()) };
        self.left_bytes = left.checked_sub(bytes).filter(|&left| left > 0);
        if self.left_bytes.is_none() { self.happen() } else { Ok(()) }
    }

    fn happen(&mut self) -> io::Result<()> {
        match self.act {
            // Long enough that the server has usually taken what came; nothing depends on it.
            Act::Split => thread::sleep(Duration::from_micros(300)),
            Act::Fin => {
                let stream = self.stream()?;
                stream.shutdown(Shutdown::Write)?;
                stream.set_read_timeout(Some(PATIENCE))?;
            }
            Act::Rst => {
                if let Some(stream) = self.stream.take() {
                    reset(stream);
                }
            }
        }
        Ok(())
    }
}

impl Read for Interrupted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = self.allowed(Way::Received, buffer.len());
        let bytes = self.stream()?.read(&mut buffer[..room])?;
        self.passed(Way::Received, bytes)?;
        Ok(bytes)
    }
}

impl Write for Interrupted {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let room = self.allowed(Way::Sent, buffer.len());
        let bytes = self.stream()?.write(&buffer[..room])?;
        self.passed(Way::Sent, bytes)?;
        Ok(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn fetch(visitor: &Visitor, way: Way, act: Act, after_bytes: usize) -> Fetched {
    let failed = |ending| Fetched { ending, status: 0, body: Vec::new(), took: Duration::ZERO };
    let Ok(stream) = visitor.connect() else { return failed(Ending::Refused) };
    let stream =
        Interrupted { stream: Some(stream), way, act, left_bytes: Some(after_bytes), passed_bytes: 0 };
    match visitor.visit_over(stream) {
        Ok(mut visit) => visit.fetch(FILE.0),
        Err(ending) => failed(ending),
    }
}

/// How many bytes go each way when nothing happens.
fn lengths(visitor: &Visitor) -> usize {
    // More than any handshake and request have: found by halving, because TLS moves the bytes itself.
    let (mut some, mut none) = (1, 16 * 1024);
    while some + 1 < none {
        let middle = usize::midpoint(some, none);
        // A FIN behind all that is sent leaves the response whole; one before the end of the request does not.
        match fetch(visitor, Way::Sent, Act::Rst, middle).ending {
            Ending::Whole => none = middle,
            _ => some = middle,
        }
    }
    none
}

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    let bytes = arena.content.add(FILE.0, FILE.1)?;
    let mut findings = Findings::default();
    let mut server = arena.start(&Wishes::default())?;
    let visitor = server.visitor();
    let before = server.open_files();
    let sent_bytes = lengths(&visitor);
    // The response's body, its head, the server's flight and tickets: what lies behind the end changes nothing.
    let received_bytes = FILE.1 + 3_000;
    let step = arena.form.pick(61, 1);
    for (way, act, end, what) in [
        (Way::Sent, Act::Split, sent_bytes, "split at a byte of handshake or request"),
        (Way::Sent, Act::Fin, sent_bytes, "FIN after a byte of handshake or request"),
        (Way::Sent, Act::Rst, sent_bytes, "RST after a byte of handshake or request"),
        (Way::Received, Act::Fin, received_bytes, "FIN after a byte of the server's flight or response"),
        (Way::Received, Act::Rst, received_bytes, "RST after a byte of the server's flight or response"),
    ] {
        let places = (1..end).step_by(step);
        let count = places.clone().count();
        let (mut whole, mut wrong, mut silent) = (0, 0, 0);
        for place in places {
            let fetched = fetch(&visitor, way, act, place);
            whole += usize::from(fetched.is(&bytes));
            wrong += usize::from(!fetched.is_right_as_far_as_it_came(&bytes));
            silent += usize::from(fetched.ending == Ending::Silent);
        }
        let did = format!(
            "{count} connections: {whole} whole, {wrong} with wrong bytes, {silent} left without an end"
        );
        let (expected, holds) = match act {
            Act::Split => ("all whole and right", whole == count && wrong == 0),
            _ => ("no wrong bytes, and an end to each", wrong == 0 && silent == 0),
        };
        findings
            .row(Row::new(what, did).expects(expected, holds).figure("whole", whole).figure("wrong", wrong));
    }
    findings.row(afterwards(&mut server, before));
    Ok(findings)
}

fn afterwards(server: &mut Server, before: usize) -> Row {
    // Files stay open in the server's cache, as many as were asked for.
    let limit = before + 4;
    let settled = holds_within(PATIENCE * 2, || server.open_files() <= limit);
    let serves = probe::serves(&server.visitor());
    let did = format!(
        "{}, {} descriptors where there were {before}",
        if serves { "serves" } else { "does not serve" },
        server.open_files()
    );
    Row::new(format!("after all of these ({} still asked for)", PROBE.0), did)
        .expects("it serves, and nothing is left open", serves && settled && server.is_running())
}
