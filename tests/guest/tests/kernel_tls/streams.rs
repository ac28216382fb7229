//! `linerate stream` on a kernel that has TLS: each direction carried by what was asked for, proved, and every byte verified.

use linerate_end_to_end::linerate_binary;
use linerate_guest_tests::{TlsStatistics, has_kernel_tls};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

/// A listener on loopback, ended with the value.
struct Listening {
    child: Child,
    address: String,
    _state: tempfile::TempDir,
}

impl Listening {
    fn start() -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut child = Command::new(linerate_binary())
            .args(["stream", "--listen", "127.0.0.1:0"])
            .env("STATE_DIRECTORY", state.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { child, address, _state: state }
    }

    /// What a run says that has to go well.
    fn run(&self, flags: &[&str]) -> String {
        let output = Command::new(linerate_binary())
            .args(["stream", &self.address, "-i", "0"])
            .args(flags)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let wrong = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{flags:?}: {said}{wrong}");
        said
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn streams_are_carried_by_the_kernel_where_that_was_asked_for() {
    if !has_kernel_tls("streams_are_carried_by_the_kernel_where_that_was_asked_for") {
        return;
    }
    let listening = Listening::start();
    let (sealed, opened) = ("sent by       kernel: ", "received by   kernel: ");
    for (flags, by_kernel, moved) in [
        (&["--engine", "kernel"][..], &[sealed][..], ("TlsTxSw", 2)),
        (&["--engine", "user", "--receive-engine", "kernel", "-R"], &[opened], ("TlsRxSw", 2)),
        (
            &["--engine", "kernel", "--receive-engine", "kernel", "--both", "-l", "30000"],
            &[sealed, opened],
            ("TlsTxSw", 4),
        ),
        (
            &["--engine", "kernel", "--receive-engine", "kernel", "--tls", "1.2", "-l", "1000"],
            &[sealed, opened],
            ("TlsRxSw", 2),
        ),
    ] {
        let before = TlsStatistics::now();
        let said = listening.run(&[flags, &["-P", "2", "-n", "3000001", "--verify"]].concat());
        for words in
            by_kernel.iter().chain(&["every byte is the one that it had to be", "exactly 3000001 each way"])
        {
            assert!(said.contains(words), "{flags:?}: {words}\n{said}");
        }
        let (counter, least) = moved;
        // The engine tries combinations on sockets of its own, too.
        assert!(before.moved(counter) >= least, "{flags:?}: {counter} {}", before.moved(counter));
    }
}

#[test]
fn all_engines_are_one_table() {
    if !has_kernel_tls("all_engines_are_one_table") {
        return;
    }
    let said = Listening::start().run(&["--engine", "all", "-n", "1M"]);
    let rows: Vec<&str> = said.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, ["engine", "plain", "user", "kernel", "nic"], "{said}");
    assert!(said.contains("no adapter took the connection"), "{said}");
    assert_eq!(said.matches("bits/sec").count(), 3, "{said}");
}
