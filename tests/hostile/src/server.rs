//! The server under test: one that is started here with what a program wishes, or one that runs already.
//!
//! A started server leads a process group of its own, which is killed when the [`Server`] is dropped or the program is
//! interrupted. It knows nothing of the system but its ports, its log and its processes.

use std::{
    fs::{self, File},
    io::PipeReader,
    net::{IpAddr, SocketAddr, TcpListener},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use linerate_end_to_end::{CertificatePair, ClientSetup};
use rustix::process::{Pid, Signal, kill_process};
use rustls_pki_types::pem::PemObject;

use crate::{
    arena::{Arena, PROBE},
    cleanup::{self, Guard, Leftover},
    linerate, nginx,
    visitor::{PATIENCE, Visitor},
};

/// What starts servers.
#[derive(Clone, Debug)]
pub enum Launcher {
    /// linerate, this binary.
    Linerate(PathBuf),
    /// nginx, this binary.
    Nginx(PathBuf),
    /// A server that runs already.
    Attached(Attached),
}

/// A server that runs already.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Where it speaks TLS.
    pub https: SocketAddr,
    /// The name of its certificate.
    pub name: String,
    /// Where it speaks in the clear.
    pub http: Option<SocketAddr>,
    /// Its process.
    pub pid: u32,
    /// A folder that it serves at `/`, which can be written to.
    pub content: PathBuf,
    /// The certificate authority, or the certificate itself, as PEM.
    pub authority: Option<PathBuf>,
}

impl Attached {
    pub(crate) fn tls(&self, made_here: &CertificatePair) -> Result<ClientSetup> {
        let mut pair = made_here.clone();
        if let Some(authority) = &self.authority {
            pair.der = rustls_pki_types::CertificateDer::from_pem_file(authority)
                .map_err(|error| anyhow::anyhow!("{}: {error}", authority.display()))?;
        }
        Ok(ClientSetup::new([&pair]).name(&self.name))
    }
}

/// Where a started server writes its access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Log {
    /// A file.
    #[default]
    File,
    /// Standard output, a pipe that nobody reads.
    UnreadPipe,
    /// `/dev/full`: every write fails as on a full disk.
    Full,
}

/// What a program wishes of the server that it starts. Where nothing is said, the server's own defaults count.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// What it serves, if not the arena's files.
    pub content: Option<PathBuf>,
    /// Its access log.
    pub log: Log,
    /// Time limits of the peer's side, all of them.
    pub time_limit: Option<Duration>,
    /// How long it waits for transfers under way when it is to end.
    pub drain: Option<Duration>,
    /// Handshakes at a time, where the server has such a limit.
    pub handshakes: Option<u32>,
    /// Descriptors of the process.
    pub open_files: Option<u64>,
    /// Bytes of address space.
    pub address_space_bytes: Option<u64>,
    /// A control group to put it into.
    pub control_group: Option<PathBuf>,
    /// Another address to listen at.
    pub further: Option<SocketAddr>,
}

/// The ports of a started server.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// TLS.
    pub https: SocketAddr,
    /// In the clear.
    pub http: SocketAddr,
    /// The admin page, where the server has one.
    pub admin: SocketAddr,
}

impl Ports {
    fn pick(address: IpAddr) -> Result<Self> {
        // All are held at once, or the same could come twice.
        let held = [0; 3].map(|_| TcpListener::bind((address, 0)));
        let mut ports = held.iter().map(|listener| match listener {
            Ok(listener) => listener.local_addr().context("a port that was bound"),
            Err(error) => bail!("no free port of {address}: {error}"),
        });
        let mut next = || ports.next().unwrap_or_else(|| bail!("three ports were bound"));
        Ok(Self { https: next()?, http: next()?, admin: next()? })
    }
}

/// What goes into a server's configuration.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) wishes: &'a Wishes,
    pub(crate) ports: Ports,
    pub(crate) folder: &'a Path,
    /// Where its access log is.
    pub(crate) log: String,
}

impl Setting<'_> {
    pub(crate) fn content(&self) -> &Path {
        self.wishes.content.as_deref().unwrap_or(&self.arena.content.folder)
    }
}

/// The server.
#[derive(Debug)]
pub struct Server {
    child: Option<Child>,
    guard: Option<Guard>,
    pid: u32,
    /// Where it listens.
    pub ports: Ports,
    has_admin: bool,
    tls: ClientSetup,
    prefix: String,
    /// Its configuration file, its log and what it wrote to standard error are here.
    pub folder: PathBuf,
    /// Held open and never read.
    _unread: Option<PipeReader>,
    ended: Option<ExitStatus>,
}

impl Launcher {
    /// Whether what is expected of linerate is expected of these.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        matches!(self, Self::Linerate(_))
    }

    /// What it is, with its version.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Linerate(binary) => linerate::version(binary),
            Self::Nginx(binary) => nginx::version(binary),
            Self::Attached(attached) => format!("the server at {}", attached.https),
        }
    }
}

impl Arena {
    /// Starts a server and waits until it serves. Of a server that runs already only what it is can be wished; `None`
    /// then.
    ///
    /// # Errors
    /// It does not start; with what it said.
    pub fn start(&self, wishes: &Wishes) -> Result<Server> {
        let mut server = self.spawn(wishes, self.ports()?)?;
        server.wait_until_it_serves()?;
        Ok(server)
    }

    /// Ports for a server that is to be started.
    ///
    /// # Errors
    /// None are free.
    pub fn ports(&self) -> Result<Ports> {
        match &self.launcher {
            Launcher::Attached(attached) => Ok(Ports {
                https: attached.https,
                http: attached.http.unwrap_or(attached.https),
                admin: attached.https,
            }),
            _ => Ports::pick(self.family.loopback()),
        }
    }

    /// Starts a server and does not wait.
    ///
    /// # Errors
    /// It cannot be run at all.
    pub fn spawn(&self, wishes: &Wishes, ports: Ports) -> Result<Server> {
        self.spawn_with(wishes, ports, |_| Ok(()))
    }

    /// The same, once `prepare` has changed what it likes in the folder with the configuration.
    pub(crate) fn spawn_with(
        &self,
        wishes: &Wishes,
        ports: Ports,
        prepare: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<Server> {
        let folder = tempfile::Builder::new().prefix("server-").tempdir_in(self.folder())?.keep();
        let server = |child: Option<Child>, pid, guard, has_admin, unread| Server {
            child,
            guard,
            pid,
            ports,
            has_admin,
            tls: self.tls.clone(),
            prefix: self.content.prefix.clone(),
            folder: folder.clone(),
            _unread: unread,
            ended: None,
        };
        let (binary, arguments) = match &self.launcher {
            Launcher::Attached(attached) => return Ok(server(None, attached.pid, None, false, None)),
            Launcher::Linerate(binary) => (binary, linerate::arguments(&folder)),
            Launcher::Nginx(binary) => (binary, nginx::arguments(&folder)),
        };
        self.configure(&folder, wishes, ports)?;
        prepare(&folder)?;
        let mut command = limited(wishes, binary);
        command.args(arguments).process_group(0).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", folder.join("state")).env_remove("STATE_DIRECTORY");
        command.stderr(File::create(folder.join("stderr"))?);
        let mut unread = None;
        if wishes.log == Log::UnreadPipe {
            let (reader, writer) = std::io::pipe()?;
            command.stdout(writer);
            unread = Some(reader);
        } else {
            command.stdout(Stdio::null());
        }
        let child = command.spawn().with_context(|| format!("cannot run {}", binary.display()))?;
        let pid = child.id();
        let guard = cleanup::enter(Leftover::ProcessGroup(pid));
        let is_linerate = matches!(self.launcher, Launcher::Linerate(_));
        Ok(server(Some(child), pid, Some(guard), is_linerate, unread))
    }

    /// Writes the configuration of the server in `folder`, for a start or a reload.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn configure(&self, folder: &Path, wishes: &Wishes, ports: Ports) -> Result<()> {
        let log = match wishes.log {
            Log::File => folder.join("access.log").display().to_string(),
            Log::UnreadPipe => "-".to_owned(),
            Log::Full => "/dev/full".to_owned(),
        };
        let setting = Setting { arena: self, wishes, ports, folder, log };
        let (name, text) = match &self.launcher {
            Launcher::Linerate(_) => (linerate::CONFIGURATION, linerate::configuration(&setting)),
            Launcher::Nginx(_) => (nginx::CONFIGURATION, nginx::configuration(&setting)),
            Launcher::Attached(_) => return Ok(()),
        };
        // Renamed over the old one: a reload must not meet half a file.
        let new = folder.join("new.conf");
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, folder.join(name)))
            .context("the server's configuration cannot be written")
    }

    /// Why a program that has to start the server itself cannot, if it cannot.
    #[must_use]
    pub fn why_not_started(&self) -> Option<&'static str> {
        matches!(self.launcher, Launcher::Attached(_))
            .then_some("the server has to be started with it, and this one runs already")
    }
}

/// The binary behind a shell that sets the limits, in the same process.
fn limited(wishes: &Wishes, binary: &Path) -> Command {
    let mut script = String::new();
    if let Some(files) = wishes.open_files {
        script += &format!("ulimit -n {files} && ");
    }
    if let Some(bytes) = wishes.address_space_bytes {
        script += &format!("ulimit -v {} && ", bytes / 1024);
    }
    if let Some(group) = &wishes.control_group {
        script += &format!("echo $$ >'{}/cgroup.procs' && ", group.display());
    }
    if script.is_empty() {
        return Command::new(binary);
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{script}exec \"$0\" \"$@\"")).arg(binary);
    command
}

impl Server {
    /// A well-behaved client over TLS.
    #[must_use]
    pub fn visitor(&self) -> Visitor {
        Visitor::new(self.ports.https, Some(self.tls.clone()), &self.prefix)
    }

    /// A well-behaved client in the clear.
    #[must_use]
    pub fn plain_visitor(&self) -> Visitor {
        Visitor::new(self.ports.http, None, &self.prefix)
    }

    /// Where the admin page is, if the server has one.
    #[must_use]
    pub fn admin(&self) -> Option<Visitor> {
        self.has_admin.then(|| Visitor::new(self.ports.admin, None, ""))
    }

    /// Waits until the probe's file comes.
    ///
    /// # Errors
    /// It ended, or serves nothing.
    pub fn wait_until_it_serves(&mut self) -> Result<Duration> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.poll_end() {
                bail!("the server ended ({status}): {}", self.said());
            }
            if self.visitor().fetch(PROBE.0).status == 200 {
                return Ok(began.elapsed());
            }
            if began.elapsed() > PATIENCE {
                bail!("the server serves nothing: {}", self.said());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The last of what it wrote to standard error.
    #[must_use]
    pub fn said(&self) -> String {
        let said = fs::read(self.folder.join("stderr")).unwrap_or_default();
        String::from_utf8_lossy(&said[said.len().saturating_sub(2000)..]).into_owned()
    }

    /// Its processes: the one that was started, and its children.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let mut all = vec![self.pid];
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid));
        all.extend(children.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        all
    }

    /// Signals the process that was started, as an operator does.
    pub fn signal(&self, signal: Signal) {
        send(self.pid, signal);
    }

    /// Signals all of its processes.
    pub fn signal_all(&self, signal: Signal) {
        self.processes().into_iter().for_each(|pid| send(pid, signal));
    }

    /// Open descriptors of all its processes.
    #[must_use]
    pub fn open_files(&self) -> usize {
        let of = |pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        self.processes().into_iter().map(of).sum()
    }

    /// Resident memory of all its processes, in KiB.
    #[must_use]
    pub fn resident_kib(&self) -> u64 {
        let of = |pid: u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        self.processes().into_iter().map(of).sum()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        match &self.child {
            Some(_) => self.poll_end().is_none(),
            None => Path::new(&format!("/proc/{}", self.pid)).exists(),
        }
    }

    /// How long it takes to end; nothing if it does not within `limit`.
    pub fn wait_for_end(&mut self, limit: Duration) -> Option<Duration> {
        let began = Instant::now();
        while self.is_running() {
            if began.elapsed() > limit {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
        Some(began.elapsed())
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The signal that ended it, if one did.
    #[must_use]
    pub fn ended_by(&self) -> Option<i32> {
        self.ended.and_then(|status| status.signal())
    }

    fn poll_end(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        }
        self.ended
    }
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended.
        let _ = kill_process(pid, signal);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.guard.take());
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }
}
