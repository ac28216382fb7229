//! What the client offers, resumes and trusts.

use super::program::{flawless, load, number};
use crate::support::{Fixture, Transport};
use linerate_end_to_end::Site;

fn fixture() -> Fixture {
    let site = Site::empty();
    site.add_pattern("f.bin", 50_000);
    Fixture::start(site)
}

#[test]
fn version_suite_and_group_are_what_was_chosen() {
    let fixture = fixture();
    let url = fixture.url(Transport::Tls, "f.bin");
    let folder = fixture.site.path().to_str().unwrap();
    for (flags, agreed) in [
        (
            &["--tls", "1.3", "--cipher", "TLS_AES_256_GCM_SHA384", "--group", "X25519"][..],
            "TLS 1.3, TLS_AES_256_GCM_SHA384, x25519",
        ),
        (
            &["--cipher", "TLS_CHACHA20_POLY1305_SHA256", "--group", "P-384"],
            "TLS 1.3, TLS_CHACHA20_POLY1305_SHA256, secp384r1",
        ),
        (
            &["--group", "X25519MLKEM768", "--cipher", "TLS_AES_128_GCM_SHA256"],
            "TLS 1.3, TLS_AES_128_GCM_SHA256, X25519MLKEM768",
        ),
        (
            &["--tls", "1.2", "--cipher", "ECDHE-ECDSA-AES256-GCM-SHA384", "--group", "P-256"],
            "TLS 1.2, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, secp256r1",
        ),
    ] {
        for body in [&["--verify", folder][..], &["--discard"]] {
            let words = [&[url.as_str(), "-n", "20", "-c", "2", "--insecure"], flags, body].concat();
            let report = flawless(&words);
            assert_eq!(report["negotiated"], serde_json::json!({ agreed: 2 }), "{words:?}");
        }
    }
}

#[test]
fn sessions_are_resumed_where_that_is_wanted() {
    let fixture = fixture();
    let url = fixture.url(Transport::Tls, "f.bin");
    for version in ["1.2", "1.3"] {
        for body in [&[][..], &["--discard"]] {
            let words =
                [&[url.as_str(), "-n", "100", "-c", "2", "--close", "--insecure", "--tls", version], body]
                    .concat();
            let report = flawless(&words);
            assert_eq!(number(&report, "/totals/full_handshakes"), 100.0, "{words:?}");
            assert_eq!(number(&report, "/handshake/count"), 100.0);
            let report = flawless(&[words.as_slice(), &["--resume"]].concat());
            let full = number(&report, "/totals/full_handshakes");
            // Nobody has a ticket yet when the first two connect; a discarded stream's tickets come before its body.
            assert!((1.0..=4.0).contains(&full), "{words:?}: {full} full handshakes");
            assert_eq!(number(&report, "/totals/resumed_handshakes"), 100.0 - full);
        }
    }
    let resumed = fixture.server.metric("linerate_tls_handshakes_total", "resumed");
    assert!(resumed > 0.0, "the server agrees");
}

#[test]
fn certificates_are_checked_unless_told_otherwise() {
    let fixture = fixture();
    let url = fixture.url(Transport::Tls, "f.bin");
    let ca = fixture.pair.certificate.to_str().unwrap();
    flawless(&[&url, "-n", "2", "--ca", ca]);
    flawless(&[&url, "-n", "2", "--insecure"]);
    let finished = load(&[&url, "-n", "2"]).run();
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.stderr.contains("name its authority with --ca FILE"), "{}", finished.stderr);
    // A name that the certificate is not for.
    let other = url.replace("127.0.0.1", "127.0.0.2");
    let finished = load(&[&other, "-n", "2", "--ca", ca]).run();
    assert_eq!(finished.status.code(), Some(1), "{}", finished.text());
}
