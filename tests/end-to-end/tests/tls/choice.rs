//! What the server chooses: the certificate by name and by what the client can verify, and the protocol.

use crate::fixture::Fixture;
use linerate_end_to_end::{Algorithm, CertificatePair, ClientSetup, Server, ServerSetup, Site, openssl};
use std::{fs, time::Duration};

/// The certificate that openssl was shown, as PEM, and all it said.
fn shown_to_openssl(server: &Server, arguments: &[&str]) -> (Option<String>, String) {
    let address = server.address().to_string();
    let finished =
        openssl(["s_client", "-connect", &address]).arguments(arguments).types(Duration::ZERO, b"").run();
    let text = finished.text();
    let begin = text.find("-----BEGIN CERTIFICATE-----");
    let end = text.find("-----END CERTIFICATE-----");
    let shown = begin.zip(end).map(|(begin, end)| text[begin..end].replace('\n', ""));
    (shown, format!("{text}\n{}", finished.stderr))
}

/// A PEM file's certificate, in the same form.
fn pem_of(pair: &CertificatePair) -> String {
    let text = fs::read_to_string(&pair.certificate).unwrap();
    let end = text.find("-----END CERTIFICATE-----").unwrap();
    text[..end].replace(['\r', '\n'], "")
}

#[test]
fn the_name_chooses_the_certificate() {
    let keys = tempfile::tempdir().unwrap();
    let certificate =
        |stem: &str, names: &[&str]| CertificatePair::create(keys.path(), stem, Algorithm::Ecdsa, names);
    let pairs = [
        certificate("default", &["localhost", "other.test"]),
        certificate("media", &["media.test", "deep.media.test"]),
        certificate("wild", &["*.wild.test"]),
    ];
    let sites = [Site::empty(), Site::empty(), Site::empty()];
    let mut toml = "listen = [\"127.0.0.1:0\"]\nworkers = 1\n".to_owned();
    for ((pair, site), names) in
        pairs.iter().zip(&sites).zip(["", "names = [\"media.test\"]", "names = [\"*.wild.test\"]"])
    {
        site.add("which.txt", pair.certificate.to_string_lossy().as_bytes());
        toml += &format!(
            "[[site]]\n{names}\nroot = {:?}\ncertificates = [{{ certificate = {:?}, key = {:?} }}]\n",
            site.path(),
            pair.certificate,
            pair.key
        );
    }
    let server = ServerSetup::toml(&toml).start();
    for (name, expected) in [
        ("localhost", &pairs[0]),
        ("other.test", &pairs[0]),
        ("media.test", &pairs[1]),
        ("MEDIA.test", &pairs[1]),
        ("one.wild.test", &pairs[2]),
        ("two.wild.test", &pairs[2]),
    ] {
        let mut client = ClientSetup::new(&pairs).name(name).connect(server.address());
        assert_eq!(client.connection().peer_certificates().unwrap()[0], expected.der, "{name}");
        let request = format!("GET /which.txt HTTP/1.1\r\nHost: {name}\r\n\r\n");
        client.send(request.as_bytes()).unwrap();
        let body = client.read_response().unwrap().body;
        assert_eq!(String::from_utf8(body).unwrap(), expected.certificate.to_string_lossy(), "{name}");
    }
    // Without a name, or with one that no site has, the default site's certificate is shown.
    for arguments in [&["-noservername"][..], &["-servername", "nobody.test"]] {
        let (shown, said) = shown_to_openssl(&server, arguments);
        assert_eq!(shown, Some(pem_of(&pairs[0])), "{said}");
    }
}

#[test]
fn the_client_is_shown_what_it_can_verify() {
    let fixture = Fixture::new();
    let pairs = [(Algorithm::Ecdsa, "ecdsa"), (Algorithm::Rsa, "rsa"), (Algorithm::Ed25519, "ed25519")].map(
        |(algorithm, stem)| CertificatePair::create(fixture.keys.path(), stem, algorithm, &["localhost"]),
    );
    let setup =
        ServerSetup::new().flag(fixture.site.path()).flags(["--listen", "127.0.0.1:0", "--workers", "1"]);
    let server = pairs.iter().fold(setup, ServerSetup::certificate).start();
    let [ecdsa, rsa, ed25519] = &pairs;
    for (arguments, expected) in [
        (&["-sigalgs", "ecdsa_secp256r1_sha256"][..], ecdsa),
        (&["-sigalgs", "rsa_pss_rsae_sha256"], rsa),
        (&["-sigalgs", "ed25519"], ed25519),
        (
            &["-sigalgs", "ed25519:rsa_pss_rsae_sha256", "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"],
            rsa,
        ),
        (&["-tls1_2", "-sigalgs", "ed25519"], ed25519),
        (&["-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"], rsa),
        (
            &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384", "-sigalgs", "ecdsa_secp256r1_sha256"],
            ecdsa,
        ),
    ] {
        let (shown, said) = shown_to_openssl(&server, arguments);
        assert_eq!(shown, Some(pem_of(expected)), "{arguments:?}\n{said}");
    }
}

#[test]
fn a_client_that_can_verify_none_is_told() {
    let fixture = Fixture::with(Algorithm::Ed25519);
    let server = fixture.setup().start();
    let (shown, said) = shown_to_openssl(&server, &["-sigalgs", "rsa_pss_rsae_sha256"]);
    assert_eq!(shown, None);
    assert!(said.contains("handshake failure"), "{said}");
    let failures = server.metric("linerate_tls_handshakes_total", r#"result="no_shared_signature_scheme""#);
    assert_eq!(failures, 1.0);
}

#[test]
fn the_protocol_is_http_1_or_nothing() {
    let fixture = Fixture::new();
    let server = fixture.setup().start();
    for (offered, expected) in [
        (&[][..], None),
        (&["http/1.1"], Some(&b"http/1.1"[..])),
        (&["h2", "http/1.1"], Some(b"http/1.1")),
        (&["http/1.1", "h2"], Some(b"http/1.1")),
        (&["http/1.0", "http/1.1"], Some(b"http/1.1")),
        (&["http/1.0"], Some(b"http/1.0")),
    ] {
        let mut client = fixture.client().protocols(offered).connect(server.address());
        assert_eq!(client.connection().alpn_protocol(), expected, "{offered:?}");
        assert!(client.get("16385.bin").body == fixture.site.bytes("16385.bin"));
    }
    // RFC 7301 3.2: a client that only offers what we don't speak is refused.
    let refused = fixture.client().protocols(&["h2", "h3"]).try_connect(server.address()).unwrap_err();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
    let said = fixture.fetch_with_curl(&server, "16385.bin", &["--http1.1"]);
    assert!(said.contains("server accepted http/1.1"), "{said}");
}

#[test]
fn flags_narrow_what_is_spoken() {
    let fixture = Fixture::new();
    let only_13 = fixture.setup().flags(["--tls-min", "1.3"]).start();
    let (shown, said) = shown_to_openssl(&only_13, &["-tls1_2"]);
    assert!(shown.is_none() && said.contains("protocol version"), "{said}");
    let narrow = fixture
        .setup()
        .flags(["--ciphers", "TLS_AES_128_GCM_SHA256:ECDHE-ECDSA-CHACHA20-POLY1305", "--groups", "P-384"])
        .start();
    let said = fixture.fetch_with_curl(&narrow, "16385.bin", &["--tlsv1.3"]);
    assert!(said.contains("TLSv1.3 / TLS_AES_128_GCM_SHA256"), "{said}");
    let said = fixture.fetch_with_curl(&narrow, "16385.bin", &["--tls-max", "1.2"]);
    assert!(said.contains("TLSv1.2 / ECDHE-ECDSA-CHACHA20-POLY1305"), "{said}");
    for arguments in [
        &["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"][..],
        &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"],
        &["-tls1_3", "-groups", "X25519"],
    ] {
        let (shown, said) = shown_to_openssl(&narrow, arguments);
        assert!(shown.is_none() && said.contains("handshake failure"), "{arguments:?}\n{said}");
    }
}
