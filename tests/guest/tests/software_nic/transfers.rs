//! Transfers that go well: both versions of IP, both ciphers, with bursts and without, ranges, several queues.

use crate::fixture::{Fixture, LARGE};
use linerate_end_to_end::{Program, linerate_binary};
use linerate_guest_tests::{Adapter, TlsStatistics};
use std::time::Duration;

#[test]
fn equal_bytes_by_the_device() {
    let Some(fixture) = Fixture::load("equal_bytes_by_the_device", &[]) else { return };
    for cipher in ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"] {
        for name in ["1.bin", "16385.bin", LARGE] {
            fixture.fetch_by_device(name, &["--ciphers", cipher]);
        }
    }
    assert_eq!(fixture.adapter.counter("tx_tls_ctx"), 6);
    assert!(fixture.adapter.counter("tx_tls_encrypted_bytes") > 6_000_000);
    assert!(fixture.adapter.counter("tx_tls_encrypted_packets") > 4000);
}

#[test]
fn equal_bytes_over_ip_version_6() {
    let Some(fixture) = Fixture::load_at("equal_bytes_over_ip_version_6", Adapter::NEAR_V6.into(), &[])
    else {
        return;
    };
    fixture.fetch_by_device(LARGE, &[]);
    assert!(fixture.adapter.counter("tx_tls_encrypted_bytes") > 3_000_000);
}

#[test]
fn tls_1_3_stays_in_software() {
    let Some(fixture) = Fixture::load("tls_1_3_stays_in_software", &[]) else { return };
    let before = TlsStatistics::now();
    fixture.fetch("65543.bin", &["--tlsv1.3"]);
    let moved = ["TlsTxDevice", "TlsTxSw"].map(|counter| before.moved(counter));
    assert_eq!(moved, [0, 1], "by the device, in software: {:?}", TlsStatistics::now());
    assert_eq!(fixture.adapter.counter("tx_tls_ctx"), 0);
}

#[test]
fn linerate_sends_by_the_device() {
    let Some(fixture) = Fixture::load("linerate_sends_by_the_device", &[]) else { return };
    let server = fixture.linerate();
    let address = server.address();
    let before = TlsStatistics::now();
    for range in ["0-", "16383-1000000", "1-65537"] {
        let fetched =
            fixture.adapter.fetch(address.ip(), address.port(), LARGE, &["--range", range]).success();
        let (first, last) = range.split_once('-').unwrap();
        let whole = fixture.site.bytes(LARGE);
        let last = last.parse().unwrap_or(whole.len() - 1);
        assert!(fetched == whole[first.parse().unwrap()..=last], "{range}: {} bytes", fetched.len());
    }
    assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (3, 0));
    assert_eq!(server.metric("linerate_kernel_tls_promotions_total", ""), 3.0);
}

/// `linerate stream`, from the adapter's end to the far side, which verifies every byte: proved by the kernel and by its counters.
#[test]
fn streams_are_sealed_by_the_device() {
    let Some(fixture) = Fixture::load("streams_are_sealed_by_the_device", &[]) else { return };
    let state = tempfile::tempdir().unwrap();
    let secret = state.path().join("secret");
    std::fs::write(&secret, "what both ends of a test know").unwrap();
    let secret = secret.to_str().unwrap();
    let address = format!("{}:5299", fixture.nginx.kernel_tls.ip());
    let program = linerate_binary();
    let mut listener = std::process::Command::new(program)
        .args(["stream", "--listen", &address, "--secret", secret])
        .env("STATE_DIRECTORY", state.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let said = listener.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut line).unwrap();
    let before = TlsStatistics::now();
    // The far side receives: the listener sends, by its adapter.
    let words = ["stream", &address, "--secret", secret, "-R", "--engine", "nic", "--tls", "1.2"];
    let run = fixture
        .adapter
        .far(program.to_str().unwrap(), &words)
        .arguments(["-P", "2", "-n", "3000001", "-l", "30001", "--verify", "-i", "0"])
        .run();
    let said = run.text();
    listener.kill().unwrap();
    listener.wait().unwrap();
    for words in [
        "sent by       nic: the kernel says that the adapter seals",
        "every byte is the one that it had to be",
        "exactly 3000001 each way",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(before.moved("TlsTxDevice") >= 2, "{}", before.moved("TlsTxDevice"));
    assert!(fixture.adapter.counter("tx_tls_encrypted_bytes") > 3_000_000);
}

#[test]
fn openssl_reads_what_the_device_sealed() {
    let Some(fixture) = Fixture::load("openssl_reads_what_the_device_sealed", &[]) else { return };
    let before = TlsStatistics::now();
    let address = fixture.nginx.kernel_tls.to_string();
    let quiet = ["s_client", "-tls1_2", "-quiet", "-ign_eof", "-connect", &address];
    let request = format!("GET /{LARGE} HTTP/1.0\r\n\r\n");
    let shown =
        fixture.adapter.far("openssl", &quiet).types(Duration::ZERO, request.as_bytes()).run().success();
    assert!(shown.ends_with(&fixture.site.bytes(LARGE)), "{} bytes", shown.len());
    assert_eq!(before.moved("TlsTxDevice"), 1);
}

#[test]
fn bursts_can_be_switched_off() {
    let Some(fixture) = Fixture::load("bursts_can_be_switched_off", &[]) else { return };
    let frames = |adapter: &Adapter| adapter.counter("tx_tls_encrypted_packets");
    for features in [["tso", "off", "gso", "on"], ["tso", "off", "gso", "off"], ["tso", "on", "gso", "on"]] {
        drop(Program::new("ethtool", ["-K", Adapter::NEAR_DEVICE]).arguments(features).run().success());
        let before = frames(&fixture.adapter);
        fixture.fetch_by_device(LARGE, &[]);
        // As many frames, whether kernel or adapter cuts the bursts.
        assert!(frames(&fixture.adapter) - before > 2000, "{features:?}");
    }
}

#[test]
fn connections_use_several_queues() {
    let Some(fixture) = Fixture::load("connections_use_several_queues", &["queues=4"]) else { return };
    let before = TlsStatistics::now();
    fixture.load_with_new_connections("65543.bin", 12);
    assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (12, 0));
    let by_queue =
        [0, 1, 2, 3].map(|queue| fixture.adapter.counter(&format!("tx{queue}_tls_encrypted_bytes")));
    assert!(by_queue.iter().filter(|bytes| **bytes > 0).count() >= 2, "{by_queue:?}");
    assert_eq!(by_queue.iter().sum::<u64>(), fixture.adapter.counter("tx_tls_encrypted_bytes"));
    assert!(by_queue.iter().sum::<u64>() > 12 * 65_543);
}
