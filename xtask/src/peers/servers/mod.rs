//! The servers under test: started pinned to one core, listening for TLS and for plain HTTP, stopped when dropped.

pub(crate) mod debian13;
pub(crate) mod linerate;
pub(crate) mod nginx;

use std::fs::{self, File};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};

use super::accounting;
use super::affinity;
use super::certificate::Certificate;
use super::network::{Link, Network};
use super::options::Cipher;
use super::procfs;

const START_LIMIT: Duration = Duration::from_secs(15);
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// What every server is told alike.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    /// The network they listen on.
    pub(crate) link: &'a Link,
    /// The document root.
    pub(crate) root: &'a Path,
    /// The certificate.
    pub(crate) certificate: &'a Certificate,
    /// The one TLS 1.3 suite.
    pub(crate) cipher: Cipher,
    /// The servers' core.
    pub(crate) cpu: usize,
    /// Where configurations and logs go.
    pub(crate) run_folder: &'a Path,
}

/// The two addresses of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endpoints {
    /// TLS.
    pub(crate) tls: SocketAddr,
    /// Plain HTTP.
    pub(crate) plain: SocketAddr,
}

impl Endpoints {
    /// Picks two ports that are free now; in a namespace of our own all of them are.
    pub(crate) fn pick(link: &Link) -> Result<Self> {
        let address = link.server_address();
        let bound = match link.network() {
            Network::Loopback | Network::Adapter => address,
            Network::Veth => IpAddr::from([127, 0, 0, 1]),
        };
        let listeners = [TcpListener::bind((bound, 0))?, TcpListener::bind((bound, 0))?];
        let [tls, plain] = listeners.map(|listener| listener.local_addr());
        Ok(Self { tls: (address, tls?.port()).into(), plain: (address, plain?.port()).into() })
    }
}

/// A server that listens.
#[derive(Debug)]
pub(crate) struct RunningServer {
    /// Its name in the report.
    pub(crate) name: String,
    /// What it says of itself.
    pub(crate) version: String,
    /// Where it listens.
    pub(crate) endpoints: Endpoints,
    /// All of its processes.
    pub(crate) pids: Vec<u32>,
    child: Child,
}

impl RunningServer {
    /// Starts `command` on the servers' core and waits until both its addresses accept connections.
    pub(crate) fn start(
        name: &str,
        version: String,
        command: Command,
        endpoints: Endpoints,
        setting: &Setting<'_>,
    ) -> Result<Self> {
        let log = setting.run_folder.join(format!("{name}.log"));
        let child = spawn(command, &log, setting.cpu).with_context(|| format!("cannot start {name}"))?;
        let mut server = Self { name: name.to_string(), version, endpoints, pids: Vec::new(), child };
        server.wait_until_listening(&log)?;
        server.pids = accounting::process_tree(server.child.id())?;
        Ok(server)
    }

    fn wait_until_listening(&mut self, log: &Path) -> Result<()> {
        let started = Instant::now();
        let table = format!("/proc/{}/net/tcp", self.child.id());
        loop {
            let sockets = fs::read_to_string(&table).unwrap_or_default();
            let ports = [self.endpoints.tls.port(), self.endpoints.plain.port()];
            if ports.iter().all(|&port| procfs::listens_on(&sockets, port)) {
                // nginx opens its sockets before it forks its worker.
                std::thread::sleep(Duration::from_millis(200));
                return Ok(());
            }
            let ended = self.child.try_wait()?;
            if ended.is_some() || started.elapsed() > START_LIMIT {
                let said = fs::read_to_string(log).unwrap_or_default();
                bail!("{} does not listen on ports {ports:?}; {} says:\n{said}", self.name, log.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // Fails when it has ended already, and then `try_wait` says so.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
        let asked = Instant::now();
        while asked.elapsed() < STOP_LIMIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(mut command: Command, log: &Path, cpu: usize) -> Result<Child> {
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    affinity::on_core(cpu, || command.spawn())?.with_context(|| format!("cannot run {command:?}"))
}

/// Finds a program on PATH or where administrators' programs are kept, which is not on everybody's PATH.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let kept = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(kept).map(|folder| folder.join(name)).find(|file| file.is_file())
}
