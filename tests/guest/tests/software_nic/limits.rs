//! What an adapter has only so much of: places for connections, set-ups in a second, the wire; and the presets.

use crate::fixture::{Fixture, LARGE};
use linerate_end_to_end::{Program, wait_until};
use linerate_guest_tests::{Adapter, TlsStatistics};
use std::time::{Duration, Instant};

/// What the README says of the presets: connections, commands of a set-up, their time, set-ups a second, the wire.
const PRESETS: [(&str, [&str; 5]); 5] = [
    ("connectx6dx", ["20000", "2", "294", "850", "100000"]),
    ("connectx7", ["20000", "1", "30", "16500", "400000"]),
    ("t6", ["16384", "1", "50", "0", "100000"]),
    ("t7", ["32768", "1", "20", "0", "400000"]),
    ("ideal", ["1048576", "0", "0", "0", "0"]),
];

#[test]
fn who_finds_no_place_stays_in_software() {
    let Some(fixture) = Fixture::load("who_finds_no_place_stays_in_software", &["max_flows=1"]) else {
        return;
    };
    let adapter = &fixture.adapter;
    let held = fixture.hold_connection();
    wait_until("the held connection is in the adapter", || adapter.counter("tx_tls_ctx") == 1);
    for refused in 1..=2 {
        let before = TlsStatistics::now();
        fixture.fetch(LARGE, &[]);
        assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (0, 1));
        assert_eq!(adapter.counter("tx_tls_setup_no_room"), refused);
    }
    drop(held);
    wait_until("its place is free", || adapter.counter("tx_tls_del") == 1);
    fixture.fetch_by_device(LARGE, &[]);
}

#[test]
fn set_ups_wait_for_the_firmware() {
    const SLOW: [&str; 3] = ["setup_commands=2", "teardown_commands=3", "command_us=150000"];
    let Some(fixture) = Fixture::load("set_ups_wait_for_the_firmware", &SLOW) else { return };
    let adapter = &fixture.adapter;
    let start = Instant::now();
    fixture.fetch_by_device("16385.bin", &[]);
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
    assert!(adapter.counter("fw_setup_wait_us") >= 300_000);
    assert_eq!(adapter.counter("fw_setup_wait_us"), adapter.counter("fw_setup_wait_us_max"));
    wait_until("the commands of the end were given", || adapter.counter("fw_commands") == 5);

    // The next would have to wait for three commands, and two of its own.
    adapter.set("command_timeout_ms", "100");
    let before = TlsStatistics::now();
    fixture.fetch("16385.bin", &[]);
    assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (0, 1));
    assert_eq!(adapter.counter("tx_tls_setup_timeout"), 1);
}

#[test]
fn only_so_many_set_ups_in_a_second() {
    let Some(fixture) = Fixture::load("only_so_many_set_ups_in_a_second", &["setups_per_second=1"]) else {
        return;
    };
    let start = Instant::now();
    fixture.load_with_new_connections("16385.bin", 4);
    assert!(start.elapsed() >= Duration::from_secs(3), "four set-ups in {:?}", start.elapsed());
    assert_eq!(fixture.adapter.counter("tx_tls_ctx"), 4);
    // Three of them came before their time.
    assert!(fixture.adapter.counter("fw_setup_wait_us") > 300_000);
}

#[test]
fn the_wire_has_a_rate() {
    let Some(fixture) = Fixture::load("the_wire_has_a_rate", &["rate_mbps=8"]) else { return };
    let start = Instant::now();
    fixture.fetch_by_device(LARGE, &[]);
    // 3 MB at 1 MB/s, but for what may wait in the adapter.
    assert!(start.elapsed() >= Duration::from_millis(2900), "{:?}", start.elapsed());
}

#[test]
fn presets_have_the_figures_that_are_documented() {
    let Some(fixture) =
        Fixture::load("presets_have_the_figures_that_are_documented", &["preset=t7", "max_flows=7"])
    else {
        return;
    };
    let adapter = &fixture.adapter;
    assert_eq!((adapter.parameter("preset"), adapter.parameter("max_flows")), ("t7".into(), "7".into()));
    for (preset, figures) in PRESETS {
        adapter.set("preset", preset);
        let names = ["max_flows", "setup_commands", "command_us", "setups_per_second", "rate_mbps"];
        assert_eq!(names.map(|name| adapter.parameter(name)), figures, "{preset}");
        let driver = Program::new("ethtool", ["-i", Adapter::NEAR_DEVICE]).run().success();
        let driver = String::from_utf8_lossy(&driver).into_owned();
        assert!(driver.contains("driver: linerate_nic"), "{driver}");
        assert!(driver.contains(&format!("firmware-version: {preset}")), "{driver}");
        fixture.fetch_by_device("65543.bin", &[]);
    }
    let refused = std::fs::write("/sys/module/linerate_nic/parameters/preset", "connectx5");
    assert!(refused.is_err());
    assert_eq!(adapter.parameter("preset"), "ideal");
}
