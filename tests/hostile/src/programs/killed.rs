//! kill -9 under load, and a start at the same ports at once.

use std::{thread, time::Duration};

use anyhow::Result;
use rustix::process::Signal;

use crate::{Arena, Findings, Row, Wishes, arena::PROBE, load::Load, visitor::PATIENCE};

const FILE: (&str, usize) = ("killed.bin", 1_048_577);

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    let mut findings = Findings::default();
    if let Some(why) = arena.why_not_started() {
        findings.skip("all of it", why);
        return Ok(findings);
    }
    arena.content.add(FILE.0, FILE.1)?;
    let wishes = Wishes::default();
    let ports = arena.ports()?;
    let kills = arena.form.pick(3, 20);
    let (mut restarted, mut wrong, mut slowest) = (0, 0, Duration::ZERO);
    let mut why = String::new();
    let mut server = arena.spawn(&wishes, ports)?;
    server.wait_until_it_serves()?;
    for _ in 0..kills {
        let load = Load::start(&server.visitor(), &[FILE.0, PROBE.0], arena.content.root.clone(), 16, false);
        thread::sleep(Duration::from_millis(300));
        server.signal_all(Signal::KILL);
        let gone = server.wait_for_end(PATIENCE);
        wrong += load.finish()?.mismatches.len();
        drop(server);
        server = arena.spawn(&wishes, ports)?;
        match server.wait_until_it_serves() {
            Ok(after) if gone.is_some() => {
                restarted += 1;
                slowest = slowest.max(after);
            }
            Ok(_) => why = "the killed process did not go".to_owned(),
            Err(error) => why = error.to_string(),
        }
    }
    let did = format!(
        "{restarted} of {kills} starts serve, the slowest after {:.1} s; {wrong} responses with wrong bytes{}",
        slowest.as_secs_f64(),
        if why.is_empty() { String::new() } else { format!(" ({why})") }
    );
    findings.row(
        Row::new("kill -9 under load, then a start at the same ports", did)
            .expects("each start serves, no wrong bytes", restarted == kills && wrong == 0)
            .figure("restarted", restarted)
            .figure("wrong", wrong),
    );
    Ok(findings)
}
