//! A run that is broken off keeps what it has, and goes on from there.

use std::process::{Command, Stdio};

use linerate_end_to_end::{Program, linerate_binary, wait_until};
use rustix::process::{Pid, Signal, kill_process};

use crate::{Bench, LIMIT, rounds};

#[test]
fn what_was_measured_before_an_interrupt_is_kept_and_gone_on_with() {
    is_kept_and_gone_on_with(&Bench::new(
        r#"
servers = ["linerate plaintext", "linerate user"]
load.connections = 1
sweep.file_bytes = [10_000]
time = { warmup_s = 0, measured_s = 0.5, rounds = 4 }
"#,
    ));
}

#[test]
fn a_run_of_streams_is_kept_and_gone_on_with_too() {
    let small = Bench::new("");
    let text = r#"
kind = "streams"
name = "small"
title = "One stream"
axis = "direction"
quantities = ["application_gbit_s"]
servers = ["linerate plaintext", "linerate user"]
sweep.direction = ["send"]
time = { measured_s = 0.5, rounds = 4 }
"#;
    std::fs::write(small.path("small.toml"), text).unwrap();
    is_kept_and_gone_on_with(&small);
}

/// Rounds of two servers, of which there are eight in all.
fn is_kept_and_gone_on_with(small: &Bench) {
    let _alone = Bench::alone();
    let mut run = Command::new(linerate_binary())
        .args(["bench", "run"])
        .arg(small.path("small.toml"))
        .arg("--output")
        .arg(small.path("out"))
        .arg("--cache")
        .arg(small.path("cache"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let measured = || {
        let text = std::fs::read(small.path("out/result.json")).unwrap_or_default();
        let result: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        result["points"].as_array().map_or(0, |points| {
            points.iter().map(|point| point["rounds"].as_array().map_or(0, Vec::len)).sum()
        })
    };
    wait_until("two slices are measured", || measured() >= 2);
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(1));
    let before = small.result("out");
    assert_eq!(before["incomplete"], true);
    let kept = rounds(&before, "linerate plaintext").len() + rounds(&before, "linerate user").len();
    assert!((2..8).contains(&kept), "{kept}");

    let program = linerate_binary().to_str().unwrap();
    let resume = Program::new(program, ["bench", "run", "--resume"]).arguments([small.path("out")]);
    let _ = resume.arguments(["--cache"]).arguments([small.path("cache")]).limit(LIMIT).run().success();
    let after = small.result("out");
    assert_eq!(after["incomplete"], false);
    assert_eq!(after["started_unix_s"], before["started_unix_s"]);
    for server in ["linerate plaintext", "linerate user"] {
        let (before, after) = (rounds(&before, server), rounds(&after, server));
        assert_eq!(after.len(), 4, "{server}");
        assert_eq!(after[..before.len()], before[..], "{server}: rounds that were there have changed");
    }
}
