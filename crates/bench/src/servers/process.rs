//! A server that runs: started on its cores, watched, stopped when dropped, its log at hand.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::{Candidate, Launch};
use crate::cores::{put_on, spawn_on};
use crate::network::Network;

const START_LIMIT: Duration = Duration::from_secs(20);
const STOP_LIMIT: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(10);
/// How long what begins behind the listening socket may take to be there.
const SETTLING: Duration = Duration::from_millis(150);

/// How much of a log's end is kept.
const LOG_LINES: usize = 12;
const LOG_BYTES: u64 = 16 << 10;

/// A server that listens.
#[derive(Debug)]
pub struct RunningServer {
    /// Where it listens.
    pub address: SocketAddr,
    log: PathBuf,
    child: Child,
    /// Threads of the kernel that serve in its stead.
    kernel_threads: Vec<u32>,
}

/// Why a server is not running, and what it last wrote.
#[derive(Debug)]
pub struct Broken {
    /// What happened.
    pub reason: String,
    /// The end of its log.
    pub log: Vec<String>,
}

impl RunningServer {
    /// Starts what `launch` says on `cores`, and waits until `address` accepts connections. Its output goes to a file in
    /// `folder`.
    pub fn start(
        launch: &Launch,
        address: SocketAddr,
        cores: &[usize],
        folder: &Path,
    ) -> Result<Self, Broken> {
        let unlogged = |reason: String| Broken { reason, log: Vec::new() };
        let log = folder.join("log");
        let output = File::create(&log)
            .map_err(|error| unlogged(format!("cannot write {}: {error}", log.display())))?;
        if let Some((path, text)) = &launch.configuration {
            fs::write(path, text)
                .map_err(|error| unlogged(format!("cannot write {}: {error}", path.display())))?;
        }
        let (program, arguments) =
            launch.command.split_first().ok_or_else(|| unlogged("no command".to_owned()))?;
        let errors = output.try_clone().map_err(|error| unlogged(error.to_string()))?;
        let mut command = Command::new(program);
        // A process group of its own: an interrupt typed at the terminal is for us, and stopping it stops all it started.
        command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
        let others = launch.kernel_threads.map(kernel_threads).unwrap_or_default();
        let child = spawn_on(cores, &mut command)
            .map_err(|error| unlogged(format!("cannot run {program}: {error}")))?;
        let mut server = Self { address, log, child, kernel_threads: Vec::new() };
        server.wait_until_listening()?;
        if let Some(name) = launch.kernel_threads {
            server.wait_for_kernel_threads(name, &others, cores)?;
        }
        Ok(server)
    }

    /// The kernel's threads begin behind the listening socket, one after the other.
    fn wait_for_kernel_threads(&mut self, name: &str, others: &[u32], cores: &[usize]) -> Result<(), Broken> {
        let started = Instant::now();
        loop {
            let mut found = kernel_threads(name);
            found.retain(|thread| !others.contains(thread));
            let are_all_there = !found.is_empty() && found == self.kernel_threads;
            self.kernel_threads = found;
            if are_all_there {
                break;
            }
            if started.elapsed() > START_LIMIT {
                return Err(self.broken(format!("the kernel has begun no {name} for it")));
            }
            std::thread::sleep(SETTLING);
        }
        for thread in &self.kernel_threads {
            put_on(cores, *thread)
                .map_err(|error| self.broken(format!("its threads cannot be put on cores: {error}")))?;
        }
        Ok(())
    }

    fn wait_until_listening(&mut self) -> Result<(), Broken> {
        let started = Instant::now();
        loop {
            if let Some(reason) = self.death() {
                return Err(self.broken(format!("it did not start: {reason}")));
            }
            if self.is_listening() {
                // Some servers listen before the processes are there that will serve.
                std::thread::sleep(SETTLING);
                return Ok(());
            }
            if started.elapsed() > START_LIMIT {
                let limit_s = START_LIMIT.as_secs();
                return Err(self.broken(format!("it does not listen on {} after {limit_s} s", self.address)));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether somebody listens on its port in its network namespace, which need not be ours.
    fn is_listening(&self) -> bool {
        let shown = |table: &str| {
            fs::read_to_string(format!("/proc/{}/net/{table}", self.child.id())).unwrap_or_default()
        };
        ["tcp", "tcp6"].iter().any(|table| listens_on(&shown(table), self.address.port()))
    }

    /// Its first process; the others are below it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that serves: its first process, and the kernel's threads.
    pub fn pids(&self) -> Vec<u32> {
        [self.pid()].into_iter().chain(self.kernel_threads.iter().copied()).collect()
    }

    /// How it ended, if it has.
    pub(crate) fn death(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(format!("the server ended with {status}")),
            Err(error) => Some(format!("the server cannot be watched: {error}")),
        }
    }

    /// A reason, with the end of the log.
    pub fn broken(&self, reason: String) -> Broken {
        Broken { reason, log: self.log_end() }
    }

    /// The last lines that it wrote.
    pub fn log_end(&self) -> Vec<String> {
        last_lines(&self.log).unwrap_or_default()
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let signal = |signal| {
            if let Some(group) = group {
                // Fails where all of it has ended, which is what is wanted.
                let _ = rustix::process::kill_process_group(group, signal);
            }
        };
        signal(Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < STOP_LIMIT && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(PAUSE);
        }
        // What is left of the group, whether its first process has ended or not.
        signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The kernel's threads of this name.
fn kernel_threads(name: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_called = |pid: &u32| {
        // One that has just ended is none.
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
        read("comm").is_ok_and(|comm| comm.trim() == name)
            && read("cmdline").is_ok_and(|line| line.is_empty())
    };
    pids.filter(is_called).collect()
}

/// Whether /proc/PID/net/tcp shows a listening socket on `port` (state 0A is TCP_LISTEN).
fn listens_on(tcp: &str, port: u16) -> bool {
    let suffix = format!(":{port:04X}");
    tcp.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace();
        let local = fields.nth(1);
        local.is_some_and(|local| local.ends_with(&suffix)) && fields.nth(1) == Some("0A")
    })
}

/// A free port at the server's end of `network`, or the one that the server insists on.
///
/// # Errors
/// Where that port is taken.
pub fn pick_address(candidate: &Candidate, network: &Network) -> Result<SocketAddr, String> {
    let address = network.server_address();
    // In a namespace of ours every port is free. One that is free on this machine, too, cannot be mistaken for another's.
    let (ip, port) = match (network.shares_ports(), candidate.fixed_port()) {
        (true, port) => (address, port.unwrap_or(0)),
        (false, None) => (IpAddr::from(Ipv4Addr::LOCALHOST), 0),
        (false, Some(port)) => return Ok(SocketAddr::new(address, port)),
    };
    let listener = TcpListener::bind((ip, port)).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!("port {port} of {ip} is taken; end what listens there (`ss -ltnp`), or give the server another port")
        }
        _ => format!("cannot listen on {ip}:{port}: {error}"),
    })?;
    let bound = listener.local_addr().map_err(|error| error.to_string())?;
    Ok(SocketAddr::new(address, bound.port()))
}

fn last_lines(path: &Path) -> std::io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(LOG_LINES);
    Ok(lines[first..].iter().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Programs;

    fn launch(script: &str) -> Launch {
        Launch {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            configuration: None,
            kernel_threads: None,
        }
    }

    #[test]
    fn a_server_that_does_not_start_leaves_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let script = "for i in $(seq 20); do echo line $i; done; echo no such port >&2; exit 3";
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let broken = RunningServer::start(&launch(script), address, &[], folder.path()).unwrap_err();
        assert_eq!(broken.reason, "it did not start: the server ended with exit status: 3");
        assert_eq!(broken.log.len(), LOG_LINES);
        assert_eq!(broken.log.last().unwrap(), "no such port");
    }

    #[test]
    fn dropping_it_ends_everything_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let script = "trap '' TERM; sleep 600 & echo $! > child; wait";
        let script = format!("cd {} && {script}", folder.path().display());
        let server =
            RunningServer::start(&launch(&script), listener.local_addr().unwrap(), &[], folder.path())
                .unwrap();
        let child = fs::read_to_string(folder.path().join("child")).unwrap();
        drop(server);
        // The kernel needs a moment to end a process, and so does the process that adopts it.
        let has_ended = || {
            let state = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        let give_up = Instant::now() + Duration::from_secs(10);
        while !has_ended() {
            assert!(Instant::now() < give_up, "{child} still runs");
            std::thread::sleep(PAUSE);
        }
    }

    #[test]
    fn only_a_listening_socket_counts() {
        let tcp = "  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A 0:0\n   \
                   1: 0100007F:20FB 0100007F:D431 01 0:0\n";
        assert!(listens_on(tcp, 8080));
        assert!(!listens_on(tcp, 8443));
        assert!(!listens_on(tcp, 54321));
    }

    #[test]
    fn a_taken_port_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let own = crate::definition::OwnServer {
            name: "mine".to_owned(),
            command: vec!["sh".to_owned()],
            port: Some(port),
            ..Default::default()
        };
        let programs = Programs { linerate: "linerate".into(), debian13: "debian-13".into() };
        let candidate = Candidate::new("mine", &[own], &programs).unwrap();
        let error = pick_address(&candidate, &Network::host([127, 0, 0, 1].into(), None)).unwrap_err();
        assert!(
            error.starts_with(&format!("port {port} of 127.0.0.1 is taken; end what listens there")),
            "{error}"
        );
    }
}
