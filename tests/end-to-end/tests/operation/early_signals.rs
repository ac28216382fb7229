//! Signals that come while the server starts: none of them kills it, and those that end it do so at once.

use crate::service_manager::Running;
use crate::support::Connection;
use linerate_end_to_end::{Signal, Site, linerate_binary, wait_until};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ChildStderr, Command, ExitStatus, Stdio},
};
use tempfile::TempDir;

/// A server in the clear, with its site and its configuration's place.
struct Starting {
    site: Site,
    folder: TempDir,
}

impl Starting {
    fn new() -> Self {
        let site = Site::empty();
        site.add_pattern("file", 10_007);
        Self { site, folder: tempfile::tempdir().unwrap() }
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("linerate.toml")
    }

    fn toml(&self, generation: usize) -> String {
        format!(
            "listen = [\"http://127.0.0.1:0\"]\nworkers = 1\n[[site]]\nroot = {:?}\n\
             headers = [{{ path = \"/**\", set = {{ X-Generation = \"{generation}\" }} }}]\n",
            self.site.path()
        )
    }

    /// The process, as soon as it has been made.
    fn spawn(&self) -> Running {
        let child = Command::new(linerate_binary())
            .args(["serve".as_ref(), "--config".as_ref(), self.config().as_os_str()])
            .env("XDG_STATE_HOME", self.folder.path())
            .env_remove("NOTIFY_SOCKET")
            .stderr(Stdio::piped())
            .spawn();
        Running(child.unwrap())
    }

    /// A start that waits for its configuration, which is a FIFO that nobody has written to.
    fn spawn_waiting(&self) -> Running {
        mkfifoat(CWD, self.config(), Mode::RUSR | Mode::WUSR).unwrap();
        let server = self.spawn();
        wait_until("signals are taken", || catches(&server, &[Signal::HUP, Signal::USR1, Signal::TERM]));
        server
    }

    fn is_served(&self, address: SocketAddr) -> String {
        let response = Connection::plain(address).get("/file", "");
        response.assert_is(200, &self.site.bytes("file"));
        response.expect("X-Generation").to_owned()
    }
}

/// Whether the process has handlers for all of these: `SigCgt` in proc(5).
fn catches(server: &Running, signals: &[Signal]) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", server.0.id())).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    signals.iter().all(|signal| mask & (1 << (signal.as_raw() - 1)) != 0)
}

/// Standard error, line by line, up to the listener's.
pub(crate) fn listener(stderr: &mut BufReader<ChildStderr>) -> SocketAddr {
    let mut said = String::new();
    loop {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended:\n{said}");
        if let Some(url) = line.strip_prefix("linerate: http://") {
            return url.split('/').next().unwrap().parse().unwrap();
        }
        said += &line;
    }
}

fn end_of(server: &mut Running) -> ExitStatus {
    let mut ended = None;
    wait_until("the server's end", || {
        ended = server.0.try_wait().unwrap();
        ended.is_some()
    });
    ended.unwrap()
}

/// Gives a start what it waits for; a later reader of the configuration finds `later`.
fn feed(fifo: &Path, now: &str, later: &str) {
    // Opening waits for the reader: it has the FIFO, whatever stands in its place from here on.
    let mut reader_has_it = File::options().write(true).open(fifo).unwrap();
    let replacement = fifo.with_extension("new");
    fs::write(&replacement, later).unwrap();
    fs::rename(&replacement, fifo).unwrap();
    reader_has_it.write_all(now.as_bytes()).unwrap();
}

#[test]
fn a_reload_that_is_asked_for_during_the_start_follows_it() {
    let starting = Starting::new();
    let mut server = starting.spawn_waiting();
    for signal in [Signal::HUP, Signal::USR1, Signal::HUP] {
        server.signal(signal);
    }
    feed(&starting.config(), &starting.toml(0), &starting.toml(1));
    let mut stderr = BufReader::new(server.0.stderr.take().unwrap());
    let address = listener(&mut stderr);
    wait_until("the reload", || starting.is_served(address) == "1");
    server.signal(Signal::TERM);
    assert!(end_of(&mut server).success());
}

#[test]
fn a_start_is_ended_at_once() {
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let starting = Starting::new();
        let mut server = starting.spawn_waiting();
        server.signal(signal);
        let ended = end_of(&mut server);
        assert!(ended.success(), "{signal:?}: {ended}");
    }
}

#[test]
fn signals_without_a_pause_from_the_beginning_on_kill_nothing() {
    let starting = Starting::new();
    fs::write(starting.config(), starting.toml(0)).unwrap();
    for round in 0..20 {
        let mut server = starting.spawn();
        // Before the program's first line nobody can take a signal.
        wait_until("signals are taken", || catches(&server, &[Signal::HUP, Signal::USR1]));
        let mut stderr = BufReader::new(server.0.stderr.take().unwrap());
        let ready = std::thread::spawn(move || (listener(&mut stderr), stderr));
        while !ready.is_finished() {
            for signal in [Signal::HUP, Signal::USR1] {
                assert_eq!(server.0.try_wait().unwrap(), None, "round {round}");
                server.signal(signal);
            }
        }
        let (address, _stderr) = ready.join().unwrap();
        assert_eq!(starting.is_served(address), "0");
        server.signal(Signal::TERM);
        let ended = end_of(&mut server);
        assert!(ended.success(), "round {round}: {ended}");
    }
}
