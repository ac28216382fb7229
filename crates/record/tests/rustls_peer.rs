//! The record layer with rustls at the other end: every suite and version, both directions, lengths around every
//! boundary, key updates started by either side.

use linerate_record::{
    Channel, Cipher, ContentType, Event, KeySource, KeyUpdateRate, Opener, RecordError, RecordHeader,
    RecordLimit, Sealer, TrafficKey, Version,
};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ConnectionTrafficSecrets, KeyLog, ProtocolVersion,
    ServerConfig, ServerConnection, crypto::aws_lc_rs,
};
use std::{
    collections::HashMap,
    io::{Read, Write},
    sync::{Arc, Mutex},
};

/// The traffic secrets that rustls logs, from which the next generations are derived here, independently of the
/// library: RFC 8446 7.1 to 7.3.
#[derive(Debug, Default)]
struct Secrets(Mutex<HashMap<String, Vec<u8>>>);

impl KeyLog for Secrets {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        self.0.lock().unwrap().insert(label.to_owned(), secret.to_vec());
    }
}

fn expand_label(sha384: bool, secret: &[u8], label: &str, length: usize) -> Vec<u8> {
    use ::aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA384, KeyType, Prk};
    struct Length(usize);
    impl KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let algorithm = if sha384 { HKDF_SHA384 } else { HKDF_SHA256 };
    let full = format!("tls13 {label}");
    let [high, low] = (length as u16).to_be_bytes();
    let info = [&[high, low, full.len() as u8][..], full.as_bytes(), &[0]].concat();
    let mut out = vec![0; length];
    Prk::new_less_safe(algorithm, secret).expand(&[&info], Length(length)).unwrap().fill(&mut out).unwrap();
    out
}

struct Schedule {
    cipher: Cipher,
    sending: Vec<u8>,
    receiving: Vec<u8>,
}

impl Schedule {
    fn next(cipher: Cipher, secret: &mut Vec<u8>) -> Result<TrafficKey, RecordError> {
        let sha384 = secret.len() == 48;
        *secret = expand_label(sha384, secret, "traffic upd", secret.len());
        let key = expand_label(sha384, secret, "key", cipher.key_bytes());
        let iv = expand_label(sha384, secret, "iv", 12);
        TrafficKey::new(Version::Tls13, cipher, &key, iv.try_into().unwrap())
    }
}

impl KeySource for Schedule {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        Self::next(self.cipher, &mut self.sending)
    }
    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        Self::next(self.cipher, &mut self.receiving)
    }
}

fn traffic_key(version: Version, secrets: ConnectionTrafficSecrets) -> TrafficKey {
    let (cipher, key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Cipher::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Cipher::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Cipher::ChaCha20Poly1305, key, iv),
        _ => unreachable!("no other suite is offered"),
    };
    TrafficKey::new(version, cipher, key.as_ref(), iv.as_ref().try_into().unwrap()).unwrap()
}

/// A finished handshake: rustls as the client, our channel as the server.
fn connect(suite: CipherSuite, limit: u64) -> (ClientConnection, Channel<Schedule>) {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|offered| offered.suite() == suite);
    let version = match provider.cipher_suites[0].version().version {
        ProtocolVersion::TLSv1_3 => Version::Tls13,
        _ => Version::Tls12,
    };
    let provider = Arc::new(provider);
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let certificate = issued.cert.der().clone();
    let key = rustls_pki_types::PrivateKeyDer::try_from(issued.signing_key.serialize_der()).unwrap();
    let log = Arc::new(Secrets::default());
    let mut server_config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap_or_else(|_| {
            ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_protocol_versions(&[provider.cipher_suites[0].version()])
                .unwrap()
        })
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    server_config.enable_secret_extraction = true;
    server_config.key_log = Arc::clone(&log) as Arc<dyn KeyLog>;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client_config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[provider.cipher_suites[0].version()])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(client_config), "localhost".try_into().unwrap()).unwrap();
    let mut server = ServerConnection::new(Arc::new(server_config)).unwrap();
    while client.is_handshaking() || server.is_handshaking() || server.wants_write() || client.wants_write() {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut wire = &wire[..];
        while !wire.is_empty() {
            server.read_tls(&mut wire).unwrap();
            server.process_new_packets().unwrap();
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut wire = &wire[..];
        while !wire.is_empty() {
            client.read_tls(&mut wire).unwrap();
            client.process_new_packets().unwrap();
        }
    }
    let secrets = server.dangerous_extract_secrets().unwrap();
    let logged = log.0.lock().unwrap();
    let secret = |label: &str| logged.get(label).cloned().unwrap_or_default();
    let (sending, receiving) = (traffic_key(version, secrets.tx.1), traffic_key(version, secrets.rx.1));
    let cipher = sending.cipher();
    let channel = Channel::new(
        Sealer::new(&sending, secrets.tx.0, RecordLimit::of(cipher).lowered_to(limit)).unwrap(),
        Opener::new(&receiving, secrets.rx.0).unwrap(),
        Schedule {
            cipher,
            sending: secret("SERVER_TRAFFIC_SECRET_0"),
            receiving: secret("CLIENT_TRAFFIC_SECRET_0"),
        },
        KeyUpdateRate::new(1000),
    );
    (client, channel)
}

const SUITES: [CipherSuite; 6] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
];

const LENGTHS: [usize; 20] =
    [1, 2, 3, 15, 16, 17, 31, 32, 33, 255, 256, 257, 1459, 4095, 4096, 4097, 16_382, 16_383, 16_384, 9];

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 247) as u8).collect()
}

fn server_to_client(channel: &mut Channel<Schedule>, client: &mut ClientConnection, payload: &[u8]) {
    let mut wire = Vec::new();
    channel.prepare_sending(&mut wire).unwrap();
    channel.sealer().unwrap().seal_append(ContentType::ApplicationData, payload, &mut wire).unwrap();
    let mut wire = &wire[..];
    let mut got = Vec::new();
    while !wire.is_empty() {
        client.read_tls(&mut wire).unwrap();
        client.process_new_packets().unwrap();
        let mut chunk = vec![0; 20_000];
        while let Ok(read) = client.reader().read(&mut chunk) {
            got.extend_from_slice(&chunk[..read]);
        }
    }
    assert!(got == payload, "{} bytes differ", payload.len());
}

fn client_to_server(channel: &mut Channel<Schedule>, client: &mut ClientConnection, payload: &[u8]) {
    client.writer().write_all(payload).unwrap();
    let mut wire = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut wire).unwrap();
    }
    let mut got = Vec::new();
    let mut wire = &mut wire[..];
    while !wire.is_empty() {
        let header = RecordHeader::parse(wire, channel.incoming_layout()).unwrap().unwrap();
        let (record, rest) = wire.split_at_mut(header.record_bytes());
        match channel.receive(record, 0).unwrap() {
            Event::Data(range) => got.extend_from_slice(&record[range]),
            Event::KeyUpdate(_) => {}
            other => panic!("{other:?}"),
        }
        wire = rest;
    }
    assert!(got == payload, "{} bytes differ", payload.len());
}

#[test]
fn every_suite_and_length_in_both_directions() {
    for suite in SUITES {
        let (mut client, mut channel) = connect(suite, u64::MAX);
        for length in LENGTHS {
            server_to_client(&mut channel, &mut client, &text(length));
            client_to_server(&mut channel, &mut client, &text(length));
        }
        client.send_close_notify();
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        assert_eq!(channel.receive(&mut wire, 0).unwrap(), Event::CloseNotify, "{suite:?}");
    }
}

#[test]
fn our_key_updates_are_understood() {
    for suite in &SUITES[..3] {
        let (mut client, mut channel) = connect(*suite, 4);
        for length in LENGTHS {
            server_to_client(&mut channel, &mut client, &text(length));
            client_to_server(&mut channel, &mut client, &text(length));
        }
        assert!(channel.key_updates_sent() >= 9, "{}", channel.key_updates_sent());
    }
}

#[test]
fn the_peers_key_updates_are_understood_and_answered() {
    for suite in &SUITES[..3] {
        let (mut client, mut channel) = connect(*suite, u64::MAX);
        for (round, length) in LENGTHS.into_iter().enumerate() {
            client.refresh_traffic_keys().unwrap();
            client_to_server(&mut channel, &mut client, &text(length));
            server_to_client(&mut channel, &mut client, &text(length));
            assert_eq!(channel.key_updates_received(), round as u64 + 1);
            assert_eq!(channel.key_updates_sent(), round as u64 + 1);
        }
    }
}

#[test]
fn tls12_continues_the_handshakes_nonces() {
    // INV-NONCE-2: the explicit nonce of our first record is not the one of the handshake's Finished.
    let (_client, mut channel) = connect(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, u64::MAX);
    let sealer = channel.sealer().unwrap();
    assert_eq!(sealer.sequence(), 1, "Finished was record 0");
    sealer.seal_append(ContentType::ApplicationData, b"x", &mut Vec::new()).unwrap();
    assert_eq!(sealer.sequence(), 2);
}
