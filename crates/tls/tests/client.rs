//! The client's side: every combination against rustls' own server, however the bytes arrive; sessions, trust, and
//! servers that do not speak TLS. (Real servers: the end-to-end tests of the load client.)

mod support;

use linerate_record::{ContentType, KeyUpdateRate, Version};
use linerate_tls::{
    CipherSuite, ClientHandshake, ConnectFailure, ConnectStep, Connected, Connector, Group,
    HANDSHAKE_LIMIT_BYTES, TlsPolicy, Trust,
};
use rustls::{
    ServerConfig, ServerConnection,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{
    io::{Read, Write},
    sync::Arc,
};
use support::{Algorithm, Pki, open_all};

fn server_config(pki: &mut Pki, algorithm: Algorithm) -> Arc<ServerConfig> {
    let files = pki.issue("server", algorithm, &["site.example"]);
    let certificate = CertificateDer::from_pem_file(&files.certificate).unwrap();
    let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
    Arc::new(config)
}

/// What the server has to say.
fn said(server: &mut ServerConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut bytes).unwrap();
    }
    bytes
}

fn tell(server: &mut ServerConnection, mut bytes: &[u8]) -> Result<(), rustls::Error> {
    while !bytes.is_empty() {
        server.read_tls(&mut bytes).unwrap();
        server.process_new_packets()?;
    }
    Ok(())
}

/// Runs a handshake in which the client gets the server's bytes in pieces of `step_bytes`. Gives what came behind it, too.
fn connect(
    connector: &Connector,
    name: &str,
    server: &mut ServerConnection,
    step_bytes: usize,
) -> Result<(Connected, Vec<u8>), ConnectFailure> {
    let mut outgoing = Vec::new();
    let mut handshake = ClientHandshake::start(connector, name, &mut outgoing)?;
    let mut incoming = Vec::new();
    let mut connected = None;
    for _ in 0..10 {
        // A server that is told of a failure says so, too.
        let _ = tell(server, &std::mem::take(&mut outgoing));
        let bytes = said(server);
        for piece in bytes.chunks(step_bytes) {
            incoming.extend_from_slice(piece);
            if connected.is_some() {
                continue;
            }
            match handshake.advance(&mut incoming, &mut outgoing) {
                Ok(ConnectStep::NeedInput) => {}
                Ok(ConnectStep::Connected(done)) => connected = Some(*done),
                Err(failure) => {
                    assert!(tell(server, &outgoing).is_err(), "the server is told by an alert");
                    return Err(failure);
                }
            }
        }
        if connected.is_some() && outgoing.is_empty() {
            break;
        }
    }
    Ok((connected.expect("the handshake ends"), incoming))
}

/// Data both ways, in TLS 1.3 over the server's key updates.
fn exchange(connected: Connected, server: &mut ServerConnection, mut arrived: Vec<u8>) {
    let version = connected.version;
    let mut channel = connected.into_channel(KeyUpdateRate::new(100)).unwrap();
    for round in 0_u8..3 {
        let mut outgoing = Vec::new();
        channel.prepare_sending(&mut outgoing).unwrap();
        channel
            .sealer()
            .unwrap()
            .seal_append(ContentType::ApplicationData, &[round; 500], &mut outgoing)
            .unwrap();
        tell(server, &outgoing).unwrap();
        let mut request = [0; 500];
        server.reader().read_exact(&mut request).unwrap();
        assert_eq!(request, [round; 500]);
        server.writer().write_all(&vec![round; 40_000]).unwrap();
        arrived.extend(said(server));
        assert_eq!(open_all(&mut channel, &mut arrived), vec![round; 40_000]);
        if version == Version::Tls13 {
            server.refresh_traffic_keys().unwrap();
        }
    }
}

fn policy(suite: CipherSuite, group: Group, resumes: bool) -> TlsPolicy {
    TlsPolicy {
        cipher_suites: vec![suite],
        groups: vec![group],
        session_tickets: resumes,
        ..TlsPolicy::default()
    }
}

#[test]
fn every_combination_is_agreed_on_and_its_keys_work() {
    for algorithm in [Algorithm::EcdsaP256, Algorithm::Rsa] {
        let mut pki = Pki::new();
        let config = server_config(&mut pki, algorithm);
        let trust = Trust::File(pki.path("server-cert.pem"));
        for suite in CipherSuite::ALL {
            let fits = suite.version() == Version::Tls13
                || suite.iana_name().contains("RSA") == (algorithm == Algorithm::Rsa);
            for group in Group::ALL {
                if !fits || (suite.version() == Version::Tls12 && group == Group::X25519MlKem768) {
                    continue;
                }
                let connector = Connector::new(&policy(suite, group, false), &trust).unwrap();
                let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
                let (connected, rest) = connect(&connector, "site.example", &mut server, 1 << 20).unwrap();
                assert_eq!((connected.version, connected.cipher_suite), (suite.version(), suite));
                assert_eq!((connected.group, connected.resumed), (Some(group), false));
                exchange(connected, &mut server, rest);
            }
        }
    }
}

#[test]
fn bytes_may_arrive_in_any_pieces() {
    let mut pki = Pki::new();
    let config = server_config(&mut pki, Algorithm::EcdsaP256);
    for suite in CipherSuite::ALL.into_iter().filter(|suite| suite.iana_name().contains("AES_128")) {
        if suite.iana_name().contains("RSA") {
            continue;
        }
        for step_bytes in [1, 2, 3, 5, 7, 64, 1000] {
            let connector = Connector::new(&policy(suite, Group::X25519, true), &Trust::Anyone).unwrap();
            let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
            let (connected, rest) = connect(&connector, "site.example", &mut server, step_bytes).unwrap();
            exchange(connected, &mut server, rest);
        }
    }
}

#[test]
fn sessions_are_resumed_with_the_tickets_that_came_behind_the_handshake() {
    let mut pki = Pki::new();
    let config = server_config(&mut pki, Algorithm::EcdsaP256);
    for suite in CipherSuite::ALL.into_iter().filter(|suite| suite.iana_name().contains("AES_256")) {
        if suite.iana_name().contains("RSA") {
            continue;
        }
        for resumes in [true, false] {
            let connector = Connector::new(&policy(suite, Group::X25519, resumes), &Trust::Anyone).unwrap();
            for round in 0..3 {
                let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
                let (connected, rest) = connect(&connector, "site.example", &mut server, 1 << 20).unwrap();
                assert_eq!(connected.resumed, resumes && round > 0, "{suite:?}, round {round}");
                exchange(connected, &mut server, rest);
            }
        }
    }
}

#[test]
fn a_certificate_is_trusted_for_its_name_and_by_its_authority() {
    let mut pki = Pki::new();
    let config = server_config(&mut pki, Algorithm::EcdsaP256);
    let own = Trust::File(pki.path("server-cert.pem"));
    pki.issue("other", Algorithm::EcdsaP256, &["other.example"]);
    let other = Trust::File(pki.path("other-cert.pem"));
    for (trust, name, is_fine) in [
        (&own, "site.example", true),
        (&own, "another.example", false),
        (&own, "192.0.2.1", false),
        (&other, "site.example", false),
        (&Trust::Anyone, "another.example", true),
        (&Trust::Anyone, "192.0.2.1", true),
    ] {
        let connector = Connector::new(&TlsPolicy::default(), trust).unwrap();
        let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
        let result = connect(&connector, name, &mut server, 1 << 20);
        assert_eq!(result.is_ok(), is_fine, "{trust:?} {name}");
        if let Err(failure) = result {
            assert!(failure.is_about_trust(), "{failure}");
        }
    }
    assert!(Connector::new(&TlsPolicy::default(), &Trust::File(pki.path("missing.pem"))).is_err());
    assert!(Connector::new(&TlsPolicy::default(), &Trust::File(pki.path("server-key.pem"))).is_err());
}

/// The server's proof that it holds its key is looked at even where any certificate is taken.
#[test]
fn a_forged_handshake_is_refused() {
    let mut pki = Pki::new();
    let config = server_config(&mut pki, Algorithm::EcdsaP256);
    let suite = CipherSuite::named("ECDHE-ECDSA-AES128-GCM-SHA256").unwrap();
    let connector = Connector::new(&policy(suite, Group::X25519, false), &Trust::Anyone).unwrap();
    let mut server = ServerConnection::new(config).unwrap();
    let mut outgoing = Vec::new();
    let mut handshake = ClientHandshake::start(&connector, "site.example", &mut outgoing).unwrap();
    tell(&mut server, &outgoing).unwrap();
    // TLS 1.2 sends it in the clear; before the ServerHelloDone of four bytes stands the signature.
    let mut flight = said(&mut server);
    let at = flight.len() - 20;
    flight[at] ^= 1;
    outgoing.clear();
    let failure = handshake.advance(&mut flight, &mut outgoing).unwrap_err();
    assert!(
        ["certificate", "misbehaved", "malformed"].contains(&failure.kind()),
        "{}: {failure}",
        failure.kind()
    );
    assert_eq!((outgoing[0], outgoing.len()), (21, 7), "an alert");
    assert!(handshake.advance(&mut flight, &mut outgoing).is_err(), "it is over");
}

#[test]
fn what_is_no_tls_is_said_to_be_none() {
    let connector = Connector::new(&TlsPolicy::default(), &Trust::Anyone).unwrap();
    for (answer, kind) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "not TLS"),
        (b"\x16\x03\x03\xff\xff", "malformed"),
        (b"\x16\x03\x03\x00\x04\x63\x00\x00\x00", "misbehaved"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "alert"),
    ] {
        let mut handshake = ClientHandshake::start(&connector, "h", &mut Vec::new()).unwrap();
        let failure = handshake.advance(&mut answer.to_vec(), &mut Vec::new()).unwrap_err();
        assert_eq!(failure.kind(), kind, "{failure}");
    }
    let mut handshake = ClientHandshake::start(&connector, "h", &mut Vec::new()).unwrap();
    let mut endless = Vec::new();
    // Fragments of a message that never ends, so small that their headers reach our limit before rustls' own.
    let failure = (0..20_000).find_map(|_| {
        endless.extend(b"\x16\x03\x03\x00\x04\x02\x00\xff\xff");
        handshake.advance(&mut endless, &mut Vec::new()).err()
    });
    assert_eq!(failure.expect("a limit").kind(), "too large");
    assert!(endless.len() < HANDSHAKE_LIMIT_BYTES + 100, "{}", endless.len());
    assert!(ClientHandshake::start(&connector, "no name", &mut Vec::new()).is_err());
}
