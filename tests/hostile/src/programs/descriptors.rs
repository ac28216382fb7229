//! More clients than the process may have descriptors.

use std::{net::TcpStream, thread, time::Duration};

use anyhow::Result;
use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
    process::{Pid, Resource, Rlimit, prlimit},
};

use super::holds_within;
use crate::{
    Arena, Ending, Findings, Row, Server, Visitor, Wishes,
    arena::PROBE,
    probe,
    visitor::{PATIENCE, Visit},
};

/// How long a client waits for an answer of any kind.
const ANSWER: Duration = Duration::from_secs(5);

/// What became of clients that came together and stayed.
#[derive(Default)]
struct Crowd {
    served: Vec<Served>,
    /// They got an answer that says so, or their connection ended.
    refused: usize,
    /// They were left without either.
    hung: usize,
    errors: usize,
}

/// A client that got the file and stays.
struct Served {
    visit: Visit,
    /// Its connection, beneath TLS.
    stream: TcpStream,
}

impl Served {
    /// Whether the server has closed the connection, to take another client in its place: an idle connection may be closed
    /// at any time (RFC 9112 9.3), and nothing else is sent on one.
    fn is_closed(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(&self.stream, &mut [0; 1][..], flags) != Err(Errno::AGAIN)
    }
}

/// What became of one client.
enum Outcome {
    Served(Served),
    Refused,
    Hung,
    Error,
}

fn come(visitor: &Visitor, stream: std::io::Result<TcpStream>) -> Outcome {
    let Ok((stream, beneath)) = stream.and_then(|stream| Ok((stream.try_clone()?, stream))) else {
        return Outcome::Refused;
    };
    let (fetched, visit) = match visitor.visit_over(beneath) {
        Ok(mut visit) => (visit.fetch(PROBE.0), visit),
        Err(Ending::Silent) => return Outcome::Hung,
        Err(_) => return Outcome::Refused,
    };
    match (fetched.ending, fetched.status) {
        (Ending::Silent, _) => Outcome::Hung,
        (Ending::Whole, 200) => Outcome::Served(Served { visit, stream }),
        (Ending::Whole, _) => Outcome::Error,
        _ => Outcome::Refused,
    }
}

impl Crowd {
    /// All connect first, so that the listener's queue is full of them, and then each waits for its answer.
    fn come(visitor: &Visitor, count: usize, arena: &Arena) -> Self {
        let mut crowd = Self::default();
        let from = |number| Visitor {
            patience: ANSWER,
            source: Some(arena.family.source(number)),
            ..visitor.clone()
        };
        let streams: Vec<_> = (0..count).map(|number| from(number).connect()).collect();
        let outcomes: Vec<_> = thread::scope(|scope| {
            let asking: Vec<_> =
                streams.into_iter().map(|stream| scope.spawn(|| come(&from(0), stream))).collect();
            asking.into_iter().filter_map(|asking| asking.join().ok()).collect()
        });
        for outcome in outcomes {
            match outcome {
                Outcome::Served(visit) => crowd.served.push(visit),
                Outcome::Refused => crowd.refused += 1,
                Outcome::Hung => crowd.hung += 1,
                Outcome::Error => crowd.errors += 1,
            }
        }
        crowd
    }

    /// Those whose connections are still open ask again: how many did, and how many of them got the file.
    fn ask_again(&mut self) -> (usize, usize) {
        let open = self.served.iter_mut().filter(|served| !served.is_closed());
        let got_it: Vec<bool> = open.map(|served| served.visit.fetch(PROBE.0).status == 200).collect();
        (got_it.len(), got_it.iter().filter(|got_it| **got_it).count())
    }

    fn say(&self) -> String {
        format!(
            "{} served, {} refused, {} answered with an error, {} left without an answer for {} s",
            self.served.len(),
            self.refused,
            self.errors,
            self.hung,
            ANSWER.as_secs()
        )
    }
}

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    let mut findings = Findings::default();
    let limit = arena.form.pick(96, 256);
    if let Some(why) = arena.why_not_started() {
        findings.skip("a limit from the start", why);
    } else {
        let server = arena.start(&Wishes { open_files: Some(limit), ..Wishes::default() })?;
        let what = format!("{limit} descriptors from the start");
        crowded(&mut findings, arena, &server, &what, usize::try_from(limit)? + 40, true);
    }
    let server = arena.start(&Wishes::default())?;
    let more = arena.form.pick(10, 40);
    let before = limited_now(&server, more);
    match before {
        Ok(before) => {
            let what = format!("prlimit to {more} descriptors more than are open");
            crowded(&mut findings, arena, &server, &what, usize::try_from(more)? + 38, false);
            for (pid, limit) in before {
                prlimit(Some(pid), Resource::Nofile, limit)?;
            }
        }
        Err(error) => findings.skip("prlimit", error),
    }
    Ok(findings)
}

/// Sets the soft limit of every process a little above what it has open, and returns the limits before.
fn limited_now(server: &Server, more: u64) -> Result<Vec<(Pid, Rlimit)>, String> {
    let mut before = Vec::new();
    for pid in server.processes() {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).map_err(|error| error.to_string())?.count();
        let limit = limit_of(pid)?;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no process")?;
        let lower = Rlimit { current: Some(open as u64 + more), ..limit };
        prlimit(Some(pid), Resource::Nofile, lower).map_err(|error| format!("prlimit: {error}"))?;
        before.push((pid, limit));
    }
    Ok(before)
}

/// The limits that a process has now.
fn limit_of(pid: u32) -> Result<Rlimit, String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap_or_default();
    let mut limits = line.split_whitespace().map(|number| number.parse::<u64>().ok());
    let mut next = || limits.next().ok_or_else(|| format!("/proc/{pid}/limits has no limit of open files"));
    Ok(Rlimit { current: next()?, maximum: next()? })
}

fn crowded(
    findings: &mut Findings,
    arena: &Arena,
    server: &Server,
    what: &str,
    count: usize,
    is_from_start: bool,
) {
    let mut crowd = Crowd::come(&server.visitor(), count, arena);
    let held = crowd.served.len();
    findings.row(
        Row::new(format!("{what}, {count} clients that stay"), crowd.say())
            .expects(
                "each is served or refused at once, and some are served",
                crowd.hung == 0 && crowd.errors == 0 && held > 0,
            )
            .figure("served", held)
            .figure("refused", crowd.refused)
            .figure("hung", crowd.hung),
    );
    if let Some(admin) = server.admin() {
        let status = Visitor { patience: ANSWER, ..admin }.fetch("healthz").status;
        let did =
            if status == 200 { "answers".to_owned() } else { format!("does not answer (status {status})") };
        let row = Row::new(format!("{what}, the admin page meanwhile"), did);
        // A reserve is made at the start; a limit that is taken away later may take it away, too. Reported only.
        findings.row(if is_from_start { row.expects("it answers", status == 200) } else { row });
    }
    let (open, again) = crowd.ask_again();
    let closed = match held - open {
        0 => String::new(),
        closed => format!("; {closed} were closed while idle, for others"),
    };
    findings.row(
        Row::new(
            format!("{what}, those that were served ask again"),
            format!("{again} of {open} get the file{closed}"),
        )
        .expects("all that are open get it", open > 0 && again == open),
    );
    drop(crowd);
    let serves = holds_within(PATIENCE, || probe::serves(&server.visitor()));
    let did = if serves { "serves again" } else { "does not serve" };
    findings.row(Row::new(format!("{what}, after they have gone"), did).expects("it serves", serves));
}
