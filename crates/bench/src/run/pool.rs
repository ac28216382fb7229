//! The servers of a run: started when they are first needed, checked byte for byte, and kept for later rounds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::complaint::complaint;
use super::networks::{NetworkSetting, Networks};
use super::prepare::Contestant;
use crate::certificate::Certificate;
use crate::client::child::{self, Beside, LoadFailure, NoMeter};
use crate::client::{Aim, ClientCommand, Clients, Order};
use crate::definition::{CertificateKind, Workload};
use crate::error::{Error, Result};
use crate::files::Files;
use crate::servers::process::{Broken, RunningServer, pick_address};
use crate::servers::{Launch, Place};

/// A setup that has failed to start so often is not tried again.
const MOST_ATTEMPTS: u32 = 2;

const VERIFY_LIMIT: Duration = Duration::from_secs(60);

/// What a server is started with, as far as a load determines it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Setup {
    server: usize,
    certificate: CertificateKind,
    record_bytes: Option<u32>,
    group: Option<String>,
    network: NetworkSetting,
}

/// How a setup has done so far.
#[derive(Debug, Default)]
struct History {
    failures: u32,
    is_verified: bool,
}

/// The servers of a run.
#[derive(Debug)]
pub(super) struct Pool {
    /// Where they and their clients are.
    pub(super) networks: Networks,
    /// Below it each has a folder of its own.
    pub(super) folder: PathBuf,
    /// Their cores.
    pub(super) cores: Vec<usize>,
    /// The most connections that any load has: what their limits are set by.
    pub(super) most_connections: u32,
    certificates: BTreeMap<CertificateKind, Certificate>,
    running: BTreeMap<Setup, RunningServer>,
    history: BTreeMap<Setup, History>,
    /// Every configuration that was started, by server, the first one first.
    launches: BTreeMap<usize, Vec<(Setup, Launch)>>,
}

/// Why there is no server.
#[derive(Debug)]
pub(super) enum NoServer {
    /// We were told to stop.
    Interrupted,
    /// What happened.
    Broken(Broken),
}

/// The server that a slice asks for, and its workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish<'a> {
    pub(super) server: usize,
    pub(super) contestant: &'a Contestant,
    pub(super) workload: &'a Workload,
    pub(super) files: &'a Files,
    pub(super) clients: &'a Clients,
    pub(super) interrupted: &'a AtomicBool,
}

impl Wish<'_> {
    /// What it asks of its network.
    pub(super) fn network(&self) -> NetworkSetting {
        NetworkSetting::of(self.server, &self.contestant.candidate, self.workload)
    }
}

impl Pool {
    /// An empty one.
    pub(super) fn new(
        networks: Networks,
        folder: PathBuf,
        cores: Vec<usize>,
        most_connections: u32,
    ) -> Result<Self> {
        fs::create_dir_all(&folder).map_err(Error::file("cannot create", &folder))?;
        let mut certificates = BTreeMap::new();
        for kind in [CertificateKind::Ecdsa, CertificateKind::Rsa] {
            certificates.insert(kind, Certificate::make(&folder, kind, &networks.addresses())?);
        }
        Ok(Self {
            networks,
            folder,
            cores,
            most_connections,
            certificates,
            running: BTreeMap::new(),
            history: BTreeMap::new(),
            launches: BTreeMap::new(),
        })
    }

    /// Takes a server that listens out of the pool; the caller puts it back if it is still good. A load that asks for
    /// a fresh one, and cold files, get one that has served nothing.
    pub(super) fn take(&mut self, wish: Wish<'_>) -> std::result::Result<RunningServer, NoServer> {
        let setup = Setup::of(wish);
        if wish.workload.is_fresh() {
            // Others may have the files mapped, and would keep them in the page cache.
            self.running.clear();
        } else if let Some(mut server) = self.running.remove(&setup)
            && server.death().is_none()
        {
            return Ok(server);
        }
        let verified = self.history.get(&setup).is_some_and(|history| history.is_verified);
        if !verified {
            let mut server = self.start(&setup, wish)?;
            self.verify(&mut server, wish)?;
            self.history.entry(setup.clone()).or_default().is_verified = true;
            if !wish.workload.is_fresh() {
                return Ok(server);
            }
        }
        if wish.workload.cache == crate::definition::CacheState::Cold
            && let Err(error) = wish.files.drop_cached(wish.workload)
        {
            return Err(NoServer::Broken(Broken { reason: error.to_string(), log: Vec::new() }));
        }
        self.start(&setup, wish)
    }

    /// Puts a server back, to be used again.
    pub(super) fn put_back(&mut self, wish: Wish<'_>, server: RunningServer) {
        if !wish.workload.is_fresh() {
            self.running.insert(Setup::of(wish), server);
        }
    }

    /// The certificate that clients are to trust; none for plaintext.
    pub(super) fn ca(&self, wish: Wish<'_>) -> Option<PathBuf> {
        let candidate = &wish.contestant.candidate;
        if candidate.has_no_tls() {
            return None;
        }
        candidate
            .ca()
            .or_else(|| self.certificates.get(&wish.workload.certificate).map(|made| made.chain.clone()))
    }

    /// A load for a server that listens; `ca` is what [`Pool::ca`] said.
    pub(super) fn order<'a>(
        &'a self,
        wish: Wish<'a>,
        server: &RunningServer,
        ca: Option<&'a Path>,
        aim: Aim<'a>,
    ) -> Order<'a> {
        let candidate = &wish.contestant.candidate;
        let asks = candidate.asks_clients_for_certificates();
        // Any that the server trusts will do: it trusts its own.
        let identity = self.certificates.get(&wish.workload.certificate).filter(|_| asks);
        let protocol = candidate.protocol();
        Order { workload: wish.workload, protocol, address: server.address, ca, identity, aim }
    }

    /// Has load clients be run at their end of the network.
    pub(super) fn put_at_client(&self, commands: &mut [ClientCommand], wish: Wish<'_>) {
        if let Some((network, _)) = self.networks.of(&wish.network()) {
            for command in commands {
                command.words = network.at_client(std::mem::take(&mut command.words));
            }
        }
    }

    /// How a server was started first, and every configuration that it was started with.
    pub(super) fn launched(&self, server: usize) -> Option<(Vec<String>, String)> {
        let launches = self.launches.get(&server)?;
        let text =
            |launch: &Launch| launch.configuration.as_ref().map(|(_, text)| text.clone()).unwrap_or_default();
        let (_, first) = launches.first()?;
        let configuration = if launches.len() == 1 {
            text(first)
        } else {
            let each =
                launches.iter().map(|(setup, launch)| format!("# {}\n{}", setup.title(), text(launch)));
            each.collect::<Vec<_>>().join("\n")
        };
        Some((first.command.clone(), configuration))
    }

    fn start(&mut self, setup: &Setup, wish: Wish<'_>) -> std::result::Result<RunningServer, NoServer> {
        let history = self.history.entry(setup.clone()).or_default();
        if history.failures >= MOST_ATTEMPTS {
            let reason = format!("it has failed to start {MOST_ATTEMPTS} times and was not tried again");
            return Err(NoServer::Broken(Broken { reason, log: Vec::new() }));
        }
        let started = self.try_start(setup, wish);
        let history = self.history.entry(setup.clone()).or_default();
        match started {
            Ok((launch, server)) => {
                history.failures = 0;
                let launches = self.launches.entry(wish.server).or_default();
                if !launches.iter().any(|(earlier, _)| earlier == setup) {
                    launches.push((setup.clone(), launch));
                }
                Ok(server)
            }
            Err(broken) => {
                history.failures += 1;
                Err(NoServer::Broken(broken))
            }
        }
    }

    fn try_start(
        &self,
        setup: &Setup,
        wish: Wish<'_>,
    ) -> std::result::Result<(Launch, RunningServer), Broken> {
        let unlogged = |reason: String| Broken { reason, log: Vec::new() };
        let candidate = &wish.contestant.candidate;
        let (network, _) =
            self.networks.of(&setup.network).ok_or_else(|| unlogged("its network is not up".to_owned()))?;
        let address = pick_address(candidate, network).map_err(unlogged)?;
        let folder = self.folder.join(format!("{}-{}", wish.server, setup.folder_name()));
        fs::create_dir_all(&folder)
            .map_err(|error| unlogged(format!("cannot create {}: {error}", folder.display())))?;
        let certificate = self
            .certificates
            .get(&setup.certificate)
            .ok_or_else(|| unlogged("there is no certificate of that kind".to_owned()))?;
        let workload = Workload { connections: self.most_connections, ..wish.workload.clone() };
        let place = Place {
            address,
            root: &wish.files.root,
            certificate,
            cores: &self.cores,
            folder: &folder,
            workload: &workload,
        };
        let mut launch = candidate.launch(&place).map_err(unlogged)?;
        launch.command = network.at_server(launch.command);
        let server = RunningServer::start(&launch, address, &self.cores, &folder)?;
        Ok((launch, server))
    }

    /// Compares what the server serves with the files, before it is measured for the first time.
    fn verify(&self, server: &mut RunningServer, wish: Wish<'_>) -> std::result::Result<(), NoServer> {
        let ca = self.ca(wish);
        let verifier = wish.clients.verifier();
        let order = self.order(wish, server, ca.as_deref(), Aim::Verify(&wish.files.root));
        let mut commands = verifier.commands(&order);
        self.put_at_client(&mut commands, wish);
        let beside = Beside { server, interrupted: wish.interrupted, limit: VERIFY_LIMIT };
        let broken = |server: &RunningServer, reason: String| {
            NoServer::Broken(server.broken(format!("it does not serve the files as they are: {reason}")))
        };
        match child::run(&commands, verifier.cores(), beside, &mut NoMeter) {
            Ok(reports) => match complaint(&reports) {
                None if reports.iter().all(|report| report.verified) => Ok(()),
                None => Err(broken(server, "they were not compared".to_owned())),
                Some(reason) => Err(broken(server, reason)),
            },
            Err(LoadFailure::Interrupted) => Err(NoServer::Interrupted),
            Err(LoadFailure::Failed(reason)) => Err(broken(server, reason)),
        }
    }
}

impl Setup {
    fn of(wish: Wish<'_>) -> Self {
        let Workload { certificate, record_bytes, group, .. } = wish.workload;
        Self {
            server: wish.server,
            certificate: *certificate,
            record_bytes: *record_bytes,
            group: group.clone(),
            network: wish.network(),
        }
    }

    fn folder_name(&self) -> String {
        let kind = match self.certificate {
            CertificateKind::Ecdsa => "ecdsa",
            CertificateKind::Rsa => "rsa",
        };
        let record = self.record_bytes.map(|bytes| format!("-{bytes}")).unwrap_or_default();
        let group: String =
            self.group.iter().flat_map(|group| group.chars()).filter(char::is_ascii_alphanumeric).collect();
        let network = self.network.title();
        let parts = [format!("{kind}{record}"), group, network];
        parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join("-")
    }

    /// For the reader of several configurations.
    fn title(&self) -> String {
        self.folder_name().replace('-', ", ")
    }
}
