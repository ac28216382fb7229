//! A few seconds of every fuzz target without a fuzzer: each seed as it is, then seeds with seeded damage. What a fuzzer
//! found goes to `fuzz/seeds/TARGET/`, and is tried here ever after.

#[path = "fuzz_smoke/damage.rs"]
mod damage;

use damage::damaged;
use fastrand::Rng;
use linerate_fuzz_targets::{TARGETS, Target, Verdict};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

fn smoke(name: &str, rounds: u64) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    let seeds = seeds(name);
    let (mut taken, mut refused) = (0, 0);
    let mut tried = |bytes: &[u8], what: &str| match tried(target, bytes, what) {
        Verdict::Taken => taken += 1,
        Verdict::Refused => refused += 1,
    };
    for (index, seed) in seeds.iter().enumerate() {
        tried(seed, &format!("seed {index}"));
    }
    for round in 0..rounds {
        tried(&damaged(&seeds, &mut Rng::with_seed(round)), &format!("round {round}"));
    }
    println!("{name}: {} seeds, {rounds} rounds: {taken} taken, {refused} refused", seeds.len());
    let least = rounds / 100;
    assert!(taken > least && refused > least, "{name}: {taken} taken, {refused} refused: damage says little");
}

/// Runs the target; a panic is told with the bytes that caused it.
fn tried(target: &Target, bytes: &[u8], what: &str) -> Verdict {
    catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)))
        .unwrap_or_else(|_| panic!("{}, {what}: b\"{}\"", target.name, bytes.escape_ascii()))
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

#[test]
fn access_log() {
    smoke("access_log", 100_000);
}

#[test]
fn body() {
    smoke("body", 200_000);
}

#[test]
fn client_hello() {
    smoke("client_hello", 100_000);
}

#[test]
fn configuration() {
    smoke("configuration", 50_000);
}

#[test]
fn handle() {
    smoke("handle", 5_000);
}

#[test]
fn handshake() {
    smoke("handshake", 5_000);
}

#[test]
fn listing() {
    smoke("listing", 3_000);
}

#[test]
fn nfs() {
    smoke("nfs", 50_000);
}

#[test]
fn nfs_replies() {
    smoke("nfs_replies", 100_000);
}

#[test]
fn path() {
    smoke("path", 200_000);
}

#[test]
fn range() {
    smoke("range", 200_000);
}

#[test]
fn record_open() {
    smoke("record_open", 100_000);
}

#[test]
fn request() {
    smoke("request", 200_000);
}

#[test]
fn response() {
    smoke("response", 200_000);
}

#[test]
fn rpc() {
    smoke("rpc", 200_000);
}

#[test]
fn stream_control() {
    smoke("stream_control", 100_000);
}

#[test]
fn ticket() {
    smoke("ticket", 10_000);
}

#[test]
fn every_target_has_its_test_and_its_fuzzer() {
    let this_file = include_str!("fuzz_smoke.rs");
    let fuzzers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../libfuzzer/fuzz_targets");
    for target in TARGETS {
        assert!(this_file.contains(&format!("smoke(\"{}\"", target.name)), "{}", target.name);
        assert!(fuzzers.join(format!("{}.rs", target.name)).is_file(), "{}", target.name);
    }
}
