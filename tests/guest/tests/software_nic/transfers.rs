//! Transfers that go well: both versions of IP, both ciphers, with bursts and without, ranges, several queues.

use crate::fixture::{Fixture, LARGE};
use linerate_guest_tests::{Adapter, TlsStatistics};

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
    assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (0, 1));
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
