//! `--engine auto` with kernel TLS at hand: what moves there is what pays for it, and every response has its reason.

use super::fixture::{Fixture, LARGE, kernel_bytes};
use linerate_end_to_end::{Client, Server, calibration, wait_until};
use rustls::version::{TLS12, TLS13};

/// Fetches these one after the other on one connection, compares every byte, and returns engine and reason of each, as the
/// access log has them.
pub(crate) fn fetch(fixture: &Fixture, server: &Server, client: &mut Client, names: &[&str]) -> Vec<String> {
    let before = server.stdout().lines().count();
    for name in names {
        assert!(client.get(name).body == fixture.site.bytes(name), "{name}");
    }
    wait_until("the lines of the access log", || server.stdout().lines().count() == before + names.len());
    let value = |line: &str, key: &str| {
        let start = line.find(&format!("\"{key}\":\"")).unwrap_or_else(|| panic!("{key} in {line}"));
        line[start + key.len() + 4..].split('"').next().unwrap().to_owned()
    };
    let log = server.stdout();
    let lines = log.lines().skip(before);
    lines.map(|line| format!("{}: {}", value(line, "engine"), value(line, "reason"))).collect()
}

/// The reasons add up: as many as there were responses.
fn check_sum(server: &Server, responses: u64) {
    assert_eq!(server.metric("linerate_placement_total", ""), responses as f64);
}

#[test]
fn responses_that_pay_for_it_move_and_others_do_not() {
    let Some(fixture) = Fixture::new("responses_that_pay_for_it_move_and_others_do_not") else { return };
    let folder = tempfile::tempdir().unwrap();
    // Half a nanosecond a byte less, after 100 µs: from 200 kB on.
    let file = calibration(folder.path(), 0.5, 100_000.0);
    let server = fixture.start_auto(&file, "learning = false");
    server.wait_for_stderr("engine auto: kernel from 200 kB (AES-256-GCM), else user, by calibration");
    let before = fixture.statistics();
    let mut promoted = 0;
    for version in [&TLS12, &TLS13] {
        let client = || fixture.client(version).connect(server.address());
        for (names, expected, moves) in [
            (&["65543.bin"][..], &["user: below_break_even"][..], 0),
            (&["262145.bin"], &["kernel: pays"], 1),
            (
                &["1.bin", LARGE, "2.bin"],
                &["user: below_break_even", "kernel: pays", "kernel: moved_before"],
                1,
            ),
            (
                &["65543.bin", "65543.bin", "65543.bin", "65543.bin", "1.bin"],
                &[
                    "user: below_break_even",
                    "user: below_break_even",
                    "user: below_break_even",
                    "kernel: expected_to_pay",
                    "kernel: moved_before",
                ],
                1,
            ),
        ] {
            assert_eq!(fetch(&fixture, &server, &mut client(), names), expected, "{names:?}");
            promoted += moves;
            assert_eq!(before.moved("TlsTxSw"), promoted, "{names:?}");
        }
    }
    assert_eq!(server.metric("linerate_kernel_tls_promotions_total", ""), promoted as f64);
    assert_eq!(before.new_faults(), []);
    check_sum(&server, 20);
}

#[test]
fn where_the_kernel_never_pays_nothing_moves() {
    let Some(fixture) = Fixture::new("where_the_kernel_never_pays_nothing_moves") else { return };
    let folder = tempfile::tempdir().unwrap();
    for kernel_ns_per_byte in [0.99, 1.0, 1.5] {
        let file = calibration(folder.path(), kernel_ns_per_byte, 0.0);
        let server = fixture.start_auto(&file, "learning = false");
        assert!(server.stderr().contains("engine auto: user for all; "), "{}", server.stderr());
        let mut client = fixture.client(&TLS13).connect(server.address());
        let reasons = fetch(&fixture, &server, &mut client, &[LARGE, "1.bin", LARGE]);
        assert_eq!(reasons, ["user: not_cheaper"; 3], "{kernel_ns_per_byte}");
        assert_eq!(kernel_bytes(&server), 0.0);
        check_sum(&server, 3);
    }
}

#[test]
fn trials_are_moved_and_named() {
    let Some(fixture) = Fixture::new("trials_are_moved_and_named") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = calibration(folder.path(), 1.5, 0.0);
    let server = fixture.start_auto(&file, "trial_every = 2");
    for expected in ["user: not_cheaper", "kernel: trial", "user: not_cheaper", "kernel: trial"] {
        let mut client = fixture.client(&TLS13).connect(server.address());
        assert_eq!(fetch(&fixture, &server, &mut client, &[LARGE]), [expected]);
    }
    check_sum(&server, 4);
}
