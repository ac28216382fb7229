//! Disks that are slower than the time limits, that fail, and that hang.

use std::{ops::Range, thread, time::Duration};

use anyhow::Result;
use rustix::process::Signal;

use super::{holds_within, say_end};
use crate::{
    Arena, Ending, Fault, Findings, Row, Server, SlowDisk, Visitor, Wishes,
    probe::{self, Probe},
    visitor::{Fetched, PATIENCE},
};

const FILE: (&str, usize) = ("disk.bin", 10_485_761);
/// The byte that the disk has trouble with.
const PLACE: Range<u64> = 5_400_000..5_400_001;
const LIMIT: Duration = Duration::from_secs(3);
const SLOW: Duration = Duration::from_secs(8);
const END: Duration = Duration::from_secs(5);

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    let mut findings = Findings::default();
    if let Some(why) = arena.why_not_started() {
        findings.skip("all of it", why);
        return Ok(findings);
    }
    let bytes = arena.content.add(FILE.0, FILE.1)?;
    let crowd = arena.form.pick(6, 40);
    let names: Vec<String> = (0..crowd).map(|number| format!("hangs-{number}.bin")).collect();
    for name in &names {
        arena.content.add(name, 300_007)?;
    }
    let disk = match SlowDisk::mount(&arena.content.folder) {
        Ok(disk) => disk,
        Err(why) => {
            findings.skip("all of it", why);
            return Ok(findings);
        }
    };
    for (way, is_tls) in [("over TLS", true), ("in the clear", false)] {
        slow(&mut findings, arena, &disk, &bytes, way, is_tls)?;
        failing(&mut findings, arena, &disk, &bytes, way, is_tls)?;
    }
    hanging(&mut findings, arena, &disk, &names)?;
    Ok(findings)
}

fn start(arena: &Arena, disk: &SlowDisk) -> Result<Server> {
    arena.start(&Wishes {
        content: Some(disk.path().to_owned()),
        time_limit: Some(LIMIT),
        drain: Some(LIMIT),
        ..Wishes::default()
    })
}

fn visitor(server: &Server, is_tls: bool) -> Visitor {
    let visitor = if is_tls { server.visitor() } else { server.plain_visitor() };
    Visitor { patience: SLOW * 4, ..visitor }
}

fn say(fetched: &Fetched, bytes: &[u8]) -> String {
    let right = if fetched.is_right_as_far_as_it_came(bytes) { "" } else { ", wrong bytes among them" };
    let head = if fetched.status == 200 { String::new() } else { format!("status {}, ", fetched.status) };
    format!("{head}{}: {} of {} bytes{right}", fetched.ending, fetched.body.len(), bytes.len())
}

fn slow(
    findings: &mut Findings,
    arena: &Arena,
    disk: &SlowDisk,
    bytes: &[u8],
    way: &str,
    is_tls: bool,
) -> Result<()> {
    let server = start(arena, disk)?;
    disk.break_reads(FILE.0, PLACE, Fault::Delay(SLOW));
    let fetched = visitor(&server, is_tls).fetch(FILE.0);
    disk.mend();
    let fault =
        format!("one read takes the disk {} s, time limits {} s, {way}", SLOW.as_secs(), LIMIT.as_secs());
    findings.row(
        Row::new(fault, say(&fetched, bytes))
            .expects("the transfer is whole", fetched.is(bytes))
            .figure("bytes", fetched.body.len()),
    );
    Ok(())
}

fn failing(
    findings: &mut Findings,
    arena: &Arena,
    disk: &SlowDisk,
    bytes: &[u8],
    way: &str,
    is_tls: bool,
) -> Result<()> {
    let mut server = start(arena, disk)?;
    disk.break_reads(FILE.0, PLACE, Fault::Fail);
    let visitor = visitor(&server, is_tls);
    let fetched = visitor.fetch(FILE.0);
    let others = probe::serves(&visitor);
    disk.mend();
    let again = visitor.fetch(FILE.0);
    let did = format!(
        "{}; other files {}; once the disk is mended {}",
        say(&fetched, bytes),
        if others { "are served" } else { "are not served" },
        if again.is(bytes) { "whole" } else { "not whole" }
    );
    let holds = fetched.ending != Ending::Whole
        && fetched.ending != Ending::Silent
        && fetched.is_right_as_far_as_it_came(bytes);
    findings.row(
        Row::new(format!("a read fails with EIO in the middle, {way}"), did)
            .expects(
                "cut where it fails, nothing made up, others served",
                holds && others && again.is(bytes) && server.is_running(),
            )
            .figure("bytes", fetched.body.len()),
    );
    Ok(())
}

/// So many transfers wait for a disk that does not answer: others, TERM, and what they get once it does.
fn hanging(findings: &mut Findings, arena: &Arena, disk: &SlowDisk, names: &[String]) -> Result<()> {
    let hang = || {
        names.iter().for_each(|name| disk.break_reads(name, 200_000..200_001, Fault::Hang));
    };
    let fault = format!("{} transfers wait for a disk that hangs", names.len());
    let server = start(arena, disk)?;
    let before = disk.broken_reads();
    hang();
    let visitor = visitor(&server, true);
    let (met, figures, whole) = thread::scope(|scope| {
        let waiting: Vec<_> = names.iter().map(|name| scope.spawn(|| visitor.fetch(name))).collect();
        let met = disk.wait_for_broken_reads(before + 1, PATIENCE);
        let probe = Probe::start(Visitor { patience: Duration::from_secs(5), ..visitor.clone() });
        let figures = probe.watch(LIMIT + Duration::from_secs(1));
        disk.mend();
        let whole = waiting.into_iter().filter_map(|waiting| waiting.join().ok());
        (met, figures, whole.filter(|fetched| fetched.ending == Ending::Whole).count())
    });
    // More than a worker's waiting threads may wait at once: then others have to wait where the disk is asked for them.
    let row =
        Row::new(format!("{fault}; a well-behaved client"), figures.say()).figure("probe", figures.figures());
    findings.row(if names.len() <= 8 {
        row.expects("others are served meanwhile", met && figures.is_flawless())
    } else {
        row
    });
    findings.row(
        Row::new(
            format!("{fault}; it answers after {} s", LIMIT.as_secs() + 1),
            format!("{whole} of {} whole", names.len()),
        )
        .expects("all whole", whole == names.len()),
    );
    let mut server = server;
    let before = disk.broken_reads();
    hang();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| visitor.fetch(&names[0]).ending);
        let _ = disk.wait_for_broken_reads(before + 1, PATIENCE);
        server.signal(Signal::TERM);
        let ended = server.wait_for_end(END);
        disk.mend();
        let freed = holds_within(PATIENCE, || !server.is_running());
        let did = format!(
            "{}; {}",
            say_end(ended, END),
            if freed { "gone once the disk answers" } else { "not gone though the disk answers" }
        );
        // The kernel frees no thread from a read that FUSE has taken: what is expected is the end after that.
        findings.row(
            Row::new("TERM while a read hangs", did)
                .expects("gone once the disk answers, at the latest", freed),
        );
        drop(waiting.join());
    });
    Ok(())
}
