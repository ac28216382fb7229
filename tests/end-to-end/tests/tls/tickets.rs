//! Session tickets: shared by all workers, kept over a reload, and off when switched off.

use crate::fixture::Fixture;
use linerate_end_to_end::{ClientSetup, Server, ServerSetup, openssl};
use rustls::{
    HandshakeKind,
    version::{TLS12, TLS13},
};
use std::time::Duration;

/// Enough connections that every worker gets some (SO_REUSEPORT spreads them by a hash).
const CONNECTIONS: usize = 24;

fn two_workers(fixture: &Fixture) -> Server {
    ServerSetup::new()
        .flag(fixture.site.path())
        .flags(["--listen", "127.0.0.1:0", "--workers", "2"])
        .certificate(&fixture.pair)
        .admin()
        .start()
}

/// Connects once, fetches, and says how the handshake went.
fn kind_of_handshake(setup: &ClientSetup, server: &Server, fixture: &Fixture) -> HandshakeKind {
    let mut client = setup.connect(server.address());
    // The ticket of TLS 1.3 comes with the response.
    assert!(client.get("16385.bin").body == fixture.site.bytes("16385.bin"));
    client.connection().handshake_kind().unwrap()
}

#[test]
fn sessions_resume_on_any_worker_and_over_a_reload() {
    let fixture = Fixture::new();
    let server = two_workers(&fixture);
    for version in [&TLS12, &TLS13] {
        let setup = ClientSetup::of_version(&fixture.pair, version).resuming();
        assert_eq!(kind_of_handshake(&setup, &server, &fixture), HandshakeKind::Full);
        for connection in 0..CONNECTIONS {
            if connection == CONNECTIONS / 2 {
                server.reload();
            }
            let kind = kind_of_handshake(&setup, &server, &fixture);
            assert_eq!(kind, HandshakeKind::Resumed, "{version:?}, connection {connection}");
        }
    }
    for version in ["TLSv1.2", "TLSv1.3"] {
        let resumed = format!(r#"version="{version}",result="resumed""#);
        assert_eq!(server.metric("linerate_tls_handshakes_total", &resumed), CONNECTIONS as f64);
    }
}

#[test]
fn a_session_survives_the_certificates_replacement() {
    let fixture = Fixture::new();
    let server = two_workers(&fixture);
    let setup = ClientSetup::of_version(&fixture.pair, &TLS13).resuming();
    assert_eq!(kind_of_handshake(&setup, &server, &fixture), HandshakeKind::Full);
    let _new = linerate_end_to_end::CertificatePair::for_localhost(fixture.keys.path());
    server.reload();
    // The client trusts the old certificate only: without the ticket it could not connect.
    assert_eq!(kind_of_handshake(&setup, &server, &fixture), HandshakeKind::Resumed);
}

#[test]
fn openssl_resumes_both_versions() {
    let fixture = Fixture::new();
    let server = two_workers(&fixture);
    let address = server.address().to_string();
    for version in ["-tls1_2", "-tls1_3"] {
        let session = fixture.keys.path().join(format!("session{version}"));
        let session = session.to_str().unwrap();
        let request = b"GET /1.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let connect = |option: &str| {
            openssl(["s_client", "-connect", &address, "-servername", "localhost", version, option, session])
                .types(Duration::ZERO, request)
                .holds_input_open()
                .run()
                .text()
        };
        let first = connect("-sess_out");
        assert!(first.contains("\nNew, TLSv1"), "{first}");
        let second = connect("-sess_in");
        assert!(second.contains("\nReused, TLSv1"), "{second}");
    }
}

#[test]
fn without_tickets_nothing_resumes() {
    let fixture = Fixture::new();
    let server = fixture.start_with("[tls]\nsession_tickets = false");
    for version in [&TLS12, &TLS13] {
        let setup = ClientSetup::of_version(&fixture.pair, version).resuming();
        for _ in 0..3 {
            assert_eq!(kind_of_handshake(&setup, &server, &fixture), HandshakeKind::Full);
        }
    }
    assert_eq!(server.metric("linerate_tls_handshakes_total", "resumed"), 0.0);
}
