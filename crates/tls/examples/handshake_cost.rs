//! What a handshake costs the server: time spent in this crate alone, by certificate, group and tickets, against a
//! client in the same thread whose time is not counted. It is the clock's time, so run it pinned on an idle core.
//!
//! `cargo run --release -p linerate-tls --example handshake_cost [rounds [part of a label]]`
//!
//! Each line is the median over the rounds; the kinds take turns, so that a slow moment of the machine hits all.

use linerate_tls::{
    Acceptor, AcceptorBuilder, CertificateFiles, Group, Handshake, SiteCertificates, Step, TlsPolicy,
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, crypto::aws_lc_rs, pki_types::ServerName,
    pki_types::pem::PemObject,
};
use std::{
    error::Error,
    io::Write,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

struct Kind {
    label: String,
    acceptor: Arc<Acceptor>,
    client: Arc<ClientConfig>,
    samples: Vec<Duration>,
    written_bytes: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(2000), |count| count.parse())?;
    let directory = std::env::temp_dir().join(format!("linerate-handshake-cost-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let result = measure(&directory, rounds);
    std::fs::remove_dir_all(&directory)?;
    result
}

fn measure(directory: &Path, rounds: usize) -> Result<(), Box<dyn Error>> {
    let ecdsa = issue(directory, "ECDSA P-256", &rcgen::PKCS_ECDSA_P256_SHA256)?;
    let rsa = issue(directory, "RSA-2048", &rcgen::PKCS_RSA_SHA256)?;
    let mut kinds = Vec::new();
    for (certificate, files) in [("ECDSA P-256", &ecdsa), ("RSA-2048", &rsa)] {
        for group in [Group::X25519, Group::X25519MlKem768, Group::Secp256r1] {
            kinds.push(kind(
                format!("1.3 full    {certificate:<12}{group:?}"),
                files,
                group,
                true,
                Session::Full,
            )?);
        }
    }
    for group in [Group::X25519, Group::X25519MlKem768] {
        kinds.push(kind(
            format!("1.3 full    {:<12}{group:?}, no ticket", "ECDSA P-256"),
            &ecdsa,
            group,
            false,
            Session::Full,
        )?);
        kinds.push(kind(
            format!("1.3 resumed {:<12}{group:?}", "ECDSA P-256"),
            &ecdsa,
            group,
            true,
            Session::Resumed,
        )?);
    }
    kinds.push(kind(
        format!("1.2 full    {:<12}X25519", "ECDSA P-256"),
        &ecdsa,
        Group::X25519,
        true,
        Session::Tls12,
    )?);

    if let Some(part) = std::env::args().nth(2) {
        kinds.retain(|kind| kind.label.contains(&part));
    }
    for _ in 0..rounds {
        for kind in &mut kinds {
            let (elapsed, written_bytes) = handshake(&kind.acceptor, &kind.client)?;
            kind.samples.push(elapsed);
            kind.written_bytes = written_bytes;
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:<52}{:>10}{:>10}{:>10}{:>12}",
        "server side of a handshake", "median µs", "p10", "p90", "bytes sent"
    )?;
    for mut kind in kinds {
        kind.samples.sort_unstable();
        let at = |share: usize| kind.samples[kind.samples.len() * share / 100].as_secs_f64() * 1e6;
        writeln!(
            out,
            "{:<52}{:>10.1}{:>10.1}{:>10.1}{:>12}",
            kind.label,
            at(50),
            at(10),
            at(90),
            kind.written_bytes
        )?;
    }
    Ok(())
}

#[derive(PartialEq)]
enum Session {
    Full,
    Resumed,
    Tls12,
}

fn kind(
    label: String,
    files: &CertificateFiles,
    group: Group,
    session_tickets: bool,
    session: Session,
) -> Result<Kind, Box<dyn Error>> {
    let policy = TlsPolicy { groups: vec![group], session_tickets, ..TlsPolicy::default() };
    let sites = vec![SiteCertificates { names: Vec::new(), certificates: vec![files.clone()] }];
    let acceptor = AcceptorBuilder::new(policy, sites).build().map_err(|errors| format!("{errors:?}"))?;

    let mut roots = RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_file(&files.certificate)?)?;
    let mut provider = aws_lc_rs::default_provider();
    // The client sends the share that the server takes.
    let wanted = format!("{group:?}").to_lowercase();
    provider.kx_groups.retain(|known| format!("{:?}", known.name()).to_lowercase() == wanted);
    let versions: &[_] =
        if session == Session::Tls12 { &[&rustls::version::TLS12] } else { &[&rustls::version::TLS13] };
    let mut client = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    if session != Session::Resumed {
        client.resumption = rustls::client::Resumption::disabled();
    }
    Ok(Kind {
        label,
        acceptor: Arc::new(acceptor),
        client: Arc::new(client),
        samples: Vec::new(),
        written_bytes: 0,
    })
}

/// Runs one; gives the time spent on the server's side and the bytes it wrote.
fn handshake(
    acceptor: &Arc<Acceptor>,
    config: &Arc<ClientConfig>,
) -> Result<(Duration, usize), Box<dyn Error>> {
    let mut client = ClientConnection::new(Arc::clone(config), ServerName::try_from("localhost")?)?;
    let mut incoming = Vec::with_capacity(16 * 1024);
    let mut outgoing = Vec::with_capacity(16 * 1024);
    let mut elapsed = Duration::ZERO;
    let mut written_bytes = 0;
    let begin = Instant::now();
    let mut handshake = Handshake::new(acceptor);
    elapsed += begin.elapsed();
    loop {
        while client.wants_write() {
            client.write_tls(&mut incoming)?;
        }
        let begin = Instant::now();
        let step = handshake.advance(&mut incoming, &mut outgoing)?;
        elapsed += begin.elapsed();
        written_bytes += outgoing.len();
        let mut unread = &outgoing[..];
        while !unread.is_empty() {
            client.read_tls(&mut unread)?;
            client.process_new_packets()?;
        }
        outgoing.clear();
        if let Step::Established(established) = step {
            let begin = Instant::now();
            drop(established);
            return Ok((elapsed + begin.elapsed(), written_bytes));
        }
    }
}

fn issue(
    directory: &Path,
    label: &str,
    algorithm: &'static rcgen::SignatureAlgorithm,
) -> Result<CertificateFiles, Box<dyn Error>> {
    let key = rcgen::KeyPair::generate_for(algorithm)?;
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()])?.self_signed(&key)?;
    let files = CertificateFiles {
        certificate: directory.join(format!("{label}-cert.pem")),
        key: directory.join(format!("{label}-key.pem")),
    };
    std::fs::write(&files.certificate, certificate.pem())?;
    std::fs::write(&files.key, key.serialize_pem())?;
    Ok(files)
}
