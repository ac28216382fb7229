//! `linerate stream` as it is started and interrupted by people.

use linerate_end_to_end::{Signal, linerate_binary};
use rustix::process::{Pid, kill_process};
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

fn start(state: &Path, words: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(linerate_binary())
        .arg("stream")
        .args(words)
        .env("STATE_DIRECTORY", state)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be run");
    let said = BufReader::new(child.stdout.take().expect("it is piped"));
    (child, said)
}

fn line(said: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    said.read_line(&mut line).expect("it is text");
    line
}

/// Reads lines until one has these words.
fn line_with(said: &mut BufReader<ChildStdout>, words: &str) {
    let mut before = String::new();
    loop {
        let next = line(said);
        assert!(!next.is_empty(), "{words} was not said: {before}");
        if next.contains(words) {
            return;
        }
        before.push_str(&next);
    }
}

/// INV-LENT-1, with a receiver that is stopped again and again: what is lent lies in the sender's socket meanwhile, and every
/// byte is compared when it comes.
#[test]
fn nothing_that_is_lent_is_written_to_while_a_receiver_is_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut listener, mut told) = start(folder.path(), &["--listen", "127.0.0.1:0"]);
    let address = line(&mut told).trim().replace("listening on ", "");
    for engine in ["plain", "user"] {
        let words = [
            &address,
            "--engine",
            engine,
            "--zero-copy-send",
            "--verify",
            "-n",
            "60000001",
            "-l",
            "30001",
            "-w",
            "64K",
            "-P",
            "2",
            "-i",
            "100ms",
        ];
        let (mut client, mut said) = start(folder.path(), &words);
        // Shorter than what a machine that has died is told by.
        for _ in 0..3 {
            kill_process(Pid::from_child(&listener), Signal::STOP).expect("it runs");
            std::thread::sleep(Duration::from_millis(150));
            kill_process(Pid::from_child(&listener), Signal::CONT).expect("it runs");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut report = String::new();
        said.read_to_string(&mut report).expect("it is text");
        assert!(client.wait().expect("it ends").success(), "{engine}: {report}");
        for words in ["every byte is the one that it had to be", "exactly 60000001 each way", "all completed"]
        {
            assert!(report.contains(words), "{engine}: {words}: {report}");
        }
    }
    listener.kill().expect("it runs");
    let _ = listener.wait();
}

/// Ctrl-C prints what was measured; the listener that is killed in mid-run is told.
#[test]
fn what_was_measured_is_printed_when_a_run_ends_early() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    fs::write(&secret, "a secret that is long enough\n").expect("it can be written");
    let secret = secret.to_str().expect("it is text");
    let (mut listener, mut told) = start(folder.path(), &["--listen", "127.0.0.1:0", "--secret", secret]);
    let address = line(&mut told).trim().replace("listening on ", "");
    for is_killed in [false, true] {
        let words = [&address, "--secret", secret, "-t", "600", "-i", "100ms", "--engine", "user", "-P", "2"];
        let (mut client, mut said) = start(folder.path(), &words);
        line_with(&mut said, "[SUM]");
        if is_killed {
            listener.kill().expect("it runs");
        } else {
            kill_process(Pid::from_child(&client), Signal::INT).expect("it runs");
        }
        line_with(&mut said, "Retr");
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("it is text");
        let status = client.wait().expect("it ends");
        let (words, code) = if is_killed {
            ("fault         the listener is gone: ", 1)
        } else {
            ("interrupted   this is what was measured until then", 0)
        };
        assert!(rest.contains(words) && rest.contains("CPU here"), "{rest}");
        assert_eq!(status.code(), Some(code), "{rest}");
    }
    let _ = listener.wait();
}
