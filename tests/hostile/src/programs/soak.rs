//! Load for a time: every byte is compared, and memory and descriptors are looked at before and after.

use std::{thread, time::Duration};

use anyhow::Result;

use super::holds_within;
use crate::{
    Arena, Findings, Row, Wishes,
    arena::PROBE,
    load::{self, Load},
    visitor::PATIENCE,
};

/// Around the boundaries of records, batches and mappings.
const FILES: [(&str, usize); 6] = [
    ("soak-0.bin", 1),
    ("soak-1.bin", 16_385),
    ("soak-2.bin", 65_543),
    ("soak-3.bin", 262_145),
    ("soak-4.bin", 1_048_577),
    ("soak-5.bin", 12_000_007),
];

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    let mut findings = Findings::default();
    for (name, length_bytes) in FILES {
        arena.content.add(name, length_bytes)?;
    }
    let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).chain([PROBE.0]).collect();
    let mut server = arena.start(&Wishes::default())?;
    let files_at_rest = server.open_files();
    let root = || arena.content.root.clone();
    let loads = [
        Load::start(&server.visitor(), &names, root(), 16, false),
        Load::start(&server.visitor(), &names, root(), 4, true),
        Load::start(&server.plain_visitor(), &names, root(), 8, false),
    ];
    // Caches and buffers fill first.
    let warm_up = arena.soak.min(Duration::from_secs(20)) / 4;
    thread::sleep(warm_up);
    let memory_before = server.resident_kib();
    thread::sleep(arena.soak.saturating_sub(warm_up));
    let memory_after = server.resident_kib();
    let (mut failures, mut requests, mut bytes, mut said) = (0, 0, 0, Vec::new());
    for (load, what) in loads.into_iter().zip(["TLS, kept", "TLS, one each", "in the clear"]) {
        let report = load.finish()?;
        failures += load::failures(&report) + u64::from(report.totals.responses == 0);
        requests += report.totals.requests;
        bytes += report.totals.body_bytes;
        if load::failures(&report) > 0 {
            said.push(format!("{what}: {}", load::say(&report)));
        }
    }
    // Files stay open in a server's cache, as many as were asked for.
    let settled = holds_within(PATIENCE, || server.open_files() <= files_at_rest + names.len() + 2);
    let did = format!(
        "{:.1} GB in {requests} requests, {failures} failed or wrong; memory {} → {} MiB, descriptors at rest {files_at_rest} → {}{}{}",
        bytes as f64 / 1e9,
        memory_before / 1024,
        memory_after / 1024,
        server.open_files(),
        if said.is_empty() { "" } else { "; " },
        said.join("; ")
    );
    findings.row(
        Row::new(format!("load for {} s, every byte compared", arena.soak.as_secs()), did)
            .expects(
                "nothing fails, no wrong bytes, no descriptors left",
                failures == 0 && settled && server.is_running(),
            )
            .figure("bytes", bytes)
            .figure("requests", requests)
            .figure("failures", failures)
            .figure("memory_before_kib", memory_before)
            .figure("memory_after_kib", memory_after),
    );
    Ok(findings)
}
