//! Ctrl-C, and what is said on the way.

use crate::support::{Fixture, Transport};
use linerate_end_to_end::{Signal, Site, linerate_binary, wait_until};
use rustix::process::{Pid, kill_process};
use std::{
    io::Read,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

fn start(words: &[&str]) -> Child {
    Command::new(linerate_binary())
        .arg("load")
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be run")
}

fn text(from: Option<impl Read>) -> String {
    let mut text = String::new();
    from.expect("it is piped").read_to_string(&mut text).expect("it is text");
    text
}

#[test]
fn what_was_measured_so_far_is_printed() {
    let site = Site::empty();
    site.add_pattern("f.bin", 10_000);
    let fixture = Fixture::start(site);
    let url = fixture.url(Transport::Tls, "f.bin");
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = start(&[&url, "-d", "60s", "--insecure"]);
        thread::sleep(Duration::from_millis(1500));
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let (stdout, stderr) = (text(child.stdout.take()), text(child.stderr.take()));
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{stdout}\n{stderr}");
        assert!(stdout.contains("interrupted ") && stdout.contains("latency "), "{stdout}");
        assert_eq!(stderr, "", "no progress line: standard error is no terminal");
    }
}

#[test]
fn whoever_started_it_is_told_when_measuring_begins_and_ends() {
    let site = Site::empty();
    site.add_pattern("f.bin", 10_000);
    let fixture = Fixture::start(site);
    let url = fixture.url(Transport::Tls, "f.bin");
    let words = [&url, "-d", "1s", "--warmup", "500ms", "--json", "--insecure", "-c", "5"];
    let mut child = start(&words);
    let started = Instant::now();
    let mut stderr = child.stderr.take().expect("it is piped");
    let mut said = Vec::new();
    let mut at = Vec::new();
    let mut active = Vec::new();
    let mut byte = [0];
    while stderr.read(&mut byte).expect("it can be read") == 1 {
        said.push(byte[0]);
        if byte[0] == b'\n' {
            at.push(started.elapsed());
            active.push(fixture.server.metric("linerate_connections_total", ""));
        }
    }
    assert_eq!(String::from_utf8(said).unwrap(), "measuring\nmeasured\n");
    let between = at[1] - at[0];
    assert!((0.95..1.5).contains(&between.as_secs_f64()), "{at:?}");
    assert!(at[0] >= Duration::from_millis(490), "{at:?}");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(active, [5.0, 5.0]);
    wait_until("its connections are closed", || {
        fixture.server.metric("linerate_connections_active", "") == 0.0
    });
}
