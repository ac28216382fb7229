//! Sessions are resumed by tickets: on any worker, after a reload, and only for the name they were made for.

mod support;

use linerate_record::Version;
use linerate_tls::{AcceptorBuilder, SiteCertificates, Tickets, TlsPolicy};
use std::sync::Arc;
use support::{Algorithm, Pki, acceptor, connect, exchange, one_site, run};

const VERSIONS: [(Version, &rustls::SupportedProtocolVersion); 2] =
    [(Version::Tls13, &rustls::version::TLS13), (Version::Tls12, &rustls::version::TLS12)];

fn client_of(pki: &Pki, version: &'static rustls::SupportedProtocolVersion) -> Arc<rustls::ClientConfig> {
    let mut builder = pki.client();
    builder.versions = vec![version];
    Arc::new(builder.config())
}

#[test]
fn a_session_is_resumed_again_and_again() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let acceptor = acceptor(TlsPolicy::default(), one_site(vec![files]));
    for (version, offered) in VERSIONS {
        let config = client_of(&pki, offered);
        for round in 0..5 {
            let mut client = connect(&config, "site.example");
            let (established, leftover) = run(&acceptor, &mut client).unwrap();
            assert_eq!(established.version, version);
            assert_eq!(established.resumed, round > 0, "{version:?} {round}");
            assert_eq!(established.server_name.as_deref(), Some("site.example"));
            assert_eq!(established.group.is_none(), version == Version::Tls12 && round > 0);
            exchange(*established, &mut client, leftover);
        }
    }
}

#[test]
fn a_reload_keeps_the_sessions() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let builder = AcceptorBuilder::new(TlsPolicy::default(), one_site(vec![files]));
    let first = Arc::new(builder.build().unwrap());
    let config = client_of(&pki, VERSIONS[0].1);
    let old_config = client_of(&pki, VERSIONS[1].1);
    for config in [&config, &old_config] {
        assert!(!run(&first, &mut connect(config, "site.example")).unwrap().0.resumed);
    }
    // Another certificate, and another acceptor.
    pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let (second, errors) = builder.reload(&first);
    assert!(errors.is_empty());
    for config in [&config, &old_config] {
        assert!(run(&second, &mut connect(config, "site.example")).unwrap().0.resumed);
    }
    // A builder made from another configuration, given the tickets.
    let third = builder.clone().tickets(second.tickets().clone()).build().unwrap();
    assert!(run(&Arc::new(third), &mut connect(&config, "site.example")).unwrap().0.resumed);
    // Other keys: a full handshake, and no harm.
    let stranger = builder.clone().tickets(Tickets::new().unwrap()).build().unwrap();
    let mut trusting = pki.client();
    trusting.roots.add(support::der(&pki.path("own-cert.pem"))).unwrap();
    assert!(run(&Arc::new(stranger), &mut connect(&config, "site.example")).is_err(), "the new certificate");
}

#[test]
fn a_strangers_ticket_leads_to_a_full_handshake() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let first = acceptor(TlsPolicy::default(), one_site(vec![files.clone()]));
    let second = acceptor(TlsPolicy::default(), one_site(vec![files]));
    for (_, offered) in VERSIONS {
        let config = client_of(&pki, offered);
        run(&first, &mut connect(&config, "site.example")).unwrap();
        let mut client = connect(&config, "site.example");
        let (established, leftover) = run(&second, &mut client).unwrap();
        assert!(!established.resumed);
        exchange(*established, &mut client, leftover);
    }
}

#[test]
fn a_session_is_not_resumed_for_another_site() {
    let mut pki = Pki::new();
    let files = pki.issue("both", Algorithm::EcdsaP256, &["a.example", "b.example"]);
    let site =
        |name: &str| SiteCertificates { names: vec![name.to_owned()], certificates: vec![files.clone()] };
    let acceptor = acceptor(TlsPolicy::default(), vec![site("a.example"), site("b.example")]);
    let mut config = pki.client().config();
    // A client that presents the ticket of one name to another.
    config.resumption = rustls::client::Resumption::store(Arc::new(ForgetfulStore(
        rustls::client::ClientSessionMemoryCache::new(8),
    )));
    let config = Arc::new(config);
    run(&acceptor, &mut connect(&config, "a.example")).unwrap();
    let (established, _) = run(&acceptor, &mut connect(&config, "b.example")).unwrap();
    assert!(!established.resumed);
    let (established, _) = run(&acceptor, &mut connect(&config, "b.example")).unwrap();
    assert!(established.resumed, "the store does hand tickets out");
}

#[test]
fn without_tickets_nothing_is_resumed() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let policy = TlsPolicy { session_tickets: false, ..TlsPolicy::default() };
    let acceptor = acceptor(policy, one_site(vec![files]));
    for (_, offered) in VERSIONS {
        let config = client_of(&pki, offered);
        for _ in 0..2 {
            let mut client = connect(&config, "site.example");
            let (established, leftover) = run(&acceptor, &mut client).unwrap();
            assert!(!established.resumed);
            assert_eq!(client.tls13_tickets_received(), 0);
            exchange(*established, &mut client, leftover);
        }
    }
}

#[test]
fn a_client_gets_one_ticket() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let acceptor = acceptor(TlsPolicy::default(), one_site(vec![files]));
    let config = client_of(&pki, VERSIONS[0].1);
    for _ in 0..2 {
        let mut client = connect(&config, "site.example");
        run(&acceptor, &mut client).unwrap();
        assert_eq!(client.tls13_tickets_received(), 1);
    }
}

/// Another server on the same name handed out tickets that allow early data: ours refuses it and goes on.
#[test]
fn early_data_on_a_strangers_ticket_is_passed_over() {
    use rustls::{ServerConfig, ServerConnection, pki_types::PrivateKeyDer, pki_types::pem::PemObject};
    use std::io::Write;

    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let mut generous =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![support::der(&files.certificate)],
                PrivateKeyDer::from_pem_file(&files.key).unwrap(),
            )
            .unwrap();
    generous.max_early_data_size = 4096;
    generous.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut config = pki.client().config();
    config.enable_early_data = true;
    let config = Arc::new(config);

    let mut client = connect(&config, "site.example");
    let mut server = ServerConnection::new(Arc::new(generous)).unwrap();
    for _ in 0..3 {
        server.read_tls(&mut &support::written(&mut client)[..]).ok();
        server.process_new_packets().unwrap();
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        support::deliver(&mut client, &bytes).unwrap();
    }

    let acceptor = acceptor(TlsPolicy::default(), one_site(vec![files]));
    let mut client = connect(&config, "site.example");
    client.early_data().expect("the ticket allows it").write_all(&[7; 1000]).unwrap();
    let (established, leftover) = run(&acceptor, &mut client).unwrap();
    assert!(!client.is_early_data_accepted());
    exchange(*established, &mut client, leftover);
}

/// Forgets the name that a ticket was made for.
#[derive(Debug)]
struct ForgetfulStore(rustls::client::ClientSessionMemoryCache);

fn anybody() -> rustls::pki_types::ServerName<'static> {
    rustls::pki_types::ServerName::try_from("anybody").unwrap()
}

impl rustls::client::ClientSessionStore for ForgetfulStore {
    fn set_kx_hint(&self, _: rustls::pki_types::ServerName<'static>, group: rustls::NamedGroup) {
        self.0.set_kx_hint(anybody(), group);
    }

    fn kx_hint(&self, _: &rustls::pki_types::ServerName<'_>) -> Option<rustls::NamedGroup> {
        self.0.kx_hint(&anybody())
    }

    fn set_tls12_session(
        &self,
        _: rustls::pki_types::ServerName<'static>,
        value: rustls::client::Tls12ClientSessionValue,
    ) {
        self.0.set_tls12_session(anybody(), value);
    }

    fn tls12_session(
        &self,
        _: &rustls::pki_types::ServerName<'_>,
    ) -> Option<rustls::client::Tls12ClientSessionValue> {
        self.0.tls12_session(&anybody())
    }

    fn remove_tls12_session(&self, _: &rustls::pki_types::ServerName<'static>) {
        self.0.remove_tls12_session(&anybody());
    }

    fn insert_tls13_ticket(
        &self,
        _: rustls::pki_types::ServerName<'static>,
        value: rustls::client::Tls13ClientSessionValue,
    ) {
        self.0.insert_tls13_ticket(anybody(), value);
    }

    fn take_tls13_ticket(
        &self,
        _: &rustls::pki_types::ServerName<'static>,
    ) -> Option<rustls::client::Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(&anybody())
    }
}
