//! What is settled before anything is started: folders, cores, which servers can be run, which points can be measured.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::networks::{NetworkSetting, Networks};
use super::{Options, limits};
use crate::client::{Clients, fio, wrk};
use crate::compare::name_of;
use crate::cores::Cores;
use crate::definition::{CacheState, Definition};
use crate::error::{Error, Result};
use crate::files::Files;
use crate::plan::{ExperimentPlan, PlannedPoint};
use crate::result::{ExperimentRun, Setup};
use crate::servers::{Candidate, Programs, debian13};

/// A server that can be run here.
#[derive(Debug)]
pub(super) struct Contestant {
    pub(super) candidate: Candidate,
    /// What it says of itself.
    pub(super) version: String,
}

/// The options that the run in `folder` had.
pub(super) fn as_before(options: &Options, folder: &Path, earlier: &ExperimentRun) -> Result<Options> {
    let unreadable = |what: &str| Error::Asked(format!("{}: its {what} cannot be read", folder.display()));
    let Setup { address, server_cores, client_cores, client_hosts } = &earlier.setup;
    let list = |cores: &[u32]| {
        let text = cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| unreadable("cores")) }
    };
    Ok(Options {
        quick: earlier.quick,
        output: Some(folder.to_path_buf()),
        servers: earlier.servers.iter().map(|server| server.name.clone()).collect(),
        rounds: Some(earlier.rounds_planned),
        changed: earlier.changed.clone(),
        server_cpus: list(server_cores)?,
        client_cpus: list(client_cores)?,
        address: address.parse().map_err(|_| unreadable("address"))?,
        clients: client_hosts.clone(),
        command: earlier.command.clone(),
        ..options.clone()
    })
}

/// The cache folder, held by a lock: two runs would measure each other.
pub(crate) fn lock_cache(options: &Options) -> Result<(PathBuf, File)> {
    let cache = match &options.cache {
        Some(cache) => cache.clone(),
        None => user_cache()?,
    };
    fs::create_dir_all(&cache).map_err(Error::file("cannot create", &cache))?;
    // Servers take relative paths to be below folders of their own.
    let cache = cache.canonicalize().map_err(Error::file("cannot resolve", &cache))?;
    let path = cache.join("lock");
    let lock = File::create(&path).map_err(Error::file("cannot write", &path))?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        Error::Machine(format!(
            "another linerate bench is at work with {}: two would measure each other; wait for it to end",
            cache.display()
        ))
    })?;
    Ok((cache, lock))
}

fn user_cache() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("linerate/bench"))
        .ok_or_else(|| {
            Error::Asked("neither XDG_CACHE_HOME nor HOME is set: name a folder with --cache".to_owned())
        })
}

/// Which machines and cores.
pub(crate) fn clients_and_cores(options: &Options) -> Result<(Clients, Cores)> {
    let is_here = options.clients.is_empty();
    if !is_here && options.address.is_loopback() {
        return Err(Error::Asked(
            "other machines cannot reach a server on loopback: say with --address where it is to listen"
                .to_owned(),
        ));
    }
    reachable_over_loopback(options)?;
    let cores = Cores::divide(options.server_cpus.as_ref(), options.client_cpus.as_ref(), is_here)?;
    let clients = if is_here {
        Clients::Here { program: options.program.clone(), cores: cores.client.clone() }
    } else {
        Clients::Hosts {
            ssh: options.ssh.clone(),
            hosts: options.clients.clone(),
            program: options.client_program.clone(),
            here: options.program.clone(),
        }
    };
    Ok((clients, cores))
}

/// Certificates and links are for one address.
fn reachable_over_loopback(options: &Options) -> Result<()> {
    if options.address.is_unspecified() {
        return Err(Error::Asked(
            "--address: one address is needed, by which clients reach the server".to_owned(),
        ));
    }
    std::net::TcpListener::bind((options.address, 0)).map(drop).map_err(|error| {
        Error::Asked(format!("--address {}: this machine cannot listen there: {error}", options.address))
    })
}

/// The programs that are not looked for.
pub(super) fn programs(options: &Options, cache: &Path) -> Programs {
    let debian13 = options.debian13.clone().unwrap_or_else(|| cache.join(debian13::FOLDER));
    Programs { linerate: options.program.clone(), debian13 }
}

/// The servers that can be run here; why the others cannot goes to `skipped`.
pub(super) fn contestants(
    definition: &Definition,
    programs: &Programs,
    skipped: &mut Vec<String>,
) -> Vec<Contestant> {
    let candidates = definition.servers.iter().filter_map(|name| {
        let candidate = Candidate::new(name, &definition.own_servers, programs);
        if candidate.is_none() {
            skipped.push(format!("{name}: there is no such server"));
        }
        candidate
    });
    let candidates: Vec<Candidate> = candidates.collect();
    let mut found = Vec::new();
    for candidate in candidates {
        match candidate.probe() {
            Ok(version) => found.push(Contestant { candidate, version }),
            Err(reason) => skipped.push(format!("{}: {reason}", candidate.name)),
        }
    }
    found
}

/// The plan without what cannot be measured here; why goes to `skipped`, each reason once.
pub(super) fn feasible_plan(
    definition: &Definition,
    contestants: &[Contestant],
    files: &Files,
    clients: &Clients,
    networks: &mut Networks,
    skipped: &mut Vec<String>,
) -> ExperimentPlan {
    let is_plaintext: Vec<bool> =
        contestants.iter().map(|contestant| contestant.candidate.is_plaintext()).collect();
    let mut plan = ExperimentPlan::new(definition, &is_plaintext);
    for reason in plan.without(|point| infeasible(point, contestants, files, clients, networks)) {
        if !skipped.contains(&reason) {
            skipped.push(reason);
        }
    }
    plan
}

fn infeasible(
    point: &PlannedPoint,
    contestants: &[Contestant],
    files: &Files,
    clients: &Clients,
    networks: &mut Networks,
) -> Option<String> {
    let Contestant { candidate, version } = &contestants[point.server];
    let workload = &point.workload;
    if let Some(reason) = candidate.refusal(version, workload) {
        return Some(format!("{}: {reason}", name_of(&candidate.name, &point.variables)));
    }
    if let Some(reason) = wrk::refusal(workload, clients).or_else(|| fio::refusal(workload, clients)) {
        return Some(reason);
    }
    if let Err(reason) = networks.bring_up(&NetworkSetting::of(point.server, candidate, workload)) {
        return Some(reason);
    }
    let connections = workload.connections;
    if let Some(reason) = limits::too_many_connections(connections) {
        return Some(format!("connections {connections}: {reason}"));
    }
    let reason = match workload.cache {
        CacheState::Hot => limits::too_large_for_memory(workload.set_bytes()),
        CacheState::Cold => files.always_cached(),
    };
    reason.map(|reason| {
        format!("cache {}: {reason}", if workload.cache == CacheState::Hot { "hot" } else { "cold" })
    })
}
