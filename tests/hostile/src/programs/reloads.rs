//! Reloads under load: many of them, with a listener that goes and comes, and with other certificates.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Result;
use linerate_end_to_end::{Algorithm, CertificatePair, ClientSetup, pattern};
use rustix::process::Signal;

use super::holds_within;
use crate::{
    Arena, Findings, Row, Server, Visitor, Wishes,
    arena::PROBE,
    load::{self, Load},
    visitor::PATIENCE,
};

const FILE: (&str, usize) = ("reloads.bin", 262_145);

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    arena.content.add(FILE.0, FILE.1)?;
    let mut findings = Findings::default();
    let reloads = arena.form.pick(20, 500);
    storm(&mut findings, arena, reloads)?;
    if let Some(why) = arena.why_not_started() {
        findings.skip("a listener that goes and comes, and other certificates", why);
        return Ok(findings);
    }
    listener(&mut findings, arena, reloads)?;
    certificates(&mut findings, arena, reloads.min(50))?;
    Ok(findings)
}

/// The time between two reloads: shorter than one takes, so that they meet.
const REST: Duration = Duration::from_millis(60);

fn storm(findings: &mut Findings, arena: &Arena, reloads: usize) -> Result<()> {
    let mut server = arena.start(&Wishes::default())?;
    let loads = [false, true].map(|close| {
        Load::start(&server.visitor(), &[FILE.0, PROBE.0], arena.content.root.clone(), 4, close)
    });
    for _ in 0..reloads {
        server.signal(Signal::HUP);
        thread::sleep(REST);
        if !server.is_running() {
            break;
        }
    }
    let mut failures = 0;
    let mut said = Vec::new();
    for (load, what) in loads.into_iter().zip(["kept connections", "a connection each"]) {
        match load.finish() {
            Ok(report) => {
                failures += load::failures(&report) + u64::from(report.totals.responses == 0);
                said.push(format!("{what}: {}", load::say(&report)));
            }
            // A server that went before the first connection is what was found out, too.
            Err(error) => {
                failures += 1;
                said.push(format!("{what}: {error}"));
            }
        }
    }
    if !server.is_running() {
        said.push(ended(&server));
    }
    findings.row(
        Row::new(format!("{reloads} times HUP under load"), said.join("; "))
            .expects("no request fails", failures == 0 && server.is_running())
            .figure("failures", failures),
    );
    Ok(())
}

/// What became of connections to a listener that goes and comes.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    served: usize,
    refused: usize,
    failed: usize,
}

fn ask_until(visitor: &Visitor, stop: &AtomicBool) -> Met {
    let bytes = pattern(PROBE.0, PROBE.1);
    let mut met = Met::default();
    while !stop.load(Ordering::Relaxed) {
        // Once `connect` has succeeded the server has the connection, or its listener's queue has.
        match visitor.connect() {
            Err(_) => {
                met.refused += 1;
                thread::sleep(Duration::from_millis(1));
            }
            Ok(stream) => match visitor.visit_over(stream).map(|mut visit| visit.fetch(PROBE.0)) {
                Ok(fetched) if fetched.is(&bytes) => met.served += 1,
                _ => met.failed += 1,
            },
        }
    }
    met
}

fn listener(findings: &mut Findings, arena: &Arena, reloads: usize) -> Result<()> {
    let further: SocketAddr = TcpListener::bind((arena.family.loopback(), 0))?.local_addr()?;
    let with = Wishes { further: Some(further), ..Wishes::default() };
    let mut server = arena.start(&with)?;
    let visitor = Visitor { address: further, ..server.visitor() };
    let stop = AtomicBool::new(false);
    let met: Vec<Met> = thread::scope(|scope| {
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(|| ask_until(&visitor, &stop))).collect();
        for number in 0..reloads {
            let wishes = if number % 2 == 0 { Wishes::default() } else { with.clone() };
            if arena.configure(&server.folder, &wishes, server.ports).is_ok() {
                server.signal(Signal::HUP);
            }
            thread::sleep(REST * 2);
            if !server.is_running() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        asking.into_iter().filter_map(|asking| asking.join().ok()).collect()
    });
    let sum = |of: fn(&Met) -> usize| met.iter().map(of).sum::<usize>();
    let (served, refused, failed) = (sum(|met| met.served), sum(|met| met.refused), sum(|met| met.failed));
    let is_running = server.is_running();
    let mut did =
        format!("{served} served, {refused} refused before there was a connection, {failed} lost after it");
    if !is_running {
        did = format!("{did}; {}", ended(&server));
    }
    findings.row(
        Row::new(format!("a listener goes and comes at {reloads} reloads under load"), did)
            .expects("none that was connected is lost", failed == 0 && served > 0 && is_running)
            .figure("served", served)
            .figure("lost", failed),
    );
    Ok(())
}

fn certificates(findings: &mut Findings, arena: &Arena, reloads: usize) -> Result<()> {
    let mut server = arena.start(&Wishes::default())?;
    let names = ["localhost", "127.0.0.1", "::1"];
    let keys = arena.folder().join("swapped");
    let other = CertificatePair::create(&keys, "second", Algorithm::Ecdsa, &names);
    let first = CertificatePair { der: arena.certificate.der.clone(), ..other.clone() };
    let kept: Vec<_> = [&arena.certificate.certificate, &arena.certificate.key]
        .into_iter()
        .map(fs::read)
        .collect::<Result<_, _>>()?;
    let visitor = Visitor { tls: Some(ClientSetup::new([&first, &other])), ..server.visitor() };
    let stop = Arc::<AtomicBool>::default();
    let asking = {
        let (stop, visitor) = (Arc::clone(&stop), visitor.clone());
        thread::spawn(move || ask_until(&visitor, &stop))
    };
    let second = [fs::read(&other.certificate)?, fs::read(&other.key)?];
    let is_served = |pair: &CertificatePair| {
        let visitor = Visitor { tls: Some(ClientSetup::new([pair])), ..visitor.clone() };
        visitor.visit().is_ok()
    };
    let mut swapped = 0;
    for number in 0..reloads {
        let (files, pair) = if number % 2 == 0 { (&second[..], &other) } else { (&kept[..], &first) };
        swap(&arena.certificate, files)?;
        server.signal(Signal::HUP);
        swapped += usize::from(holds_within(PATIENCE, || is_served(pair) || !server.is_running()));
        if !server.is_running() {
            swapped -= 1;
            break;
        }
    }
    swap(&arena.certificate, &kept)?;
    stop.store(true, Ordering::Relaxed);
    let met = asking.join().unwrap_or_default();
    let mut did = format!(
        "{swapped} of {reloads} took effect; {} requests served, {} failed",
        met.served,
        met.failed + met.refused
    );
    if !server.is_running() {
        did = format!("{did}; {}", ended(&server));
    }
    findings.row(
        Row::new(format!("the certificate is swapped {reloads} times under load"), did)
            .expects(
                "each takes effect, no request fails",
                swapped == reloads && met.failed + met.refused == 0 && met.served > 0,
            )
            .figure("failed", met.failed + met.refused),
    );
    Ok(())
}

/// How a server ended that should have gone on.
fn ended(server: &Server) -> String {
    match server.ended_by() {
        Some(signal) => format!("the server was ended by signal {signal}"),
        None => format!("the server ended: {}", server.said()),
    }
}

/// Writes certificate and key beside the old ones and renames them over them.
fn swap(pair: &CertificatePair, files: &[Vec<u8>]) -> Result<()> {
    for (path, bytes) in [&pair.certificate, &pair.key].into_iter().zip(files) {
        let new = path.with_extension("new");
        fs::write(&new, bytes)?;
        fs::rename(new, path)?;
    }
    Ok(())
}
