//! Early data that we refuse (RFC 8446 4.2.10): a client brings the ticket of another server of our name, which takes it.

mod support;

use linerate_tls::{
    Acceptor, CertificateFiles, EARLY_DATA_LIMIT_BYTES, FailureKind, Group, Handshake, HandshakeFailure,
    Step, TlsPolicy,
};
use rustls::{
    ClientConfig, ClientConnection, ServerConfig, ServerConnection,
    client::Resumption,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{PrivateKeyDer, pem::PemObject},
    server::ServerSessionMemoryCache,
};
use std::{io::Write, iter::repeat_n, sync::Arc};
use support::{Algorithm, Pki, acceptor, connect, deliver, der, exchange, one_site, run, written};

const NAME: &str = "site.example";

/// The other server and its clients; both servers have the same certificate.
struct World {
    /// Keeps the files.
    _pki: Pki,
    files: CertificateFiles,
    client: ClientConfig,
    other: Arc<ServerConfig>,
}

impl World {
    /// The other server's tickets allow `early_bytes` of early data.
    fn new(early_bytes: u32) -> Self {
        let mut pki = Pki::new();
        let files = pki.issue("own", Algorithm::EcdsaP256, &[NAME]);
        let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
        // The suite that our servers prefer. After a HelloRetryRequest for one with another hash clients (OpenSSL's and
        // rustls') withdraw the ticket, and rustls refuses that: RFC 8446 4.1.4 can be read in two ways there.
        let provider = CryptoProvider {
            cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
            ..aws_lc_rs::default_provider()
        };
        let mut other = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![der(&files.certificate)], key)
            .unwrap();
        other.alpn_protocols = vec![b"http/1.1".to_vec()];
        other.max_early_data_size = early_bytes;
        other.session_storage = ServerSessionMemoryCache::new(8);

        let mut builder = pki.client();
        builder.versions = vec![&rustls::version::TLS13];
        let mut client = builder.config();
        client.enable_early_data = true;
        Self { _pki: pki, files, client, other: Arc::new(other) }
    }

    /// A server of ours that takes the client's first group, and one that asks for another (HelloRetryRequest).
    fn servers(&self) -> [Arc<Acceptor>; 2] {
        let sites = || one_site(vec![self.files.clone()]);
        let other_group = TlsPolicy { groups: vec![Group::Secp384r1], ..TlsPolicy::default() };
        [acceptor(TlsPolicy::default(), sites()), acceptor(other_group, sites())]
    }

    /// A client's settings, with no ticket.
    fn config(&self) -> Arc<ClientConfig> {
        let mut config = self.client.clone();
        config.resumption = Resumption::in_memory_sessions(8);
        Arc::new(config)
    }

    /// A client that was at the other server, and has said its ClientHello and then early data in records of these
    /// lengths.
    fn eager(&self, records_bytes: impl IntoIterator<Item = usize>) -> ClientConnection {
        let config = self.config();
        take_tickets(&mut connect(&config, NAME), &self.other);
        let mut client = connect(&config, NAME);
        client.set_buffer_limit(None);
        for record_bytes in records_bytes {
            let mut early = client.early_data().expect("the ticket allows early data");
            assert_eq!(
                early.write(&vec![b'e'; record_bytes]).unwrap(),
                record_bytes,
                "the ticket allows less"
            );
        }
        client
    }
}

/// A whole handshake with the other server, whose tickets come at the end.
fn take_tickets(client: &mut ClientConnection, other: &Arc<ServerConfig>) {
    let mut server = ServerConnection::new(Arc::clone(other)).unwrap();
    while client.is_handshaking() || server.is_handshaking() || server.wants_write() {
        let said = written(client);
        let mut said = said.as_slice();
        while !said.is_empty() {
            server.read_tls(&mut said).unwrap();
            server.process_new_packets().unwrap();
        }
        let mut answer = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut answer).unwrap();
        }
        deliver(client, &answer).unwrap();
    }
}

#[test]
fn refused_early_data_is_skipped_whatever_its_records() {
    let world = World::new(16 * 1024);
    for (server, acceptor) in world.servers().iter().enumerate() {
        for (count, record_bytes) in
            [(0, 0), (1, 1), (5, 1000), (8, 400), (32, 30), (1, 16_384), (2, 8192), (16, 1024), (2730, 6)]
        {
            let mut client = world.eager(repeat_n(record_bytes, count));
            let (established, leftover) = run(acceptor, &mut client).unwrap_or_else(|failure| {
                panic!("server {server}, {count} records of {record_bytes} bytes: {failure}")
            });
            assert!(!client.is_early_data_accepted());
            exchange(*established, &mut client, leftover);
        }
    }
}

/// A part of a message is no early data: the client's Finished comes in two records.
#[test]
fn refused_early_data_may_come_byte_by_byte_and_finished_in_parts() {
    let mut world = World::new(16 * 1024);
    world.client.max_fragment_size = Some(32);
    for acceptor in world.servers() {
        let mut client = world.eager([1, 700, 3000, 30]);
        let mut handshake = Handshake::new(&acceptor);
        let mut incoming = Vec::new();
        let mut established = None;
        while established.is_none() {
            for byte in written(&mut client) {
                incoming.push(byte);
                let mut outgoing = Vec::new();
                if let Step::Established(done) = handshake.advance(&mut incoming, &mut outgoing).unwrap() {
                    established = Some(done);
                }
                deliver(&mut client, &outgoing).unwrap();
            }
        }
        exchange(*established.unwrap(), &mut client, incoming);
    }
}

#[test]
fn early_data_without_end_is_cut_off() {
    let world = World::new(1 << 20);
    for (acceptor, answered_by) in
        world.servers().iter().zip([FailureKind::BadRecordMac, FailureKind::Misbehaved])
    {
        let limit_bytes = EARLY_DATA_LIMIT_BYTES as usize;
        let whole_records = limit_bytes / (16_384 + 17);
        let mut client = world.eager(repeat_n(16_384, whole_records));
        run(acceptor, &mut client).expect("what is within the limit is skipped");

        let mut client = world.eager(repeat_n(16_384, whole_records + 1));
        let failure = run(acceptor, &mut client).expect_err("one record more");
        assert_eq!(failure.kind(), answered_by, "{failure}");
        let refused = deliver(&mut client, &[]).and(client.process_new_packets().map(|_| ()));
        assert!(refused.is_err(), "the client is told by an alert");
    }
}

/// Records too short to be any cost rustls nothing, but they cost us their headers.
#[test]
fn empty_early_data_without_end_is_cut_off() {
    let world = World::new(16 * 1024);
    for acceptor in world.servers() {
        let mut client = world.eager([100]);
        let mut handshake = Handshake::new(&acceptor);
        let mut incoming = written(&mut client);
        incoming.extend([23, 3, 3, 0, 0].repeat(100_000));
        let failure: HandshakeFailure =
            handshake.advance(&mut incoming, &mut Vec::new()).expect_err("it must be cut off");
        assert!(matches!(failure.kind(), FailureKind::TooLarge | FailureKind::Misbehaved), "{failure}");
    }
}

#[test]
fn our_tickets_allow_no_early_data() {
    let world = World::new(16 * 1024);
    for session_tickets in [true, false] {
        let policy = TlsPolicy { session_tickets, ..TlsPolicy::default() };
        let acceptor = acceptor(policy, one_site(vec![world.files.clone()]));
        let config = world.config();
        let mut first = connect(&config, NAME);
        let (established, leftover) = run(&acceptor, &mut first).unwrap();
        exchange(*established, &mut first, leftover);
        let mut second = connect(&config, NAME);
        assert!(second.early_data().is_none());
        let (established, _) = run(&acceptor, &mut second).unwrap();
        assert_eq!(established.resumed, session_tickets);
    }
}

/// What the client says early is refused, what it says then is served.
#[test]
fn refused_early_data_reaches_nobody() {
    let world = World::new(16 * 1024);
    let [acceptor, _] = world.servers();
    let mut client = world.eager([11]);
    let (established, mut leftover) = run(&acceptor, &mut client).unwrap();
    assert!(!established.resumed && leftover.is_empty());
    client.writer().write_all(b"what is asked again").unwrap();
    leftover.extend(written(&mut client));
    let mut channel = support::channel(*established);
    assert_eq!(support::open_all(&mut channel, &mut leftover), b"what is asked again");
}
