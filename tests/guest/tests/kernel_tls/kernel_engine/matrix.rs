//! Every version and cipher suite at odd offsets and lengths, byte for byte; the kernel's counters say that it did it.

use super::fixture::{Fixture, LARGE, end_of, kernel_bytes};
use linerate_end_to_end::{ClientSetup, ODD_LENGTHS, Site, curl, is_installed, skip};
use rustls::{
    CipherSuite, NamedGroup, SupportedProtocolVersion,
    version::{TLS12, TLS13},
};

const COMBINATIONS: [(&SupportedProtocolVersion, CipherSuite); 6] = [
    (&TLS13, CipherSuite::TLS13_AES_128_GCM_SHA256),
    (&TLS13, CipherSuite::TLS13_AES_256_GCM_SHA384),
    (&TLS13, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    (&TLS12, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    (&TLS12, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    (&TLS12, CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// Around the edges of pages, records and turns.
const OFFSETS: [usize; 7] = [0, 1, 4_095, 16_384, 65_543, 1_048_577, 2_000_003];
const LENGTHS: [usize; 6] = [1, 4_097, 16_383, 16_385, 65_537, 262_145];

#[test]
fn every_byte_is_equal_over_versions_suites_offsets_and_lengths() {
    let Some(fixture) = Fixture::new("every_byte_is_equal_over_versions_suites_offsets_and_lengths") else {
        return;
    };
    let large = fixture.site.bytes(LARGE);
    let server = fixture.setup().start();
    for (version, suite) in COMBINATIONS {
        let before = fixture.statistics();
        let bytes_before = kernel_bytes(&server);
        let mut client = ClientSetup::offering(&fixture.pair, version, suite, NamedGroup::X25519)
            .connect(server.address());
        // The largest first: what follows is on a promoted connection, whatever its size.
        for length_bytes in ODD_LENGTHS.into_iter().rev() {
            let name = Site::name_for(length_bytes);
            assert!(client.get(&name).body == fixture.site.bytes(&name), "{suite:?} {name}");
        }
        for offset in OFFSETS {
            for length in LENGTHS {
                let request = format!(
                    "GET /{LARGE} HTTP/1.1\r\nHost: localhost\r\nRange: bytes={offset}-{}\r\n\r\n",
                    offset + length - 1
                );
                client.send(request.as_bytes()).unwrap();
                let response = client.read_response().unwrap();
                assert_eq!(response.status, 206, "{suite:?} {offset} {length}");
                assert!(response.body == large[offset..offset + length], "{suite:?} {offset} {length}");
            }
        }
        assert_eq!(before.moved("TlsTxSw"), 1, "{suite:?}: the kernel sent for one connection");
        assert_eq!(before.new_faults(), [], "{suite:?}");
        assert!(kernel_bytes(&server) - bytes_before > 3_000_001.0, "{suite:?}");
    }
}

#[test]
fn parts_of_several_ranges_keep_their_order() {
    let Some(fixture) = Fixture::new("parts_of_several_ranges_keep_their_order") else { return };
    let large = fixture.site.bytes(LARGE);
    let server = fixture.setup().start();
    let before = fixture.statistics();
    let ranges = [(0, 0), (16_383, 600_001), (700_000, 700_000), (1_000_001, 2_999_999)];
    let list: Vec<String> = ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect();
    for version in [&TLS13, &TLS12] {
        let mut client = fixture.client(version).connect(server.address());
        assert!(client.get(LARGE).body == large);
        let request =
            format!("GET /{LARGE} HTTP/1.1\r\nHost: localhost\r\nRange: bytes={}\r\n\r\n", list.join(", "));
        client.send(request.as_bytes()).unwrap();
        let body = client.read_response().unwrap().body;
        let mut at = 0;
        for (first, last) in ranges {
            at = end_of(format!("Content-Range: bytes {first}-{last}/{}", large.len()).as_bytes(), &body, at);
            at = end_of(b"\r\n\r\n", &body, at);
            assert!(body[at..=at + last - first] == large[first..=last], "{version:?} {first}-{last}");
            at += last - first + 1;
        }
        // Nothing but the closing line is left.
        assert!(body[at..].starts_with(b"\r\n--") && body.ends_with(b"--\r\n") && body.len() - at < 100);
        assert!(client.get("16385.bin").body == fixture.site.bytes("16385.bin"));
    }
    assert_eq!(before.moved("TlsTxSw"), 2);
}

#[test]
fn files_that_never_change_may_be_read_while_they_are_sent() {
    let Some(fixture) = Fixture::new("files_that_never_change_may_be_read_while_they_are_sent") else {
        return;
    };
    let large = fixture.site.bytes(LARGE);
    // TLS_TX_ZEROCOPY_RO. Without an adapter that encrypts nothing is saved, but the option is set, on every kernel.
    let server = fixture.start_with("[site_defaults]\nimmutable = true");
    let before = fixture.statistics();
    for version in [&TLS13, &TLS12] {
        let mut client = fixture.client(version).connect(server.address());
        assert!(client.get(LARGE).body == large);
        for offset in OFFSETS {
            let length = 200_003;
            let last = offset + length - 1;
            let range =
                format!("GET /{LARGE} HTTP/1.1\r\nHost: localhost\r\nRange: bytes={offset}-{last}\r\n\r\n");
            client.send(range.as_bytes()).unwrap();
            assert!(client.read_response().unwrap().body == large[offset..=last], "{version:?} {offset}");
        }
    }
    assert_eq!(before.moved("TlsTxSw"), 2);
    assert_eq!(before.new_faults(), []);
}

#[test]
fn curl_fetches_by_either_version() {
    const NAME: &str = "curl_fetches_by_either_version";
    let Some(fixture) = Fixture::new(NAME) else { return };
    if !is_installed("curl") {
        return skip(NAME, "curl is not installed");
    }
    let server = fixture.setup().start();
    for version in [["--tls-max", "1.2"], ["--tls-max", "1.3"]] {
        let before = fixture.statistics();
        let trust = ["--cacert", fixture.pair.certificate.to_str().unwrap()];
        let body = curl(trust).arguments(version).arguments([server.url(LARGE)]).run().success();
        assert!(body == fixture.site.bytes(LARGE), "{version:?}");
        assert_eq!(before.moved("TlsTxSw"), 1, "{version:?}");
    }
}
