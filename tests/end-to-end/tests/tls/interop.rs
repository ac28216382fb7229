//! Every version, cipher suite, key exchange group and kind of certificate, with rustls and with OpenSSL as peers.

use crate::fixture::Fixture;
use linerate_end_to_end::{Algorithm, ClientSetup, ODD_LENGTHS, Site};
use rustls::{
    CipherSuite, NamedGroup, SupportedProtocolVersion,
    version::{TLS12, TLS13},
};

/// Long enough for several records, and ends in a short one.
const NAME: &str = "65543.bin";

const GROUPS: [NamedGroup; 4] =
    [NamedGroup::X25519MLKEM768, NamedGroup::X25519, NamedGroup::secp256r1, NamedGroup::secp384r1];

const SUITES_13: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
];

fn suites_12(algorithm: Algorithm) -> [CipherSuite; 3] {
    match algorithm {
        Algorithm::Rsa => [
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ],
        // RFC 8422 5.10: Ed25519 goes with the suites named after ECDSA.
        Algorithm::Ecdsa | Algorithm::Ed25519 => [
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ],
    }
}

fn combinations(
    algorithm: Algorithm,
) -> impl Iterator<Item = (&'static SupportedProtocolVersion, CipherSuite, NamedGroup)> {
    let of_13 = SUITES_13.into_iter().flat_map(|suite| GROUPS.map(|group| (&TLS13, suite, group)));
    // TLS 1.2 has no post-quantum groups.
    let of_12 = suites_12(algorithm)
        .into_iter()
        .flat_map(|suite| GROUPS.into_iter().skip(1).map(move |group| (&TLS12, suite, group)));
    of_13.chain(of_12)
}

fn rustls_gets_every_byte(algorithm: Algorithm) {
    let fixture = Fixture::with(algorithm);
    let server = fixture.setup().start();
    let expected = fixture.site.bytes(NAME);
    let mut tried = 0;
    for (version, suite, group) in combinations(algorithm) {
        let mut client =
            ClientSetup::offering(&fixture.pair, version, suite, group).connect(server.address());
        assert_eq!(client.connection().protocol_version(), Some(version.version));
        assert_eq!(client.connection().negotiated_cipher_suite().unwrap().suite(), suite);
        assert_eq!(client.connection().negotiated_key_exchange_group().unwrap().name(), group);
        assert!(client.get(NAME).body == expected, "{version:?} {suite:?} {group:?}");
        tried += 1;
    }
    assert_eq!(tried, 3 * 4 + 3 * 3);
    let (of_13, of_12) = (
        server.metric("linerate_tls_handshakes_total", r#"version="TLSv1.3",result="full""#),
        server.metric("linerate_tls_handshakes_total", r#"version="TLSv1.2",result="full""#),
    );
    assert_eq!((of_13, of_12), (12.0, 9.0));
}

#[test]
fn rustls_gets_every_byte_with_ecdsa() {
    rustls_gets_every_byte(Algorithm::Ecdsa);
}

#[test]
fn rustls_gets_every_byte_with_rsa() {
    rustls_gets_every_byte(Algorithm::Rsa);
}

#[test]
fn rustls_gets_every_byte_with_ed25519() {
    rustls_gets_every_byte(Algorithm::Ed25519);
}

fn curl_gets_every_byte(algorithm: Algorithm) {
    let fixture = Fixture::with(algorithm);
    let server = fixture.setup().start();
    let family = if algorithm == Algorithm::Rsa { "RSA" } else { "ECDSA" };
    for curve in ["X25519", "P-256", "P-384"] {
        // To OpenSSL the list also says which curves an ECDSA certificate may be on, in TLS 1.2.
        let curves = match (algorithm, curve) {
            (Algorithm::Ecdsa, "X25519" | "P-384") => &format!("{curve}:P-256"),
            _ => curve,
        };
        for suite in ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"] {
            let said = fixture.fetch_with_curl(
                &server,
                NAME,
                &["--tlsv1.3", "--tls13-ciphers", suite, "--curves", curve],
            );
            assert!(said.contains(&format!("SSL connection using TLSv1.3 / {suite}")), "{said}");
        }
        for suite in ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"] {
            let suite = format!("ECDHE-{family}-{suite}");
            let said = fixture.fetch_with_curl(
                &server,
                NAME,
                &["--tls-max", "1.2", "--ciphers", &suite, "--curves", curves],
            );
            assert!(said.contains(&format!("SSL connection using TLSv1.2 / {suite}")), "{said}");
        }
    }
}

#[test]
fn curl_gets_every_byte_with_ecdsa() {
    curl_gets_every_byte(Algorithm::Ecdsa);
}

#[test]
fn curl_gets_every_byte_with_rsa() {
    curl_gets_every_byte(Algorithm::Rsa);
}

#[test]
fn curl_gets_every_byte_with_ed25519() {
    curl_gets_every_byte(Algorithm::Ed25519);
}

#[test]
fn every_length_arrives_over_one_connection() {
    let fixture = Fixture::new();
    let mut server = fixture.setup().start();
    for version in [&TLS12, &TLS13] {
        let mut client = ClientSetup::of_version(&fixture.pair, version).connect(server.address());
        for length_bytes in ODD_LENGTHS {
            let name = Site::name_for(length_bytes);
            let response = client.get(&name);
            assert_eq!(response.status, 200);
            assert!(response.body == fixture.site.bytes(&name), "{version:?} {name}");
        }
    }
    assert!(server.stop().success());
}
