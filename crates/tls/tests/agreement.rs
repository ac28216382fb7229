//! Every version, suite, group and kind of certificate against an independent client, and what is agreed when the
//! two sides want different things.

mod support;

use linerate_record::{Cipher, Version};
use linerate_tls::{CipherSuite, FailureKind, Group, SiteCertificates, TlsPolicy};
use rustls::{SignatureScheme, SupportedCipherSuite, crypto::aws_lc_rs};
use support::{Algorithm, Pki, acceptor, exchange, one_site, run};

fn rustls_suite(suite: CipherSuite) -> SupportedCipherSuite {
    let mut all = aws_lc_rs::ALL_CIPHER_SUITES.iter();
    *all.find(|known| u16::from(known.suite()) == suite.code_point()).unwrap()
}

fn rustls_group(group: Group) -> &'static dyn rustls::crypto::SupportedKxGroup {
    *aws_lc_rs::ALL_KX_GROUPS.iter().find(|known| u16::from(known.name()) == group.code_point()).unwrap()
}

fn fits(suite: CipherSuite, algorithm: Algorithm) -> bool {
    suite.version() == Version::Tls13 || (algorithm == Algorithm::Rsa) == suite.iana_name().contains("_RSA_")
}

#[test]
fn every_combination_is_established_and_its_keys_work() {
    let mut combinations = 0;
    for algorithm in Algorithm::ALL {
        let mut pki = Pki::new();
        let files = pki.issue("own", algorithm, &["site.example"]);
        let acceptor = acceptor(TlsPolicy::default(), one_site(vec![files]));
        for suite in CipherSuite::ALL.into_iter().filter(|suite| fits(*suite, algorithm)) {
            for group in Group::ALL {
                if suite.version() == Version::Tls12 && group == Group::X25519MlKem768 {
                    continue;
                }
                let mut builder = pki.client();
                builder.suites = vec![rustls_suite(suite)];
                builder.groups = vec![rustls_group(group)];
                builder.versions = vec![match suite.version() {
                    Version::Tls13 => &rustls::version::TLS13,
                    Version::Tls12 => &rustls::version::TLS12,
                }];
                let mut client = builder.connect("site.example");
                let (established, leftover) = run(&acceptor, &mut client)
                    .unwrap_or_else(|failure| panic!("{algorithm:?} {suite:?} {group:?}: {failure}"));
                assert_eq!(established.version, suite.version());
                assert_eq!(established.cipher_suite, suite);
                assert_eq!(established.group, Some(group));
                assert_eq!(established.server_name.as_deref(), Some("site.example"));
                assert_eq!(established.application_protocol, Some("http/1.1"));
                assert!(!established.resumed);
                exchange(*established, &mut client, leftover);
                combinations += 1;
            }
        }
    }
    // Three kinds go with the ECDSA suites of TLS 1.2, one with the RSA suites; each with 3 suites.
    assert_eq!(combinations, 4 * (3 * 4 + 3 * 3));
}

#[test]
fn a_client_is_shown_what_it_can_verify() {
    let mut pki = Pki::new();
    let certificates: Vec<_> = [Algorithm::Rsa, Algorithm::Ed25519, Algorithm::EcdsaP256]
        .iter()
        .map(|algorithm| pki.issue(&format!("{algorithm:?}"), *algorithm, &["site.example"]))
        .collect();
    let acceptor = acceptor(TlsPolicy::default(), one_site(certificates));
    for (schemes, shown) in [
        (
            &[SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::RSA_PSS_SHA256][..],
            "EcdsaP256-cert.pem",
        ),
        (&[SignatureScheme::ED25519, SignatureScheme::RSA_PSS_SHA256], "Ed25519-cert.pem"),
        (&[SignatureScheme::RSA_PSS_SHA256], "Rsa-cert.pem"),
    ] {
        let mut config = pki.client().config();
        let verifier = OnlySchemes(schemes.to_vec());
        config.dangerous().set_certificate_verifier(std::sync::Arc::new(verifier));
        let mut client = support::connect(&std::sync::Arc::new(config), "site.example");
        let (established, _) = run(&acceptor, &mut client).unwrap();
        assert!(
            established.certificate.files().certificate.ends_with(shown),
            "{:?}",
            established.certificate
        );
        assert_eq!(client.peer_certificates().unwrap(), [support::der(&pki.path(shown))]);
    }
    // TLS 1.2 with RSA suites alone: the suite decides.
    let mut builder = pki.client();
    builder.suites.retain(|suite| format!("{:?}", suite.suite()).contains("ECDHE_RSA"));
    builder.versions = vec![&rustls::version::TLS12];
    let (established, _) = run(&acceptor, &mut builder.connect("site.example")).unwrap();
    assert!(established.certificate.files().certificate.ends_with("Rsa-cert.pem"));
}

#[test]
fn the_name_leads_to_the_site() {
    let mut pki = Pki::new();
    let mut site = |names: &[&str]| SiteCertificates {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        certificates: vec![pki.issue(&names.concat().replace('*', "any"), Algorithm::EcdsaP256, names)],
    };
    let sites = vec![
        site(&["a.example", "b.example"]),
        site(&["*.example"]),
        SiteCertificates { names: Vec::new(), ..site(&["fallback.test"]) },
        site(&["Upper.Example"]),
    ];
    let acceptor = acceptor(TlsPolicy::default(), sites);
    for (name, site) in [
        ("a.example", 0),
        ("b.example", 0),
        ("B.EXAMPLE", 0),
        ("c.example", 1),
        ("c.c.example", 2),
        ("example", 2),
        ("fallback.test", 2),
        ("192.0.2.1", 2),
        ("upper.example", 3),
    ] {
        // Not all of these names verify; whom the client was shown is what counts.
        let mut config = pki.client().config();
        let verifier = OnlySchemes(vec![SignatureScheme::ECDSA_NISTP256_SHA256]);
        config.dangerous().set_certificate_verifier(std::sync::Arc::new(verifier));
        let mut client = support::connect(&std::sync::Arc::new(config), name);
        let (established, _) = run(&acceptor, &mut client).unwrap();
        assert_eq!(established.site, site, "{name}");
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        let expected = (!is_address).then(|| name.to_lowercase());
        assert_eq!(established.server_name.as_deref(), expected.as_deref());
        if !is_address {
            assert_eq!(acceptor.site_for(&name.to_lowercase()), site);
        }
    }
}

#[test]
fn our_order_rules_but_chacha20_goes_to_those_who_put_it_first() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let suites: Vec<_> = CipherSuite::ALL.to_vec();
    let policy = TlsPolicy { cipher_suites: suites, ..TlsPolicy::default() };
    let acceptor = acceptor(policy, one_site(vec![files]));
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        for (first, agreed) in [
            (Cipher::Aes256Gcm, Cipher::Aes128Gcm),
            (Cipher::Aes128Gcm, Cipher::Aes128Gcm),
            (Cipher::ChaCha20Poly1305, Cipher::ChaCha20Poly1305),
        ] {
            let mut builder = pki.client();
            builder.versions = vec![version];
            let mut offered: Vec<_> = CipherSuite::ALL.to_vec();
            offered.sort_by_key(|suite| suite.cipher() != first);
            builder.suites = offered.into_iter().map(rustls_suite).collect();
            let (established, _) = run(&acceptor, &mut builder.connect("site.example")).unwrap();
            assert_eq!(established.cipher_suite.cipher(), agreed, "{version:?} {first:?}");
        }
    }
}

#[test]
fn alpn_is_http_1_1_or_nothing() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let acceptor = acceptor(TlsPolicy::default(), one_site(vec![files]));
    let offering = |protocols: &[&[u8]]| {
        let mut builder = pki.client();
        builder.alpn = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let mut client = builder.connect("site.example");
        (run(&acceptor, &mut client), client)
    };
    assert_eq!(offering(&[b"h2", b"http/1.1"]).0.unwrap().0.application_protocol, Some("http/1.1"));
    assert_eq!(offering(&[b"http/1.0", b"http/1.1"]).0.unwrap().0.application_protocol, Some("http/1.1"));
    assert_eq!(offering(&[b"http/1.0"]).0.unwrap().0.application_protocol, Some("http/1.0"));
    assert_eq!(offering(&[]).0.unwrap().0.application_protocol, None);
    let (refused, mut client) = offering(&[b"h2"]);
    assert_eq!(refused.unwrap_err().kind(), FailureKind::NoSharedApplicationProtocol);
    let said = client.process_new_packets().unwrap_err();
    assert_eq!(said, rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol));
}

#[test]
fn what_has_nothing_in_common_is_refused_by_its_name() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let only =
        |names: &[&str]| names.iter().map(|name| CipherSuite::named(name).unwrap()).collect::<Vec<_>>();
    let aes_only = acceptor(
        TlsPolicy {
            cipher_suites: only(&["TLS_AES_128_GCM_SHA256"]),
            groups: vec![Group::X25519],
            minimum_version: Version::Tls13,
            ..TlsPolicy::default()
        },
        one_site(vec![files]),
    );
    let chacha20 = rustls_suite(CipherSuite::named("TLS_CHACHA20_POLY1305_SHA256").unwrap());

    let mut builder = pki.client();
    builder.versions = vec![&rustls::version::TLS12];
    let failure = run(&aes_only, &mut builder.connect("site.example")).unwrap_err();
    assert_eq!(failure.kind(), FailureKind::NoSharedVersion);

    let mut builder = pki.client();
    builder.versions = vec![&rustls::version::TLS13];
    builder.suites = vec![chacha20];
    let failure = run(&aes_only, &mut builder.connect("site.example")).unwrap_err();
    assert_eq!(failure.kind(), FailureKind::NoSharedCipherSuite);

    let mut builder = pki.client();
    builder.groups = vec![rustls_group(Group::Secp384r1)];
    let failure = run(&aes_only, &mut builder.connect("site.example")).unwrap_err();
    assert_eq!(failure.kind(), FailureKind::NoSharedGroup);

    let mut config = pki.client().config();
    let verifier = OnlySchemes(vec![SignatureScheme::RSA_PSS_SHA256]);
    config.dangerous().set_certificate_verifier(std::sync::Arc::new(verifier));
    let mut client = support::connect(&std::sync::Arc::new(config), "site.example");
    let failure = run(&aes_only, &mut client).unwrap_err();
    assert_eq!(failure.kind(), FailureKind::NoSharedSignatureScheme);

    // TLS 1.2 judges it elsewhere: the suite goes with the certificate, and the client's curve is another.
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let acceptor = support::acceptor(TlsPolicy::default(), one_site(vec![files]));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut builder = pki.client();
        builder.versions = vec![version];
        let mut config = builder.config();
        let verifier = OnlySchemes(vec![SignatureScheme::ECDSA_NISTP384_SHA384]);
        config.dangerous().set_certificate_verifier(std::sync::Arc::new(verifier));
        let mut client = support::connect(&std::sync::Arc::new(config), "site.example");
        let failure = run(&acceptor, &mut client).unwrap_err();
        assert_eq!(failure.kind(), FailureKind::NoSharedSignatureScheme, "{version:?} {failure}");
        let said = client.process_new_packets().unwrap_err();
        assert_eq!(said, rustls::Error::AlertReceived(rustls::AlertDescription::HandshakeFailure));
    }

    // A name that the certificate does not have: the client says so.
    let mut client = pki.client().connect("other.example");
    let failure = run(&acceptor, &mut client).unwrap_err();
    assert_eq!(failure.kind(), FailureKind::CertificateRefused, "{failure}");
}

/// RFC 8422 5.1.1: in TLS 1.2 the groups tell which curves the client takes in certificates, too.
#[test]
fn a_tls12_client_is_not_shown_a_curve_that_it_does_not_list() {
    let mut pki = Pki::new();
    let [ecdsa, rsa] = [(Algorithm::EcdsaP256, "ecdsa"), (Algorithm::Rsa, "rsa")]
        .map(|(algorithm, label)| pki.issue(label, algorithm, &["site.example"]));
    let both = acceptor(TlsPolicy::default(), one_site(vec![ecdsa.clone(), rsa]));
    let only_ecdsa = acceptor(TlsPolicy::default(), one_site(vec![ecdsa]));
    let (tls12, tls13) = (&rustls::version::TLS12, &rustls::version::TLS13);
    for (acceptor, version, groups, shown) in [
        (&both, tls12, &[Group::X25519][..], "rsa-cert.pem"),
        (&both, tls12, &[Group::X25519, Group::Secp384r1], "rsa-cert.pem"),
        (&both, tls12, &[Group::X25519, Group::Secp256r1], "ecdsa-cert.pem"),
        // In TLS 1.3 the schemes name the curve, and the groups have nothing to do with it.
        (&both, tls13, &[Group::X25519], "ecdsa-cert.pem"),
        // Better shown than nothing: clients take it more often than they list it.
        (&only_ecdsa, tls12, &[Group::X25519], "ecdsa-cert.pem"),
    ] {
        let mut builder = pki.client();
        builder.versions = vec![version];
        builder.groups = groups.iter().copied().map(rustls_group).collect();
        let (established, _) = run(acceptor, &mut builder.connect("site.example")).unwrap();
        let certificate = &established.certificate.files().certificate;
        assert!(certificate.ends_with(shown), "{version:?} {groups:?} {certificate:?}");
    }
}

#[test]
fn a_group_without_a_share_costs_a_round_trip_and_no_more() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let policy = TlsPolicy { groups: vec![Group::Secp384r1], ..TlsPolicy::default() };
    let acceptor = acceptor(policy, one_site(vec![files]));
    let mut client = pki.client().connect("site.example");
    let (established, leftover) = run(&acceptor, &mut client).unwrap();
    assert_eq!(client.handshake_kind(), Some(rustls::HandshakeKind::FullWithHelloRetryRequest));
    assert_eq!(established.group, Some(Group::Secp384r1));
    exchange(*established, &mut client, leftover);
}

/// A verifier that accepts everything signed with these schemes.
#[derive(Debug)]
struct OnlySchemes(Vec<SignatureScheme>);

impl rustls::client::danger::ServerCertVerifier for OnlySchemes {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &rustls::pki_types::CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
