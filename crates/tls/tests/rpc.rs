//! RPC-with-TLS: the version, the application protocol, no tickets, and what a client's certificate is worth.

mod support;

use linerate_record::Version;
use linerate_tls::{Acceptor, AcceptorBuilder, CertificateFiles, ClientIdentity, FailureKind, TlsPolicy};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::{fs, path::PathBuf, sync::Arc};
use support::{Algorithm, Pki, connect, run};

/// Shows a certificate and its key.
type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate with these names, or with a common name alone.
    fn issue(&self, names: &[&str], common_name: &str) -> Shown {
        let mut params =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }
}

fn builder(files: &CertificateFiles, clients: Option<PathBuf>) -> AcceptorBuilder {
    AcceptorBuilder::rpc(TlsPolicy::default(), vec![files.clone()], clients)
}

fn identity(acceptor: &Arc<Acceptor>, pki: &Pki, shown: Option<Shown>) -> ClientIdentity {
    let mut config = pki.client().config();
    config.alpn_protocols = vec![b"sunrpc".to_vec()];
    if let Some((chain, key)) = shown {
        let roots = pki.roots.clone();
        config = rustls::ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .unwrap();
    }
    let mut client = connect(&Arc::new(config), "files.example");
    let (established, _) = run(acceptor, &mut client).unwrap();
    assert!(!client.is_handshaking(), "the handshake is no place to refuse anybody");
    established.client
}

#[test]
fn only_tls_13_is_spoken_with_sunrpc_or_without_a_protocol_and_no_ticket_is_sent() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["files.example"]);
    let acceptor = Arc::new(builder(&files, None).build().unwrap());
    for (offered, agreed) in [
        (vec![b"sunrpc".to_vec()], Some("sunrpc")),
        (Vec::new(), None),
        (vec![b"h2".to_vec(), b"sunrpc".to_vec()], Some("sunrpc")),
    ] {
        let mut client = pki.client();
        client.alpn = offered;
        let mut client = client.connect("files.example");
        let (established, leftover) = run(&acceptor, &mut client).unwrap();
        assert_eq!((established.application_protocol, established.version), (agreed, Version::Tls13));
        assert_eq!(established.client, ClientIdentity::Unknown);
        assert_eq!((client.tls13_tickets_received(), leftover.len()), (0, 0));
    }
    let mut http = pki.client().connect("files.example");
    assert_eq!(run(&acceptor, &mut http).unwrap_err().kind(), FailureKind::NoSharedApplicationProtocol);
    let mut old = pki.client();
    (old.versions, old.alpn) = (vec![&rustls::version::TLS12], Vec::new());
    assert_eq!(
        run(&acceptor, &mut old.connect("files.example")).unwrap_err().kind(),
        FailureKind::NoSharedVersion
    );
}

#[test]
fn a_clients_certificate_is_judged_behind_the_handshake() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["files.example"]);
    let (ours, theirs) = (Authority::new("Ours"), Authority::new("Theirs"));
    let authorities = pki.path("clients.pem");
    fs::write(&authorities, ours.0.pem()).unwrap();
    let acceptor = Arc::new(builder(&files, Some(authorities.clone())).build().unwrap());
    let certified = |names: &[&str]| ClientIdentity::Certified {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let of = |shown| identity(&acceptor, &pki, shown);
    assert_eq!(of(None), ClientIdentity::Unknown);
    assert_eq!(
        of(Some(ours.issue(&["a.example", "192.0.2.1"], "cn"))),
        certified(&["a.example", "192.0.2.1"])
    );
    assert_eq!(of(Some(ours.issue(&[], "just a name"))), certified(&["just a name"]));
    let ClientIdentity::Refused { reason } = of(Some(theirs.issue(&["a.example"], "cn"))) else {
        panic!("an authority that nobody named")
    };
    assert!(reason.contains("UnknownIssuer"), "{reason}");

    // A client that was asked proves that it holds the key.
    let (chain, _) = ours.issue(&["a.example"], "cn");
    let (_, other_key) = ours.issue(&["a.example"], "cn");
    let signing = rustls::crypto::aws_lc_rs::sign::any_supported_type(&other_key).unwrap();
    let resolver =
        Arc::new(rustls::sign::SingleCertAndKey::from(rustls::sign::CertifiedKey::new(chain, signing)));
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(pki.roots.clone())
        .with_client_cert_resolver(resolver);
    let mut client = connect(&Arc::new(config), "files.example");
    assert!(run(&acceptor, &mut client).is_err());
}

#[test]
fn authorities_that_do_not_load_are_kept_at_a_reload_and_refused_at_a_start() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["files.example"]);
    let ours = Authority::new("Ours");
    let authorities = pki.path("clients.pem");
    fs::write(&authorities, ours.0.pem()).unwrap();
    let builder = builder(&files, Some(authorities.clone()));
    assert!(builder.files().any(|file| file == authorities), "it is watched");
    let first = Arc::new(builder.build().unwrap());
    fs::write(&authorities, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    assert!(builder.build().is_err());
    let (second, errors) = builder.reload(&first);
    assert_eq!(errors.len(), 1);
    assert!(matches!(
        identity(&second, &pki, Some(ours.issue(&["a.example"], "cn"))),
        ClientIdentity::Certified { .. }
    ));
    // They were not asked for before: there is nothing to keep.
    let without = Arc::new(AcceptorBuilder::rpc(TlsPolicy::default(), vec![files], None).build().unwrap());
    let (kept, errors) = builder.reload(&without);
    assert!(Arc::ptr_eq(&kept, &without) && errors.len() == 1);
}
