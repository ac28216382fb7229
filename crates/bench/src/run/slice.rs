//! One slice: one server under one load, and what it cost.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linerate_load::report::LoadReport;

use super::complaint::{complaint, idle_complaint};
use super::pool::{NoServer, Pool, Wish};
use crate::accounting::{Costs, Meter};
use crate::client::child::{self, Beside, LoadFailure};
use crate::client::{Aim, ClientCommand, Order, fio, wrk};
use crate::definition::{LoadProgram, Workload};
use crate::result::{Measurement, Reading, Round};
use crate::servers::process::{Broken, RunningServer};

/// What a load may take beyond its time, in seconds: opening connections, and ending.
const GRACE_S: f64 = 60.0;

/// The same for each connection.
const CONNECTION_GRACE_S: f64 = 0.005;

/// With fewer connections what each adds to memory is lost among other things.
const FEWEST_CONNECTIONS: u32 = 100;

/// How long is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) warmup_s: f64,
    pub(super) measured_s: f64,
}

/// What a slice has come to.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) round: Round,
    /// How the load was called.
    pub(super) client_command: Vec<String>,
}

/// Measures one slice; `None` where we were told to stop.
pub(super) fn measure(pool: &mut Pool, wish: Wish<'_>, span: Span) -> Option<Outcome> {
    let failed = |broken: Broken, client_command: Vec<String>| {
        let round = Round::Failed { reason: broken.reason, log: broken.log };
        Some(Outcome { round, client_command })
    };
    let mut server = match pool.take(wish) {
        Ok(server) => server,
        Err(NoServer::Interrupted) => return None,
        Err(NoServer::Broken(broken)) => return failed(broken, Vec::new()),
    };
    let ca = pool.ca(wish);
    let opening_s = wish.workload.opening_s();
    // The client opens its connections while it warms up: they are to be there when it measures. Those that are idle
    // afterwards ask in the measured time, so that the report has each of them.
    let (warmup_s, measured_s) = match wish.workload.idle {
        false => (span.warmup_s + opening_s, span.measured_s),
        true => (0.0, span.warmup_s + opening_s + span.measured_s),
    };
    let span = Span { warmup_s, measured_s };
    let aim = Aim::Measure { warmup_s, measured_s };
    let order = pool.order(wish, &server, ca.as_deref(), aim);
    let commands = match load_commands(pool, wish, &order) {
        Ok(commands) => commands,
        Err(reason) => return failed(server.broken(reason), Vec::new()),
    };
    let client_command = commands.first().map(|command| command.words.clone()).unwrap_or_default();
    if wish.workload.idle
        && let Err(failure) = touch(pool, wish, &mut server, ca.as_deref())
    {
        return match failure {
            LoadFailure::Interrupted => None,
            LoadFailure::Failed(reason) => failed(server.broken(reason), client_command),
        };
    }
    let resident_before = wish.workload.is_fresh().then(|| resident_bytes(&server)).flatten();
    let interface = pool.networks.of(&wish.network()).and_then(|(network, _)| network.interface());
    let mut meter = CostMeter::new(server.pids(), interface);
    let seconds =
        span.warmup_s + span.measured_s + GRACE_S + f64::from(wish.workload.connections) * CONNECTION_GRACE_S;
    let limit = Duration::from_secs_f64(seconds);
    let beside = Beside { server: &mut server, interrupted: wish.interrupted, limit };
    let found = match child::run(&commands, wish.clients.cores(), beside, &mut meter) {
        Ok(reports) => match idle_complaint(wish.workload, &reports) {
            Some(reason) => Err(reason),
            None => meter.measurement(reports),
        },
        Err(LoadFailure::Interrupted) => return None,
        Err(LoadFailure::Failed(reason)) => Err(reason),
    };
    match found {
        Ok(mut measurement) => {
            judge_wrk(wish.workload, &mut measurement);
            measurement.server_bytes_per_connection =
                bytes_per_connection(resident_before, &measurement, wish.workload.connections);
            pool.put_back(wish, server);
            Some(Outcome { round: Round::Measured(Box::new(measurement)), client_command })
        }
        // The server may be what is wrong: the next round gets a new one.
        Err(reason) => failed(server.broken(reason), client_command),
    }
}

/// How the load is called: `linerate load`, or another program where the experiment says so.
fn load_commands(pool: &Pool, wish: Wish<'_>, order: &Order<'_>) -> Result<Vec<ClientCommand>, String> {
    let mut commands = match wish.workload.client {
        LoadProgram::Linerate => wish.clients.commands(order),
        LoadProgram::Wrk => {
            let command = wrk::command(order, wish.clients.cores().len(), &pool.folder);
            vec![command.map_err(|error| format!("the files of wrk cannot be written: {error}"))?]
        }
        LoadProgram::Fio => {
            let command = fio::command(order, &pool.folder);
            vec![command.map_err(|error| format!("the files of fio cannot be written: {error}"))?]
        }
    };
    pool.put_at_client(&mut commands, wish);
    Ok(commands)
}

/// Has a fresh server allocate what it keeps, before its memory is read.
fn touch(
    pool: &Pool,
    wish: Wish<'_>,
    server: &mut RunningServer,
    ca: Option<&Path>,
) -> Result<(), LoadFailure> {
    let order = pool.order(wish, server, ca, Aim::Touch);
    let mut commands = wish.clients.commands(&order);
    pool.put_at_client(&mut commands, wish);
    let limit = Duration::from_secs_f64(GRACE_S);
    let beside = Beside { server, interrupted: wish.interrupted, limit };
    let reports = child::run(&commands, wish.clients.cores(), beside, &mut child::NoMeter)?;
    complaint(&reports).map_or(Ok(()), |reason| Err(LoadFailure::Failed(reason)))
}

/// wrk does not tell whether it was the limit.
fn judge_wrk(workload: &Workload, measurement: &mut Measurement) {
    if workload.client == LoadProgram::Wrk
        && let Some(load) = measurement.load.first_mut()
    {
        let client_cpu_s = measurement.client.user_s + measurement.client.system_s;
        load.client_limited = wrk::limit(client_cpu_s, measurement.elapsed_s, load.client.threads);
    }
}

/// What each connection added, where the server had none before and enough now.
fn bytes_per_connection(before: Option<u64>, measurement: &Measurement, connections: u32) -> Reading<f64> {
    let Some(before) = before else {
        return Reading::NotAvailable("the server had served before: see fresh_server".to_owned());
    };
    if connections < FEWEST_CONNECTIONS {
        return Reading::NotAvailable(format!("{connections} connections are too few to tell"));
    }
    match &measurement.server_resident_bytes {
        Reading::Value(after) => Reading::Value((*after as f64 - before as f64) / f64::from(connections)),
        Reading::NotAvailable(reason) => Reading::NotAvailable(reason.clone()),
    }
}

/// The memory of a server that has just been started.
fn resident_bytes(server: &RunningServer) -> Option<u64> {
    let costs = Meter::begin(&server.pids(), &[], None).ok()?.end().ok()?;
    costs.server_resident_bytes.value().copied()
}

/// Reads costs at the moments that the load clients name.
struct CostMeter {
    server_pids: Vec<u32>,
    interface: Option<String>,
    running: Option<Meter>,
    found: Option<Result<Costs, String>>,
}

impl CostMeter {
    fn new(server_pids: Vec<u32>, interface: Option<&str>) -> Self {
        Self { server_pids, interface: interface.map(str::to_owned), running: None, found: None }
    }

    fn measurement(self, reports: Vec<LoadReport>) -> Result<Measurement, String> {
        if let Some(reason) = complaint(&reports) {
            return Err(reason);
        }
        let costs = self.found.ok_or("the load client did not say when it measured")??;
        Ok(costs.measurement(reports))
    }
}

impl child::Meter for CostMeter {
    fn begin(&mut self, client_pids: &[u32]) {
        match Meter::begin(&self.server_pids, client_pids, self.interface.as_deref()) {
            Ok(meter) => self.running = Some(meter),
            Err(error) => self.found = Some(Err(error.to_string())),
        }
    }

    fn end(&mut self) {
        if let Some(meter) = self.running.take() {
            self.found = Some(meter.end().map_err(|error| error.to_string()));
        }
    }
}

/// Whether we were told to stop.
pub(super) fn is_interrupted(interrupted: &AtomicBool) -> bool {
    interrupted.load(std::sync::atomic::Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::measurement;

    #[test]
    fn memory_is_told_only_of_fresh_servers_with_many_connections() {
        let measured = measurement(0.2);
        assert_eq!(bytes_per_connection(Some(24_576), &measured, 1000), Reading::Value(1024.0));
        assert!(bytes_per_connection(None, &measured, 1000).value().is_none());
        assert!(bytes_per_connection(Some(0), &measured, 99).value().is_none());
    }
}
