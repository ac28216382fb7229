//! A process that is frozen in the middle of transfers for longer than every time limit: STOP and CONT, as a paused machine.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use anyhow::Result;
use rustix::process::Signal;

use crate::{Arena, Ending, Findings, Row, Server, Visitor, Wishes, probe, visitor::Fetched};

const FILE: (&str, usize) = ("frozen.bin", 12_582_917);
const LIMIT: Duration = Duration::from_secs(3);
/// Read before the freeze.
const BEGINNING_BYTES: usize = 100_003;
/// Read at a time until all transfers are in the middle, and how long each waits in between.
const SIP_BYTES: usize = 16_001;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    let bytes = arena.content.add(FILE.0, FILE.1)?;
    let mut findings = Findings::default();
    let transfers = arena.form.pick(12, 64);
    let (limit, frozen) = match arena.why_not_started() {
        None => (Some(LIMIT), LIMIT * 2 + Duration::from_secs(1)),
        // Of a server that runs already the limits are not known; this is longer than most.
        Some(_) => (None, Duration::from_secs(90)),
    };
    let server = arena.start(&Wishes { time_limit: limit, ..Wishes::default() })?;
    for (way, visitor) in [("over TLS", server.visitor()), ("in the clear", server.plain_visitor())] {
        let visitor = Visitor {
            receive_buffer_bytes: Some(32 * 1024),
            patience: frozen * 2 + Duration::from_secs(10),
            ..visitor
        };
        let fetched = freeze(&server, &visitor, transfers, frozen);
        let count = |ending| fetched.iter().filter(|fetched| fetched.ending == ending).count();
        let (whole, cut) = (count(Ending::Whole), transfers - count(Ending::Whole));
        let wrong = fetched.iter().filter(|fetched| !fetched.is_right_as_far_as_it_came(&bytes)).count();
        let did = format!("{whole} of {transfers} whole, {cut} cut, {wrong} with wrong bytes");
        let fault = format!(
            "frozen for {} s in {transfers} transfers {way}{}",
            frozen.as_secs(),
            limit.map_or(String::new(), |limit| format!(", time limits {} s", limit.as_secs()))
        );
        findings.row(
            Row::new(fault, did)
                .expects("all whole", whole == transfers && wrong == 0)
                .figure("whole", whole),
        );
    }
    let serves = probe::serves(&server.visitor());
    let did = if serves { "serves" } else { "does not serve" };
    findings.row(Row::new("after that", did).expects("it serves", serves));
    Ok(findings)
}

/// Every client asks on a thread of its own and reads a little at a time until all are in the middle, so that none is cut
/// for having waited for the others. Then the process is frozen; when it goes on they read on at once.
fn freeze(server: &Server, visitor: &Visitor, transfers: usize, frozen: Duration) -> Vec<Fetched> {
    let (in_the_middle, is_frozen) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let read = || read_across(visitor, &in_the_middle, &is_frozen);
        let reading: Vec<_> = (0..transfers).map(|_| scope.spawn(read)).collect();
        while in_the_middle.load(Ordering::Relaxed) < transfers {
            thread::sleep(PAUSE);
        }
        server.signal_all(Signal::STOP);
        is_frozen.store(true, Ordering::Relaxed);
        thread::sleep(frozen);
        server.signal_all(Signal::CONT);
        reading.into_iter().map(|reader| reader.join().unwrap_or_else(|_| lost(Ending::Cut))).collect()
    })
}

fn lost(ending: Ending) -> Fetched {
    Fetched { ending, status: 0, body: Vec::new(), took: Duration::ZERO }
}

fn read_across(visitor: &Visitor, in_the_middle: &AtomicUsize, is_frozen: &AtomicBool) -> Fetched {
    let mut visit = visitor.visit();
    let begun = visit.as_mut().map_err(|ending| *ending).and_then(|visit| {
        let mut transfer = visit.begin(FILE.0)?;
        transfer.read_to(BEGINNING_BYTES)?;
        Ok(transfer)
    });
    // Whether it has begun or not: it is not waited for any longer.
    in_the_middle.fetch_add(1, Ordering::Relaxed);
    let going_on = begun.and_then(|mut transfer| {
        let mut read_bytes = BEGINNING_BYTES;
        while !is_frozen.load(Ordering::Relaxed) && read_bytes < FILE.1 / 2 {
            thread::sleep(PAUSE);
            read_bytes += SIP_BYTES;
            transfer.read_to(read_bytes)?;
        }
        Ok(transfer)
    });
    match going_on {
        Ok(transfer) => transfer.finish(),
        Err(ending) => lost(ending),
    }
}
