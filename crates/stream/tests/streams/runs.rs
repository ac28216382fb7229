//! Runs in every direction and on every engine, over loopback: what is sent comes, to the byte.

use super::support::{SECRET, listen, plan, run, try_run};
use linerate_stream::{
    Limits, StreamError, StreamPlan, Watch,
    plan::{Amount, Cipher, Direction, StreamEngine, Version, ZeroCopySend},
    report::{Connected, Interval},
};
use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

const DIRECTIONS: [Direction; 3] = [Direction::Send, Direction::Receive, Direction::Both];

#[test]
fn every_byte_comes_once_in_every_direction_on_every_engine() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    for engine in [StreamEngine::Plain, StreamEngine::User] {
        for direction in DIRECTIONS {
            for (streams, io_bytes) in [(1, 128 * 1024), (3, 1000), (2, 16 << 20)] {
                let plan = StreamPlan { streams, io_bytes, direction, engine, ..plan(address) };
                let report = run(&plan);
                let remote = report.remote.unwrap();
                let ways = if direction == Direction::Both {
                    &[true, false][..]
                } else {
                    &[direction == Direction::Send]
                };
                for &sends in ways {
                    assert_eq!(report.local.bytes(sends), 1_000_003, "{plan:?}");
                    assert_eq!(remote.bytes(!sends), 1_000_003, "{plan:?}");
                }
                assert!(report.local.cpu.total_s() > 0.0 && remote.cpu.total_s() > 0.0);
                assert!(report.local.service_demand_us_per_kb().is_some());
            }
        }
    }
}

#[test]
fn io_of_a_single_byte_works() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    for engine in [StreamEngine::Plain, StreamEngine::User] {
        let plan = StreamPlan { io_bytes: 1, engine, amount: Amount::Bytes(3001), ..plan(address) };
        let report = run(&plan);
        assert_eq!(report.local.streams[0].calls, 3001, "each byte is handed over alone");
    }
}

#[test]
fn every_version_and_cipher_is_what_was_asked_for() {
    let loopback = if std::net::TcpListener::bind("[::1]:0").is_ok() { "[::1]:0" } else { "127.0.0.1:0" };
    if !loopback.contains("::1") {
        eprintln!("SKIPPED: every_version_and_cipher_is_what_was_asked_for over IPv6: there is no ::1 here");
    }
    let address = listen(loopback, None, Limits::default());
    for version in [Version::Tls12, Version::Tls13] {
        for cipher in Cipher::ALL {
            let plan =
                StreamPlan { engine: StreamEngine::User, version, cipher: Some(cipher), ..plan(address) };
            let report = run(&plan);
            let agreed = report.local.streams[0].tls.clone().unwrap();
            let name = cipher.name().to_uppercase().replace('-', "_");
            assert!(agreed.starts_with(&version.to_string()) && agreed.contains(&name), "{agreed}");
        }
    }
}

/// 10 GB each way, with `make test-all`.
#[test]
fn every_byte_of_a_long_run_is_verified() {
    let bytes = if std::env::var_os("LINERATE_TEST_ALL").is_some() { 10_000_000_007 } else { 100_000_007 };
    let address = listen("127.0.0.1:0", None, Limits::default());
    for engine in [StreamEngine::Plain, StreamEngine::User] {
        let amount = Amount::Bytes(bytes);
        let report = run(&StreamPlan { engine, amount, direction: Direction::Both, ..plan(address) });
        assert_eq!((report.local.bytes(true), report.local.bytes(false)), (bytes, bytes));
    }
}

/// Sixteen records of 2^14 bytes under each key, both ways at once.
#[test]
fn keys_change_on_the_way_in_both_directions() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    for cipher in Cipher::ALL {
        for zero_copy_send in [None, Some(ZeroCopySend::MsgZerocopy)] {
            let plan = StreamPlan {
                engine: StreamEngine::User,
                direction: Direction::Both,
                cipher: Some(cipher),
                key_records: Some(16),
                zero_copy_send,
                amount: Amount::Bytes(3_000_001),
                ..plan(address)
            };
            let report = run(&plan);
            let remote = report.remote.unwrap();
            for (here, there) in report.local.streams.iter().zip(&remote.streams) {
                assert!(here.key_updates >= 3_000_001 / 16_384 / 16, "{here:?}");
                assert_eq!(here.key_updates, there.key_updates, "both ends count alike");
            }
        }
    }
}

#[test]
fn a_file_is_sent_over_and_over() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    fs::write(&file, vec![7; 30_001]).unwrap();
    for engine in [StreamEngine::Plain, StreamEngine::User] {
        let send_file = Some(file.clone());
        let plan = StreamPlan { engine, send_file, verify: false, io_bytes: 100_000, ..plan(address) };
        assert_eq!(run(&plan).remote.unwrap().bytes(false), 1_000_003);
    }
    let missing = StreamPlan { send_file: Some(folder.path().join("none")), verify: false, ..plan(address) };
    assert!(matches!(try_run(&missing), Err(StreamError::File { .. })));
}

#[test]
fn a_thousand_streams_are_one_run() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    let streams = 500;
    let amount = Amount::Bytes(2_000_011);
    for engine in [StreamEngine::Plain, StreamEngine::User] {
        let report =
            run(&StreamPlan { streams, engine, amount, direction: Direction::Both, ..plan(address) });
        assert_eq!(report.local.streams.len(), 1000);
        assert_eq!((report.local.bytes(true), report.local.bytes(false)), (2_000_011, 2_000_011));
    }
}

#[test]
fn a_rate_is_kept_to_and_a_time_ends_a_run() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    for direction in DIRECTIONS {
        let plan = StreamPlan {
            direction,
            rate_bits: Some(8_000_000),
            io_bytes: 10_000,
            amount: Amount::Milliseconds(500),
            ..plan(address)
        };
        let report = run(&plan);
        let remote = report.remote.as_ref().unwrap();
        let moved = report.local.bytes(true).max(report.local.bytes(false));
        // At most what is due in the time that it lasted, and one I/O. A machine that was busy sends less.
        let lasted_s = report.local.seconds.max(remote.seconds);
        assert!(moved > 0 && (moved as f64) <= lasted_s * 1_000_000.0 + 10_000.0, "{moved} in {lasted_s}");
        assert!(report.local.seconds >= 0.5, "{}", report.local.seconds);
    }
}

/// Interrupts a run at its first interval.
struct Interrupting<'a>(&'a AtomicBool);

impl Watch for Interrupting<'_> {
    fn connected(&mut self, _streams: &[Connected]) {}

    fn interval(&mut self, _interval: &Interval) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn an_interrupt_ends_a_run_and_it_is_reported() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    for direction in DIRECTIONS {
        let interrupt = AtomicBool::new(false);
        let plan = StreamPlan {
            direction,
            interval: Some(Duration::from_millis(200)),
            amount: Amount::Milliseconds(60_000),
            ..plan(address)
        };
        let began = Instant::now();
        let report = linerate_stream::run(&plan, &interrupt, &mut Interrupting(&interrupt)).unwrap();
        assert!(report.interrupted && report.faults.is_empty(), "{report:?}");
        assert!(began.elapsed() < Duration::from_secs(50), "it did not wait for its time");
        assert!(report.remote.is_some() && report.intervals.iter().any(|interval| interval.end_s > 0.1));
    }
}

#[test]
fn the_intervals_of_a_run_are_all_of_it() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    let plan = StreamPlan {
        interval: Some(Duration::from_millis(100)),
        amount: Amount::Bytes(50_000_000),
        rate_bits: Some(1_000_000_000),
        direction: Direction::Receive,
        ..plan(address)
    };
    let report = run(&plan);
    let told: u64 =
        report.intervals.iter().flat_map(|interval| &interval.streams).map(|stream| stream.bytes).sum();
    assert_eq!(told, 50_000_000);
    assert!(report.intervals.windows(2).all(|pair| pair[0].end_s == pair[1].start_s));
}

#[test]
fn what_a_listener_does_not_allow_is_refused_or_held_to() {
    let limits = Limits { streams: 4, time: Duration::from_secs(5), rate_bits: Some(80_000_000) };
    let address = listen("127.0.0.1:0", None, limits);
    let plan = plan(address);
    for (asked, said) in [
        (StreamPlan { streams: 5, ..plan.clone() }, "room for 4 of the 4"),
        (StreamPlan { streams: 3, direction: Direction::Both, ..plan.clone() }, "6 connections are needed"),
        (StreamPlan { amount: Amount::Milliseconds(5001), ..plan.clone() }, "runs of up to 5 s"),
    ] {
        let told = try_run(&asked).unwrap_err().to_string();
        assert!(told.contains(said), "{told}");
    }
    let report = run(&StreamPlan { streams: 4, amount: Amount::Bytes(400_000), ..plan.clone() });
    assert_eq!(report.rate_bits, Some(20_000_000), "each of four streams");
    let report = run(&StreamPlan { rate_bits: Some(1_000_000), amount: Amount::Bytes(10_000), ..plan });
    assert_eq!(report.rate_bits, Some(1_000_000), "less was asked for");
}

#[test]
fn both_ends_have_to_know_the_secret() {
    let guarded = listen("127.0.0.1:0", Some(SECRET), Limits::default());
    let open = listen("127.0.0.1:0", None, Limits::default());
    let secret = |bytes: &[u8]| Some(linerate_stream::Secret::new(bytes).unwrap());
    run(&StreamPlan { secret: secret(SECRET), ..plan(guarded) });
    for (asked, said) in [
        (StreamPlan { secret: secret(b"another secret, long enough"), ..plan(guarded) }, "another one"),
        (plan(guarded), "give the same here"),
        (StreamPlan { secret: secret(SECRET), ..plan(open) }, "cannot prove to be the right one"),
    ] {
        let told = try_run(&asked).unwrap_err().to_string();
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn a_listener_outside_loopback_needs_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let settings = linerate_stream::ListenerSettings {
        address: "0.0.0.0:0".parse().unwrap(),
        secret: None,
        limits: Limits::default(),
        cpus: Vec::new(),
        certificate: linerate_tls::development_certificate(folder.path()).unwrap().files,
    };
    let refused = linerate_stream::Listener::bind(settings, |_| {}).err().unwrap();
    assert!(matches!(refused, StreamError::SecretNeeded(_)), "{refused}");
}
