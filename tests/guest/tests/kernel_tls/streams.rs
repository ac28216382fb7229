//! `linerate stream` on a kernel that has TLS: each direction carried by what was asked for, proved, and every byte verified.

use linerate_end_to_end::{linerate_binary, runs_all};
use linerate_guest_tests::{Kernel, TlsStatistics, has_kernel_tls};
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

    fn ran(&self, flags: &[&str]) -> (bool, String, String) {
        let output = Command::new(linerate_binary())
            .args(["stream", &self.address, "-i", "0"])
            .args(flags)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.success(), said, String::from_utf8(output.stderr).unwrap())
    }

    /// What a run says that has to go well.
    fn run(&self, flags: &[&str]) -> String {
        let (is_well, said, wrong) = self.ran(flags);
        assert!(is_well, "{flags:?}: {said}{wrong}");
        said
    }

    /// What a run prints and complains of that cannot go well.
    fn fails(&self, flags: &[&str]) -> (String, String) {
        let (is_well, said, wrong) = self.ran(flags);
        assert!(!is_well, "{flags:?}: {said}{wrong}");
        (said, wrong)
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

/// 64 records of 2^14 bytes under each key, both ways at once. A kernel that takes no new key ends the stream with that reason.
#[test]
fn keys_change_within_a_run_in_both_directions_or_the_end_has_its_reason() {
    if !has_kernel_tls("keys_change_within_a_run_in_both_directions_or_the_end_has_its_reason") {
        return;
    }
    let listening = Listening::start();
    let flags = ["--both", "--key-records", "64", "-n", "5000001", "--verify"];
    let kernel = ["--engine", "kernel", "--receive-engine", "kernel"];
    if Kernel::running().takes_new_keys() {
        let before = TlsStatistics::now();
        let said = listening.run(&[&kernel[..], &flags].concat());
        assert!(said.contains("here: changed ") && said.contains("listener: changed "), "{said}");
        // Two streams of 5 MB, and 1 MiB under each key. The engine tries a second key on sockets of its own, too.
        for counter in ["TlsTxRekeyOk", "TlsRxRekeyOk"] {
            assert!(before.moved(counter) >= 8, "{counter} {}", before.moved(counter));
        }
        assert_eq!(before.new_faults(), []);
        return;
    }
    for (engines, reason) in [
        (&kernel[..], "its key has "),
        (&["--engine", "user", "--receive-engine", "kernel"], "the peer changed its key (KeyUpdate)"),
    ] {
        // Whichever end comes to its limit first tells the reason; the other may meet the end of the connection before it.
        let reasons = [reason, "the client has closed its side"];
        let (said, wrong) = listening.fails(&[engines, &flags].concat());
        assert!(
            reasons.iter().any(|reason| said.contains(reason) || wrong.contains(reason)),
            "{engines:?}: {said}{wrong}"
        );
    }
}

/// 10 GB of them with `make test-all`: both ways at once and with new keys where the kernel takes them, else one way under one key.
#[test]
fn every_byte_of_a_long_run_is_verified() {
    if !has_kernel_tls("every_byte_of_a_long_run_is_verified") {
        return;
    }
    let takes_new_keys = Kernel::running().takes_new_keys();
    let (bytes, key_records) = match (runs_all(), takes_new_keys) {
        (true, true) => ("5000000007", "20000"),
        (true, false) => ("10000000007", ""),
        (false, true) => ("25000007", "200"),
        (false, false) => ("50000007", ""),
    };
    let flags = ["--engine", "kernel", "--receive-engine", "kernel", "-n", bytes, "--verify", "-l", "300001"];
    let new_keys = ["--both", "--key-records", key_records];
    let said = Listening::start().run(&[&flags[..], if takes_new_keys { &new_keys } else { &[] }].concat());
    assert!(said.contains(&format!("exactly {bytes} each way")), "{said}");
    assert!(said.contains("every byte is the one that it had to be"), "{said}");
    assert_eq!(
        takes_new_keys,
        said.contains("here: changed ") && said.contains("listener: changed "),
        "{said}"
    );
}

#[test]
fn all_engines_are_one_table() {
    if !has_kernel_tls("all_engines_are_one_table") {
        return;
    }
    let said = Listening::start().run(&["--engine", "all", "-n", "1M"]);
    let rows: Vec<&str> = said.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, ["engine", "plain", "user", "kernel", "nic", "floor"], "{said}");
    assert!(said.contains("no adapter took the connection"), "{said}");
    assert_eq!(said.matches("bits/sec").count(), 3, "{said}");
}
