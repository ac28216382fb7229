//! What goes wrong on the way: loss on the wire and before the adapter, wrong bytes, links that go down.

use crate::fixture::{Fixture, LARGE};
use linerate_end_to_end::{Program, skip, wait_until};
use linerate_guest_tests::{Adapter, ip};
use std::{thread, time::Duration};

#[test]
fn loss_on_the_wire_leaves_bytes_equal() {
    let Some(fixture) = Fixture::load("loss_on_the_wire_leaves_bytes_equal", &["drop_nth=25"]) else {
        return;
    };
    let adapter = &fixture.adapter;
    fixture.fetch_by_device(LARGE, &[]);
    assert!(adapter.counter("tx_wire_lost") > 20);
    // What was lost came again, out of order, and its records were read again from their beginning.
    for counter in ["tx_tls_ooo", "tx_tls_resync_bytes", "tx_tls_dump_packets", "tx_tls_dump_bytes"] {
        assert!(adapter.counter(counter) > 10, "{counter}");
    }
    assert_eq!(adapter.counter("tx_tls_fallback"), 0);

    adapter.set("resync_by_software", "1");
    let (reread, out_of_order) = (adapter.counter("tx_tls_resync_bytes"), adapter.counter("tx_tls_ooo"));
    fixture.fetch_by_device(LARGE, &[]);
    assert!(adapter.counter("tx_tls_fallback") > 10);
    assert!(adapter.counter("tx_tls_ooo") > out_of_order);
    assert_eq!(adapter.counter("tx_tls_resync_bytes"), reread);
}

#[test]
fn loss_before_the_adapter_is_resynchronised() {
    const NAME: &str = "loss_before_the_adapter_is_resynchronised";
    let Some(fixture) = Fixture::load(NAME, &["resync_by_software=1", "resync_us=1000"]) else { return };
    let adapter = &fixture.adapter;
    without_bursts();
    let lossy = ["qdisc", "add", "dev", Adapter::NEAR_DEVICE, "root", "netem", "loss", "3%"];
    let added = Program::new("tc", lossy).run();
    if !added.status.success() {
        return skip(NAME, &format!("tc cannot lose packets: {}", added.stderr.trim()));
    }
    fixture.fetch_by_device(LARGE, &[]);
    assert!(adapter.counter("tx_tls_resync") > 0);
    assert!(adapter.counter("tx_tls_fallback") > 0);
    assert!(adapter.counter("tx_tls_encrypted_packets") > 0, "the adapter came back to the stream");

    adapter.set("resync_by_software", "0");
    let out_of_order = adapter.counter("tx_tls_ooo");
    fixture.fetch_by_device(LARGE, &[]);
    assert!(adapter.counter("tx_tls_ooo") > out_of_order);
}

#[test]
fn corruption_is_seen_by_the_client() {
    let Some(fixture) = Fixture::load("corruption_is_seen_by_the_client", &["corrupt_nth=40"]) else {
        return;
    };
    let from = fixture.nginx.kernel_tls;
    let broken = fixture.adapter.fetch(from.ip(), from.port(), LARGE, &[]);
    assert!(!broken.status.success());
    // OpenSSL's words for a record that is not authentic depend on its version.
    let words = ["bad record mac", "cipher operation failed"];
    assert!(words.iter().any(|words| broken.stderr.contains(words)), "{}", broken.stderr);
    assert!(fixture.adapter.counter("tx_wire_corrupted") > 0);
    fixture.adapter.set("corrupt_nth", "0");
    fixture.fetch_by_device(LARGE, &[]);
}

#[test]
fn a_link_that_goes_down_delays_a_transfer() {
    let Some(fixture) = Fixture::load("a_link_that_goes_down_delays_a_transfer", &["rate_mbps=8"]) else {
        return;
    };
    let adapter = &fixture.adapter;
    thread::scope(|scope| {
        let transfer = scope.spawn(|| fixture.fetch_by_device(LARGE, &[]));
        wait_until("the transfer is under way", || adapter.counter("tx_tls_encrypted_bytes") > 200_000);
        far_link(adapter, "down");
        wait_until("the carrier has gone", || !has_carrier());
        thread::sleep(Duration::from_millis(500));
        far_link(adapter, "up");
        transfer.join().unwrap();
    });
    assert!(has_carrier());
    // The keys stayed in the adapter all the time.
    assert!(adapter.counter("tx_tls_encrypted_bytes") > 3_000_000);
}

#[test]
fn a_device_that_goes_down_leaves_its_connections_to_software() {
    const NAME: &str = "a_device_that_goes_down_leaves_its_connections_to_software";
    let Some(fixture) = Fixture::load(NAME, &["rate_mbps=8"]) else { return };
    let adapter = &fixture.adapter;
    thread::scope(|scope| {
        let transfer = scope.spawn(|| fixture.fetch_by_device(LARGE, &[]));
        wait_until("the transfer is under way", || adapter.counter("tx_tls_encrypted_bytes") > 200_000);
        ip(&["link", "set", Adapter::NEAR_DEVICE, "down"]);
        assert_eq!((adapter.counter("tx_tls_ctx"), adapter.counter("tx_tls_del")), (1, 1));
        ip(&["link", "set", Adapter::NEAR_DEVICE, "up"]);
        transfer.join().unwrap();
    });
    assert!(adapter.counter("tx_tls_encrypted_bytes") < 3_000_000);
    assert!(adapter.counter("tx_tls_fallback") > 0, "the rest was sealed by software");
    fixture.fetch_by_device("65543.bin", &[]);
}

/// Each frame is sent by itself: what is lost then is small, and there is much to lose.
fn without_bursts() {
    drop(Program::new("ethtool", ["-K", Adapter::NEAR_DEVICE, "tso", "off", "gso", "off"]).run().success());
}

fn far_link(adapter: &Adapter, state: &str) {
    drop(adapter.far("ip", &["link", "set", Adapter::FAR_DEVICE, state]).run().success());
}

fn has_carrier() -> bool {
    std::fs::read_to_string(format!("/sys/class/net/{}/carrier", Adapter::NEAR_DEVICE)).unwrap().trim() == "1"
}
