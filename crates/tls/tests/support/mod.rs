//! What the tests share: certificates of every kind, an independent client (rustls' buffered API), and the record
//! layer at our end, so that the keys that were extracted prove themselves on real records.

// Each test binary uses some of it.
#![allow(dead_code, unreachable_pub)]

use linerate_record::{
    Channel, ContentType, Event, HEADER_BYTES, KeySource, KeyUpdateRate, RecordLimit, Version,
};
use linerate_tls::{
    Acceptor, AcceptorBuilder, CertificateFiles, Established, Handshake, HandshakeFailure, KeySchedule,
    SiteCertificates, Step, TlsPolicy,
};
use rcgen::{
    CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, SupportedCipherSuite,
    crypto::{SupportedKxGroup, aws_lc_rs},
    pki_types::{CertificateDer, ServerName},
};
use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

/// Certificates of every algorithm, in a directory that goes when the test ends.
pub struct Pki {
    pub directory: tempfile::TempDir,
    pub roots: RootCertStore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    EcdsaP256,
    EcdsaP384,
    Ed25519,
    Rsa,
}

impl Algorithm {
    pub const ALL: [Self; 4] = [Self::EcdsaP256, Self::EcdsaP384, Self::Ed25519, Self::Rsa];

    /// RSA keys take long to make: one does for all tests of a binary.
    fn key(self) -> KeyPair {
        static RSA: OnceLock<String> = OnceLock::new();
        match self {
            Self::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(),
            Self::EcdsaP384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap(),
            Self::Ed25519 => KeyPair::generate_for(&PKCS_ED25519).unwrap(),
            Self::Rsa => {
                let pem =
                    RSA.get_or_init(|| KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap().serialize_pem());
                KeyPair::from_pem(pem).unwrap()
            }
        }
    }
}

impl Pki {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), roots: RootCertStore::empty() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A self-signed certificate for `names` in `LABEL-cert.pem` and `LABEL-key.pem`, which the client trusts.
    pub fn issue(&mut self, label: &str, algorithm: Algorithm, names: &[&str]) -> CertificateFiles {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        self.issue_with(label, algorithm, CertificateParams::new(names).unwrap())
    }

    pub fn issue_with(
        &mut self,
        label: &str,
        algorithm: Algorithm,
        params: CertificateParams,
    ) -> CertificateFiles {
        let key = algorithm.key();
        let certificate = params.self_signed(&key).unwrap();
        self.roots.add(certificate.der().clone()).unwrap();
        let files = CertificateFiles {
            certificate: self.path(&format!("{label}-cert.pem")),
            key: self.path(&format!("{label}-key.pem")),
        };
        std::fs::write(&files.certificate, certificate.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }

    pub fn client(&self) -> ClientBuilder {
        ClientBuilder {
            roots: self.roots.clone(),
            versions: vec![&rustls::version::TLS13, &rustls::version::TLS12],
            suites: aws_lc_rs::ALL_CIPHER_SUITES.to_vec(),
            groups: aws_lc_rs::ALL_KX_GROUPS.to_vec(),
            alpn: vec![b"http/1.1".to_vec()],
        }
    }
}

/// An independent client, offering all it can unless told otherwise.
pub struct ClientBuilder {
    pub roots: RootCertStore,
    pub versions: Vec<&'static rustls::SupportedProtocolVersion>,
    pub suites: Vec<SupportedCipherSuite>,
    pub groups: Vec<&'static dyn SupportedKxGroup>,
    pub alpn: Vec<Vec<u8>>,
}

impl ClientBuilder {
    pub fn config(self) -> ClientConfig {
        let provider = rustls::crypto::CryptoProvider {
            cipher_suites: self.suites,
            kx_groups: self.groups,
            ..aws_lc_rs::default_provider()
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.roots)
            .with_no_client_auth();
        config.alpn_protocols = self.alpn;
        config
    }

    pub fn connect(self, name: &'static str) -> ClientConnection {
        connect(&Arc::new(self.config()), name)
    }
}

pub fn connect(config: &Arc<ClientConfig>, name: &'static str) -> ClientConnection {
    ClientConnection::new(Arc::clone(config), ServerName::try_from(name).unwrap()).unwrap()
}

pub fn one_site(certificates: Vec<CertificateFiles>) -> Vec<SiteCertificates> {
    vec![SiteCertificates { names: Vec::new(), certificates }]
}

pub fn acceptor(policy: TlsPolicy, sites: Vec<SiteCertificates>) -> Arc<Acceptor> {
    Arc::new(AcceptorBuilder::new(policy, sites).build().unwrap())
}

/// All that the client has to say now.
pub fn written(client: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// Lets the client read it all.
pub fn deliver(client: &mut ClientConnection, mut bytes: &[u8]) -> Result<(), rustls::Error> {
    while !bytes.is_empty() {
        client.read_tls(&mut bytes).unwrap();
        client.process_new_packets()?;
    }
    Ok(())
}

/// Runs a handshake; gives what is left of the client's bytes, too.
pub fn run(
    acceptor: &Arc<Acceptor>,
    client: &mut ClientConnection,
) -> Result<(Box<Established>, Vec<u8>), HandshakeFailure> {
    let mut handshake = Handshake::new(acceptor);
    let mut incoming = Vec::new();
    for _ in 0..10 {
        incoming.extend(written(client));
        let mut outgoing = Vec::new();
        let step = handshake.advance(&mut incoming, &mut outgoing);
        // The client may refuse what we send; then its alert is what it has to say next.
        let _ = deliver(client, &outgoing);
        match step? {
            Step::NeedInput => {}
            Step::Established(established) => return Ok((established, incoming)),
        }
    }
    panic!("the handshake does not end");
}

/// The record layer on what the handshake left.
pub fn channel(established: Established) -> Channel<KeySchedule> {
    let limit = RecordLimit::of(established.cipher_suite.cipher());
    established.into_channel(limit, false, KeyUpdateRate::new(100)).unwrap()
}

/// Opens every record in `bytes`; gives the application data.
pub fn open_all<K: KeySource>(channel: &mut Channel<K>, bytes: &mut Vec<u8>) -> Vec<u8> {
    let mut data = Vec::new();
    while !bytes.is_empty() {
        let length = HEADER_BYTES + usize::from(u16::from_be_bytes([bytes[3], bytes[4]]));
        let mut record: Vec<_> = bytes.drain(..length).collect();
        if let Event::Data(range) = channel.receive(&mut record, 0).unwrap() {
            data.extend(&record[range]);
        }
    }
    data
}

/// Sends data both ways, and in TLS 1.3 over key updates in both directions.
pub fn exchange(established: Established, client: &mut ClientConnection, mut leftover: Vec<u8>) {
    let version = established.version;
    let mut channel = channel(established);
    for round in 0_u8..4 {
        client.writer().write_all(&[round; 3000]).unwrap();
        leftover.extend(written(client));
        assert_eq!(open_all(&mut channel, &mut leftover), [round; 3000]);

        let mut outgoing = Vec::new();
        channel.prepare_sending(&mut outgoing).unwrap();
        let answer = vec![round; 10_000];
        channel.sealer().unwrap().seal_append(ContentType::ApplicationData, &answer, &mut outgoing).unwrap();
        deliver(client, &outgoing).unwrap();
        let mut received = vec![0; answer.len()];
        client.reader().read_exact(&mut received).unwrap();
        assert_eq!(received, answer);
        if version == Version::Tls13 {
            client.refresh_traffic_keys().unwrap();
        }
    }
    if version == Version::Tls13 {
        assert_eq!((channel.key_updates_received(), channel.key_updates_sent()), (3, 3));
    }
}

pub fn der(file: &Path) -> CertificateDer<'static> {
    use rustls::pki_types::pem::PemObject;
    CertificateDer::from_pem_file(file).unwrap()
}
