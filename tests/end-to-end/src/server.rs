//! The server under test, as a process of its own.

use crate::{CertificatePair, PATIENCE_SECONDS, Site, linerate_binary, wait_until};
use rustix::process::{Pid, kill_process};
use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Permissions},
    net::SocketAddr,
    os::unix::{fs::PermissionsExt, net::UnixDatagram, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

pub use rustix::process::Signal;

/// How a server is started.
#[derive(Debug)]
pub struct ServerSetup {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: TempDir,
    is_tls: bool,
    user: Option<u32>,
    open_files: Option<u64>,
}

impl ServerSetup {
    /// Flags for `linerate serve`, none yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a new one makes a folder")]
    pub fn new() -> Self {
        Self {
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: tempfile::tempdir().expect("a temporary folder"),
            is_tls: true,
            user: None,
            open_files: None,
        }
    }

    /// One worker that serves `site` with `certificate` on a free port of 127.0.0.1.
    #[must_use]
    pub fn tls(site: &Site, certificate: &CertificatePair) -> Self {
        Self::new()
            .flag(site.path())
            .flags(["--listen", "127.0.0.1:0", "--workers", "1"])
            .certificate(certificate)
    }

    /// One worker that serves `site` in the clear on a free port of 127.0.0.1.
    #[must_use]
    pub fn plaintext(site: &Site) -> Self {
        let mut setup =
            Self::new().flag(site.path()).flags(["--listen", "http://127.0.0.1:0", "--workers", "1"]);
        setup.is_tls = false;
        setup
    }

    /// What `toml` says, written to a file of its own.
    #[must_use]
    pub fn toml(toml: &str) -> Self {
        let setup = Self::new();
        let file = setup.folder.path().join("linerate.toml");
        fs::write(&file, toml).expect("the configuration file");
        setup.flag("--config").flag(file)
    }

    /// Adds one argument.
    #[must_use]
    pub fn flag(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn flags<Argument: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = Argument>) -> Self {
        arguments.into_iter().fold(self, Self::flag)
    }

    /// Adds a certificate.
    #[must_use]
    pub fn certificate(self, pair: &CertificatePair) -> Self {
        self.flag("--cert").flag(&pair.certificate).flag("--key").flag(&pair.key)
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Runs it as another user, for which this process has to be root's. What it is to read must be readable to all.
    #[must_use]
    pub fn user(mut self, user: u32) -> Self {
        self.user = Some(user);
        self
    }

    /// Lets it open so many files, for good.
    #[must_use]
    pub fn open_files(mut self, limit: u64) -> Self {
        self.open_files = Some(limit);
        self
    }

    /// Opens the admin listener on a free port; see [`Server::metric`].
    #[must_use]
    pub fn admin(self) -> Self {
        self.flags(["--admin", "127.0.0.1:0"])
    }

    /// Starts it and waits until it serves.
    ///
    /// # Panics
    /// If it ends instead, or is not ready in time; with what it wrote to standard error.
    #[track_caller]
    #[must_use]
    pub fn start(self) -> Server {
        match self.try_start() {
            Ok(server) => server,
            Err((status, stderr)) => panic!("the server did not start ({status}):\n{stderr}"),
        }
    }

    /// Starts it; if it ends before it serves, its exit status and standard error are returned.
    ///
    /// # Errors
    /// How it ended, and what it wrote to standard error.
    ///
    /// # Panics
    /// If it neither serves nor ends.
    #[track_caller]
    pub fn try_start(self) -> Result<Server, (ExitStatus, String)> {
        let manager = self.folder.path().join("notify");
        let notices = UnixDatagram::bind(&manager).expect("a socket for notices");
        notices.set_read_timeout(Some(Duration::from_millis(20))).expect("a time limit");
        let stderr = self.folder.path().join("stderr");
        let stdout = self.folder.path().join("stdout");
        let mut command = match self.user {
            None => limited(self.open_files),
            Some(user) => as_user(user, self.folder.path(), &manager),
        };
        let child = command
            .arg("serve")
            .args(&self.arguments)
            .env("NOTIFY_SOCKET", &manager)
            // It keeps its own state; the calibration of the user who runs the tests is not in it.
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env_remove("STATE_DIRECTORY")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).expect("a file for standard output"))
            .stderr(File::create(&stderr).expect("a file for standard error"))
            .spawn()
            .expect("the server's binary can be run");
        let mut server = Server {
            child,
            notices,
            said: Mutex::default(),
            stderr,
            stdout,
            is_tls: self.is_tls,
            ended: None,
            folder: self.folder,
        };
        let give_up = Instant::now() + Duration::from_secs(PATIENCE_SECONDS);
        while !server.was_told("READY=1") {
            if let Some(status) = server.poll_end() {
                return Err((status, server.stderr()));
            }
            assert!(Instant::now() < give_up, "the server is not ready:\n{}", server.stderr());
        }
        Ok(server)
    }
}

/// The binary, which may open so many files.
fn limited(open_files: Option<u64>) -> Command {
    let Some(limit) = open_files else { return Command::new(linerate_binary()) };
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={limit}:{limit}")).arg(linerate_binary());
    command
}

/// The binary, run by `user`: a copy in `folder`, because that user may not even come near the original.
fn as_user(user: u32, folder: &Path, manager: &Path) -> Command {
    let binary = folder.join("linerate");
    fs::copy(linerate_binary(), &binary).expect("room for the binary");
    for (path, mode) in [(folder, 0o755), (&binary, 0o755), (manager, 0o777)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("its owner may");
    }
    let mut command = Command::new(binary);
    command.uid(user).gid(user);
    command
}

/// A running server. Ended when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    notices: UnixDatagram,
    /// What it told its service manager, and was not asked for yet.
    said: Mutex<String>,
    stderr: PathBuf,
    stdout: PathBuf,
    is_tls: bool,
    ended: Option<ExitStatus>,
    folder: TempDir,
}

impl Server {
    /// Where the first listener of the kind that the set-up was made for is: TLS if not said otherwise.
    #[track_caller]
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener(if self.is_tls { "https" } else { "http" }, 0)
    }

    /// Where the `index`th listener of a scheme is, by the lines that the server prints when it starts.
    #[track_caller]
    #[must_use]
    pub fn listener(&self, scheme: &str, index: usize) -> SocketAddr {
        let stderr = self.stderr();
        let prefix = format!("linerate: {scheme}://");
        let mut addresses = stderr.lines().filter(|line| !line.contains("/  admin: ")).filter_map(|line| {
            let rest = line.strip_prefix(&prefix)?;
            rest.split('/').next()?.parse().ok()
        });
        addresses.nth(index).unwrap_or_else(|| panic!("no {scheme} listener {index} in:\n{stderr}"))
    }

    /// `https://localhost:PORT/NAME`, or `http://` for a server in the clear.
    #[track_caller]
    #[must_use]
    pub fn url(&self, name: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        // 127.0.0.1 and not localhost, which curl would try as ::1 first.
        format!("{scheme}://127.0.0.1:{}/{name}", self.address().port())
    }

    /// All it has written to standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stderr).unwrap_or_default()).into_owned()
    }

    /// All it has written to standard output so far (`--access-log -`).
    #[must_use]
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stdout).unwrap_or_default()).into_owned()
    }

    /// A folder of its own, removed with it. `linerate.toml` is there, if that is what it was started from.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its process identifier.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        // A server whose notices nobody takes would wait, in the end.
        while self.take_notice() {}
        kill_process(Pid::from_child(&self.child), signal).expect("the server runs");
    }

    /// HUP, and waits until the reload is over (be it with success or not).
    #[track_caller]
    pub fn reload(&self) {
        while self.was_told("READY=1") {}
        self.signal(Signal::HUP);
        wait_until("the reload's end", || self.was_told("READY=1"));
    }

    /// Waits until it has written `text` to standard error.
    #[track_caller]
    pub fn wait_for_stderr(&self, text: &str) {
        wait_until(&format!("{text:?} on standard error"), || self.stderr().contains(text));
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not come.
    #[track_caller]
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let give_up = Instant::now() + Duration::from_secs(PATIENCE_SECONDS);
        loop {
            if let Some(status) = self.poll_end() {
                return status;
            }
            assert!(Instant::now() < give_up, "the server does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// TERM, and waits for its end.
    #[track_caller]
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait_for_end()
    }

    /// The text of `/metrics`; the set-up must have asked for [`ServerSetup::admin`].
    #[track_caller]
    #[must_use]
    pub fn metrics(&self) -> String {
        let admin = self.admin();
        let page = crate::curl(["--fail", "--max-time", "10", &format!("http://{admin}/metrics")]).run();
        String::from_utf8(page.success()).expect("metrics are text")
    }

    /// The sum of the samples of a metric whose labels contain `labels` (any of them, if empty); 0 without samples.
    #[track_caller]
    #[must_use]
    pub fn metric(&self, name: &str, labels: &str) -> f64 {
        let page = self.metrics();
        let samples = page.lines().filter_map(|line| {
            let (sample, value) = line.rsplit_once(' ')?;
            let (sample_name, sample_labels) = sample.split_once('{').unwrap_or((sample, ""));
            (sample_name == name && sample_labels.contains(labels)).then(|| value.parse::<f64>().ok())?
        });
        samples.sum()
    }

    /// Where the admin listener is.
    #[track_caller]
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        let stderr = self.stderr();
        let line =
            stderr.lines().find_map(|line| line.strip_prefix("linerate: http://")?.split_once("/  admin: "));
        let (address, _) = line.expect("ServerSetup::admin was called, and the server says where that is");
        address.parse().expect("an address and a port")
    }

    /// Whether it told its service manager `notice` since it was last found. Waits a moment for a notice.
    fn was_told(&self, notice: &str) -> bool {
        self.take_notice();
        let mut said = self.said.lock().expect("no test panics while it holds this");
        let Some(at) = said.find(notice) else { return false };
        said.drain(..at + notice.len());
        true
    }

    /// Takes the next notice, if one comes within a moment.
    fn take_notice(&self) -> bool {
        let mut buffer = [0; 4096];
        let Ok(bytes) = self.notices.recv(&mut buffer) else { return false };
        let mut said = self.said.lock().expect("no test panics while it holds this");
        said.push_str(&String::from_utf8_lossy(&buffer[..bytes]));
        said.push('\n');
        true
    }

    fn poll_end(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("a child can be waited for");
        }
        self.ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.poll_end().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if thread::panicking() {
            eprintln!("--- the server's standard error:\n{}---", self.stderr());
        }
    }
}
