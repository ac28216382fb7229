//! One slice: one server under one load, with what it cost.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::accounting::{self, Cores, SATURATED, Snapshot, Usage};
use super::certificate::Certificate;
use super::clients::discard::Discard;
use super::clients::handshakes::Handshakes;
use super::clients::response::Span;
use super::clients::slow::Slow;
use super::clients::verify::Verify;
use super::clients::wrk::{Wrk, WrkRun};
use super::clients::{Client, Job, Order, Outcome, TlsOrder, Version};
use super::files::{self, FILE_1MB, FILE_2GB, FILE_10KB};
use super::network::Link;
use super::options::{Cipher, ClientWait};
use super::servers::RunningServer;
use super::works::{Load, SLOW_FEW_BYTES, SLOW_FEW_CONNECTIONS, Unit};

/// Requests of the first, unmeasured slice of the handshake work.
const HANDSHAKES_TRIAL: u64 = 300;

/// What a slice needs to know beyond its server.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    /// The network.
    pub(crate) link: &'a Link,
    /// The cores.
    pub(crate) cores: Cores,
    /// The document root.
    pub(crate) root: &'a Path,
    /// The servers' certificate.
    pub(crate) certificate: &'a Certificate,
    /// The one suite.
    pub(crate) cipher: Cipher,
    /// wrk, if it is there.
    pub(crate) wrk: Option<&'a Wrk>,
    /// How long a slice should last.
    pub(crate) slice_s: f64,
    /// How the discarding client waits.
    pub(crate) client_wait: ClientWait,
    /// How much of the 2 GB file the bulk works fetch on each connection.
    pub(crate) bulk_bytes: u64,
}

/// A server's listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The server.
    pub(crate) server: &'a RunningServer,
    /// Its TLS listener or the plain one.
    pub(crate) tls: bool,
}

/// How much work a slice is, so that it lasts about as long as wished.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    /// Whatever a client process is ordered to do.
    Client(Job),
    /// wrk.
    Wrk(WrkRun),
}

/// A measured slice.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Slice {
    /// The round.
    pub(crate) round: usize,
    /// Responses.
    pub(crate) requests: u64,
    /// Bytes of their bodies.
    pub(crate) body_bytes: u64,
    /// Bytes on the wire; with wrk, bytes of heads and bodies.
    pub(crate) received_bytes: u64,
    /// CPU and wall clock.
    pub(crate) usage: Usage,
    /// The client's core was the limit.
    pub(crate) client_limited: bool,
}

impl Slice {
    /// Server CPU seconds per unit.
    pub(crate) fn cost_s(&self, unit: Unit) -> f64 {
        self.usage.server_cpu_s / self.units(unit)
    }

    /// The same by the server core's busy time, interrupts and strangers included.
    pub(crate) fn core_cost_s(&self, unit: Unit) -> f64 {
        self.usage.server_core_busy_s / self.units(unit)
    }

    /// Body bytes per second, in GB.
    pub(crate) fn gigabytes_per_s(&self) -> f64 {
        self.body_bytes as f64 / 1e9 / self.usage.wall_s
    }

    fn units(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Gigabyte => self.body_bytes as f64 / 1e9,
            Unit::Request | Unit::Connection => self.requests as f64,
        }
    }
}

impl Bench<'_> {
    /// The order for a job at a listener.
    pub(crate) fn order(&self, target: Target<'_>, job: Job) -> Order {
        let endpoints = target.server.endpoints;
        let tls = target.tls.then(|| TlsOrder {
            certificate: self.certificate.chain.clone(),
            cipher: self.cipher,
            version: Version::Tls13,
        });
        Order { server: if target.tls { endpoints.tls } else { endpoints.plain }, tls, job }
    }

    /// Runs a job without measuring it.
    pub(crate) fn run(&self, target: Target<'_>, job: Job) -> Result<Outcome> {
        Client::prepare(self.link, &self.order(target, job))?.go()
    }

    /// Fetches every file whole, and a part at an odd offset, and compares; returns what was agreed on.
    pub(crate) fn verify(&self, target: Target<'_>) -> Result<String> {
        let mut agreed = String::new();
        let whole = files::FILE_SET.iter().map(|sample| (sample, None));
        let part = (&FILE_2GB, Some(Span { start: 1_234_567, length: 7_654_321 }));
        for (sample, span) in whole.chain([part]) {
            let verify = Verify { path: sample.url_path(), file: self.root.join(sample.name), span };
            agreed = self.run(target, Job::Verify(verify))?.agreed.unwrap_or_default();
        }
        Ok(agreed)
    }

    /// Tries the load once, unmeasured, and sizes the slices by it; `earlier` is the plan for another server.
    pub(crate) fn plan(&self, target: Target<'_>, load: Load, earlier: Option<&Plan>) -> Result<Plan> {
        match load {
            Load::Bulk { connections } => {
                let transfers = earlier.and_then(|plan| match plan {
                    Plan::Client(Job::Discard(job)) => Some(job.transfers),
                    _ => None,
                });
                self.plan_bulk(target, connections, transfers)
            }
            Load::KeepAlive { file, connections } => {
                let endpoints = target.server.endpoints;
                let run = WrkRun {
                    server: if target.tls { endpoints.tls } else { endpoints.plain },
                    tls: target.tls,
                    path: file.url_path(),
                    connections,
                    seconds: self.slice_s.ceil() as u64,
                    body_bytes: file.bytes,
                };
                self.wrk()?.run(self.link, &WrkRun { seconds: 1, ..run.clone() })?;
                Ok(Plan::Wrk(run))
            }
            Load::Handshakes { connections } => {
                let mut job = Handshakes {
                    path: FILE_10KB.url_path(),
                    body_bytes: FILE_10KB.bytes,
                    connections,
                    requests: HANDSHAKES_TRIAL,
                };
                let (usage, _) = self.measured(target, &Plan::Client(Job::Handshakes(job.clone())))?;
                let per_second = HANDSHAKES_TRIAL as f64 / usage.wall_s;
                job.requests = ((per_second * self.slice_s) as u64).max(connections as u64);
                Ok(Plan::Client(Job::Handshakes(job)))
            }
            Load::Slow { connections } => {
                let few = connections <= SLOW_FEW_CONNECTIONS;
                let fetches = SLOW_FEW_BYTES / FILE_1MB.bytes / SLOW_FEW_CONNECTIONS as u64;
                Ok(Plan::Client(Job::Slow(Slow {
                    path: FILE_1MB.url_path(),
                    file: self.root.join(FILE_1MB.name),
                    first_path: FILE_10KB.url_path(),
                    connections,
                    fetches: if few { fetches as usize } else { 1 },
                })))
            }
            Load::Idle { .. } => anyhow::bail!("memory is not measured in slices"),
        }
    }

    /// A slice is a number of bytes, not a time, so that the server begins and ends it idle. It is the same number
    /// for all servers: what `sendfile` costs a byte depends on how much of the file the caches hold, and a
    /// receiver that discards leaves nobody else to touch the bytes.
    fn plan_bulk(
        &self,
        target: Target<'_>,
        connections: usize,
        transfers_elsewhere: Option<usize>,
    ) -> Result<Plan> {
        let mut job = self.verified_discard(target, connections)?;
        let (usage, _) = self.measured(target, &Plan::Client(Job::Discard(job.clone())))?;
        let wished = (self.slice_s / usage.wall_s).round() as usize;
        job.transfers = transfers_elsewhere.unwrap_or(wished.max(1));
        Ok(Plan::Client(Job::Discard(job)))
    }

    fn verified_discard(&self, target: Target<'_>, connections: usize) -> Result<Discard> {
        let path = FILE_2GB.url_path();
        let whole = self.bulk_bytes >= FILE_2GB.bytes;
        let span = (!whole).then_some(Span { start: 0, length: self.bulk_bytes });
        let verify = Verify { path: path.clone(), file: self.root.join(FILE_2GB.name), span };
        let verified = self.run(target, Job::Verify(verify))?;
        Ok(Discard {
            path,
            span,
            body_bytes: verified.body_bytes,
            connections,
            transfers: 1,
            wait: self.client_wait,
            verified_wire_bytes: verified.wire_bytes,
        })
    }

    fn wrk(&self) -> Result<&Wrk> {
        self.wrk.context("wrk is not installed")
    }

    /// Runs a planned slice.
    pub(crate) fn slice(&self, target: Target<'_>, plan: &Plan, round: usize) -> Result<Slice> {
        let (usage, outcome) =
            self.measured(target, plan).with_context(|| format!("{}, round {round}", target.server.name))?;
        let client_limited = match (plan, outcome.fruitful_reads) {
            // Here the client is meant to be the limit.
            (Plan::Client(Job::Slow(_)), _) => false,
            // It is always busy; the question is whether it ever waits.
            (_, Some(share)) => share > SATURATED,
            (_, None) => usage.client_limited(),
        };
        Ok(Slice {
            round,
            requests: outcome.requests,
            body_bytes: outcome.body_bytes,
            received_bytes: outcome.wire_bytes,
            usage,
            client_limited,
        })
    }

    /// Runs a plan between two snapshots. Cores and wall clock end with the client's last byte, the server's CPU
    /// time when the server has come to rest.
    fn measured(&self, target: Target<'_>, plan: &Plan) -> Result<(Usage, Outcome)> {
        match plan {
            Plan::Client(job) => {
                let mut client = Client::prepare(self.link, &self.order(target, job.clone()))?;
                let pid = client.pid();
                self.between(target, || client.go(), || accounting::process_cpu_s(pid))
            }
            Plan::Wrk(run) => {
                let wrk = self.wrk()?;
                self.between(target, || wrk.run(self.link, run), accounting::ended_children_cpu_s)
            }
        }
    }

    fn between(
        &self,
        target: Target<'_>,
        work: impl FnOnce() -> Result<Outcome>,
        client_cpu_s: impl Fn() -> Result<f64>,
    ) -> Result<(Usage, Outcome)> {
        let pids = &target.server.pids;
        let client_before_s = client_cpu_s()?;
        let before = accounting::settled(pids, self.cores)?;
        let outcome = work()?;
        let end = Snapshot::take(pids, self.cores)?;
        let client_cpu_s = client_cpu_s()? - client_before_s;
        let rest = accounting::settled(pids, self.cores)?;
        let server_cpu_s = rest.since(&before).server_cpu_s;
        Ok((Usage { server_cpu_s, client_cpu_s, ..end.since(&before) }, outcome))
    }
}
