//! Access logs that are stuck or full, and the signals of an operator after that.

use std::{fs, time::Duration};

use anyhow::Result;
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    process::Signal,
};

use super::{holds_within, say_end};
use crate::{
    Arena, Findings, Row, Server, Wishes,
    arena::PROBE,
    load::{self, Load},
    probe,
    server::Log,
};

/// How long an end may take that is to come at once.
const END: Duration = Duration::from_secs(20);
/// Connections have this long to finish at QUIT; what waits is the log, not they.
const DRAIN: Duration = Duration::from_secs(2);

/// What is the matter with the log.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Unread,
    Fifo,
    Full,
}

impl Trouble {
    fn label(self) -> &'static str {
        match self {
            Self::Unread => "the access log goes to a pipe that nobody reads",
            Self::Fifo => "USR1 finds a FIFO without a reader at the access log's path",
            Self::Full => "the access log goes to /dev/full",
        }
    }

    fn log(self) -> Log {
        match self {
            Self::Unread => Log::UnreadPipe,
            Self::Fifo => Log::File,
            Self::Full => Log::Full,
        }
    }
}

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    let mut findings = Findings::default();
    if let Some(why) = arena.why_not_started() {
        findings.skip("all of it", why);
        return Ok(findings);
    }
    for trouble in [Trouble::Unread, Trouble::Fifo, Trouble::Full] {
        let wishes = Wishes { log: trouble.log(), drain: Some(DRAIN), ..Wishes::default() };
        findings.row(serving(arena, trouble, &wishes)?);
        for signal in [Signal::TERM, Signal::QUIT, Signal::HUP, Signal::USR1] {
            let mut server = arena.start(&wishes)?;
            into_trouble(arena, &mut server, trouble)?;
            findings.row(signalled(&mut server, trouble, signal));
        }
    }
    Ok(findings)
}

/// Fills the log until it is stuck: more lines than a pipe and any queue before it hold.
fn into_trouble(arena: &Arena, server: &mut Server, trouble: Trouble) -> Result<String> {
    if matches!(trouble, Trouble::Fifo) {
        let path = server.folder.join("access.log");
        fs::remove_file(&path)?;
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        server.signal(Signal::USR1);
    }
    let visitor = crate::Visitor { patience: Duration::from_secs(3), ..server.plain_visitor() };
    let load = Load::start(&visitor, &[PROBE.0], arena.content.root.clone(), 8, false);
    std::thread::sleep(arena.form.pick(Duration::from_millis(700), Duration::from_secs(3)));
    Ok(match (load.finish(), server.is_running()) {
        (Ok(report), true) => load::say(&report),
        (Err(error), true) => error.to_string(),
        (_, false) => "the server ended".to_owned(),
    })
}

/// Whether requests are answered while the log is in trouble.
fn serving(arena: &Arena, trouble: Trouble, wishes: &Wishes) -> Result<Row> {
    let mut server = arena.start(wishes)?;
    let said = into_trouble(arena, &mut server, trouble)?;
    let visitor = crate::Visitor { patience: END, ..server.visitor() };
    let serves = probe::serves(&visitor);
    let did =
        format!("under load {said}; after it {}", if serves { "it serves" } else { "it does not serve" });
    Ok(Row::new(trouble.label(), did).expects("requests are answered all the same", serves))
}

fn signalled(server: &mut Server, trouble: Trouble, signal: Signal) -> Row {
    let (name, ends) = match signal {
        Signal::TERM => ("TERM", true),
        Signal::QUIT => ("QUIT", true),
        Signal::HUP => ("HUP", false),
        _ => ("USR1", false),
    };
    let fault = format!("{}; {name}", trouble.label());
    if !server.is_running() {
        let by = server.ended_by().map_or(String::new(), |signal| format!(" by signal {signal}"));
        return Row::new(fault, format!("had ended before{by}")).expects("it lives until then", false);
    }
    server.signal(signal);
    if ends {
        let ended = server.wait_for_end(END);
        return Row::new(fault, say_end(ended, END)).expects("it ends in bounded time", ended.is_some());
    }
    let (mut is_served, mut is_healthy) = (false, false);
    let settled = holds_within(END, || {
        let visitor = crate::Visitor { patience: Duration::from_secs(5), ..server.visitor() };
        is_served = probe::serves(&visitor);
        is_healthy = server.admin().is_none_or(|admin| {
            crate::Visitor { patience: Duration::from_secs(5), ..admin }.fetch("healthz").status == 200
        });
        is_served && is_healthy
    });
    server.signal(Signal::TERM);
    let ended = server.wait_for_end(END);
    let did = format!(
        "{}{}; TERM after it: {}",
        if is_served { "serves" } else { "does not serve" },
        if is_healthy { "" } else { ", its admin page is dead" },
        say_end(ended, END)
    );
    Row::new(fault, did).expects("it serves, is healthy, and ends at TERM", settled && ended.is_some())
}
