//! `cargo xtask peers`: linerate beside nginx, on the reader's own machine.
//!
//! Each server runs on one core and the client on another; only one server is loaded at a time, and all of them
//! take their turns within a round. The result is server CPU time per gigabyte and per request, as the median over
//! the rounds of each round's ratio. `accounting` says what is counted, `statistics` when it is enough.

mod accounting;
mod affinity;
pub(crate) mod certificate;
pub(crate) mod clients;
mod environment;
mod files;
mod idle_memory;
mod lineup;
pub(crate) mod network;
pub(crate) mod options;
mod procfs;
mod report;
mod rounds;
pub(crate) mod servers;
mod slices;
pub(crate) mod statistics;
mod works;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use rustix::fs::FlockOperation;
use rustix::process::{Resource, Rlimit};

pub(crate) use options::Options;

use accounting::Cores;
use certificate::Certificate;
use clients::wrk::Wrk;
use environment::Environment;
use idle_memory::IdleMemory;
use lineup::Lineup;
use network::{Link, Network};
use options::{Cipher, NetworkChoice};
use report::{Pass, Report};
use rounds::Limits;
use servers::Setting;
use servers::debian13::Debian13;
use slices::Bench;
use works::{Load, Role, SPARE_DESCRIPTORS, Unit, Work};

/// What we wish for: ten thousand connections in one process, and room.
const FILE_LIMIT: u64 = 65_536;

/// The client process.
pub(crate) fn run_client() -> Result<()> {
    clients::serve_order()
}

/// Everything that all passes share.
#[derive(Debug)]
struct Session<'a> {
    options: &'a Options,
    cores: Cores,
    cache: &'a Path,
    root: PathBuf,
    certificate: Certificate,
    lineup: Lineup,
    works: Vec<Work>,
    interrupted: Arc<AtomicBool>,
}

/// Sets everything up and, unless only that was asked for, measures.
pub(crate) fn run(options: &Options) -> Result<()> {
    raise_file_limit();
    let works = selected_works(options)?;
    let workspace = workspace();
    let cache = options.cache.clone().unwrap_or_else(|| workspace.join("target/peers"));
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let cache = cache.canonicalize().context("the cache folder cannot be resolved")?;
    let _alone = lock(&cache)?;
    let root = files::prepare(&cache)?;
    let certificate = certificate::prepare(&cache, options.certificate)?;
    let tree = options.debian13.clone().unwrap_or_else(|| cache.join("debian-13"));
    if options.setup {
        Debian13::make(&tree, options.mirror.as_deref())?;
        println!("everything is there: {}", cache.display());
        return Ok(());
    }
    let cores = checked_cores(options)?;
    let lineup = Lineup::find(options, &workspace, &tree)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, interrupted.clone()).context("cannot handle signals")?;
    }
    affinity::pin(cores.client)?;
    files::warm(&root)?;
    let session = Session { options, cores, cache: &cache, root, certificate, lineup, works, interrupted };
    session.run(&workspace)
}

impl Session<'_> {
    fn run(&self, workspace: &Path) -> Result<()> {
        let mut environment = Environment::capture(workspace, self.cores)?;
        environment.facts.extend(self.lineup.versions()?);
        environment.print();
        let mut report = Report {
            options: self.options.clone(),
            environment,
            skipped: self.lineup.skipped.clone(),
            passes: Vec::new(),
        };
        let networks: &[Network] = match self.options.network {
            NetworkChoice::Loopback => &[Network::Loopback],
            NetworkChoice::Veth => &[Network::Veth],
            NetworkChoice::Both => &[Network::Loopback, Network::Veth],
        };
        for &network in networks {
            for &cipher in self.options.cipher.ciphers() {
                self.run_pass(network, cipher, &mut report)?;
            }
        }
        report.print_table();
        Ok(())
    }

    fn run_pass(&self, network: Network, cipher: Cipher, report: &mut Report) -> Result<()> {
        let link = Link::up(network)?;
        let run_folder = self.cache.join("run");
        fs::create_dir_all(&run_folder).with_context(|| format!("cannot create {}", run_folder.display()))?;
        let wrk = Wrk::find(&run_folder, cipher);
        let setting = Setting {
            link: &link,
            root: &self.root,
            certificate: &self.certificate,
            cipher,
            cpu: self.cores.server,
            run_folder: &run_folder,
        };
        let bench = Bench {
            link: &link,
            cores: self.cores,
            root: &self.root,
            certificate: &self.certificate,
            cipher,
            wrk: wrk.as_ref().ok(),
            slice_s: self.options.slice_s(),
            client_wait: self.options.client_wait,
            bulk_bytes: self.options.bulk_bytes(),
        };
        println!("\n== TLS 1.3, {}, over {} ==", cipher.suite_name(), network.title());
        self.lineup.verify(&bench, &setting)?;
        report.passes.push(Pass {
            network,
            cipher,
            works: Vec::new(),
            idle: Vec::new(),
            idle_target_bytes: None,
        });
        for work in &self.works {
            let needs_wrk = work.entries.iter().any(|entry| matches!(entry.load, Load::KeepAlive { .. }));
            if let (true, Err(reason)) = (needs_wrk, &wrk) {
                report.skipped.push(format!("{}: {reason:#}", work.name));
            } else if let Err(reason) = enough_files(work) {
                report.skipped.push(format!("{}: {reason:#}", work.name));
            } else if let Some(pass) = report.passes.last_mut() {
                self.run_work(work, &bench, &setting, pass)?;
            }
            if let Some(path) = &self.options.json {
                report.write(path)?;
            }
        }
        Ok(())
    }

    /// Every work meets servers that were started just before.
    fn run_work(&self, work: &Work, bench: &Bench<'_>, setting: &Setting<'_>, pass: &mut Pass) -> Result<()> {
        let Some(mut work) = work.restricted_to(|role| self.lineup.has(role)) else { return Ok(()) };
        if !self.lineup.host_is_debian_12() {
            work = work.without_targets_against(Role::NginxHost);
        }
        let servers = self.lineup.start(setting)?;
        let (targets, labels) = self.lineup.targets(&work, &servers);
        if work.unit == Unit::Connection {
            println!("\n{} ({})", work.title, work.name);
            for &target in &targets {
                let idle = IdleMemory::measure(bench, target, work.connections())?;
                report::print_idle(&idle);
                pass.idle.push(idle);
            }
            pass.idle_target_bytes = work.target_bytes;
            return Ok(());
        }
        let (fewest, most) = self.options.round_limits();
        eprintln!("\n{}: measuring {}", work.name, labels.join(", "));
        let limits = Limits { fewest, most };
        let measured = rounds::measure(bench, &work, &targets, labels, limits, &self.interrupted)?;
        report::print_work(&measured);
        pass.works.push(measured);
        Ok(())
    }
}

/// The works that `--only` leaves; an unknown name is answered with the names there are.
fn selected_works(options: &Options) -> Result<Vec<Work>> {
    let works = works::all(options.many_connections(), file_limit() as usize);
    for wanted in &options.only {
        if !works.iter().any(|work| work.name.starts_with(wanted.as_str())) {
            let names: Vec<&str> = works.iter().map(|work| work.name).collect();
            bail!("--only {wanted}: the works are {}", names.join(", "));
        }
    }
    let wanted = |work: &Work| {
        options.only.is_empty() || options.only.iter().any(|name| work.name.starts_with(name.as_str()))
    };
    Ok(works.into_iter().filter(wanted).collect())
}

pub(crate) fn workspace() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// One run at a time: two would measure each other.
fn lock(cache: &Path) -> Result<fs::File> {
    let path = cache.join("lock");
    let file = fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
        .context("another `cargo xtask peers` is at work with the same cache folder")?;
    Ok(file)
}

fn checked_cores(options: &Options) -> Result<Cores> {
    if options.server_cpu == options.client_cpu {
        bail!("server and client need a core each: see --server-cpu and --client-cpu");
    }
    let cores = Cores { server: options.server_cpu, client: options.client_cpu };
    for core in [cores.server, cores.client] {
        affinity::on_core(core, || ())?;
    }
    Ok(cores)
}

/// As many descriptors as we need, or as we may have; servers and clients inherit it.
fn raise_file_limit() {
    let now = rustix::process::getrlimit(Resource::Nofile);
    let hard = now.maximum.unwrap_or(u64::MAX);
    let wish = Rlimit { current: Some(hard.max(FILE_LIMIT)), maximum: Some(hard.max(FILE_LIMIT)) };
    if rustix::process::setrlimit(Resource::Nofile, wish).is_err() {
        // Only root may raise the hard limit; what it comes to is checked by `enough_files`.
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(hard), ..now });
    }
}

fn file_limit() -> u64 {
    rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn enough_files(work: &Work) -> Result<()> {
    let needed = (work.connections() + SPARE_DESCRIPTORS) as u64;
    let limit = file_limit();
    if limit < needed {
        bail!("the limit of open files is {limit}, {needed} are needed (raise it with `ulimit -Hn`)");
    }
    Ok(())
}
