//! Real peers on real sockets: `openssl s_client` and `curl` against a small blocking server, and the development
//! certificate with `curl` against `openssl s_server`. Needs both programs, as the project's tests do.

mod support;

use linerate_record::{Channel, ContentType, Event, HEADER_BYTES};
use linerate_tls::{
    Acceptor, CertificateFiles, Established, Handshake, KeySchedule, Step, TlsPolicy, development_certificate,
};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};
use support::{Algorithm, Pki, acceptor, channel, one_site};

/// What a connection came to: what was agreed, and how many key updates there were.
struct Seen {
    summary: String,
    resumed: bool,
    key_updates: u64,
}

/// Serves connections one after the other: each request is answered with what was agreed.
fn serve(acceptor: Arc<Acceptor>) -> (u16, mpsc::Receiver<Result<Seen, String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, seen) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            if sender.send(serve_one(&acceptor, &mut stream)).is_err() {
                return;
            }
        }
    });
    (port, seen)
}

fn serve_one(acceptor: &Arc<Acceptor>, stream: &mut TcpStream) -> Result<Seen, String> {
    let mut incoming = Vec::new();
    let established = shake_hands(acceptor, stream, &mut incoming)?;
    let summary = format!(
        "{} {} {:?} {:?}",
        established.version.label(),
        established.cipher_suite.openssl_name(),
        established.group,
        established.server_name,
    );
    let resumed = established.resumed;
    let mut channel = channel(established);
    let mut request = Vec::new();
    while take_record(&mut channel, stream, &mut incoming, &mut request) {
        if request.ends_with(b"\r\n\r\n") {
            request.clear();
            let body = format!("{summary}\n");
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let mut outgoing = Vec::new();
            channel.prepare_sending(&mut outgoing).unwrap();
            let sealer = channel.sealer().unwrap();
            sealer.seal_append(ContentType::ApplicationData, response.as_bytes(), &mut outgoing).unwrap();
            stream.write_all(&outgoing).unwrap();
        }
    }
    Ok(Seen { summary, resumed, key_updates: channel.key_updates_received() })
}

fn shake_hands(
    acceptor: &Arc<Acceptor>,
    stream: &mut TcpStream,
    incoming: &mut Vec<u8>,
) -> Result<Established, String> {
    let mut handshake = Handshake::new(acceptor);
    loop {
        read_some(stream, incoming).ok_or("the client went away")?;
        let mut outgoing = Vec::new();
        let step = handshake.advance(incoming, &mut outgoing);
        stream.write_all(&outgoing).map_err(|error| error.to_string())?;
        match step.map_err(|failure| failure.kind().label().to_owned())? {
            Step::NeedInput => {}
            Step::Established(established) => return Ok(*established),
        }
    }
}

fn read_some(stream: &mut TcpStream, incoming: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 16 * 1024];
    let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
    incoming.extend(&buffer[..count]);
    Some(())
}

/// Receives one record; false when the client is done.
fn take_record(
    channel: &mut Channel<KeySchedule>,
    stream: &mut TcpStream,
    incoming: &mut Vec<u8>,
    request: &mut Vec<u8>,
) -> bool {
    let whole = |bytes: &[u8]| {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let length = HEADER_BYTES + usize::from(u16::from_be_bytes([header[3], header[4]]));
        (bytes.len() >= length).then_some(length)
    };
    let length = loop {
        match whole(incoming) {
            Some(length) => break length,
            None if read_some(stream, incoming).is_none() => return false,
            None => {}
        }
    };
    let mut record: Vec<_> = incoming.drain(..length).collect();
    match channel.receive(&mut record, 0).unwrap() {
        Event::Data(range) => request.extend(&record[range]),
        Event::CloseNotify => return false,
        _ => {}
    }
    true
}

fn s_client(port: u16, arguments: &[&str], roots: &Path) -> Child {
    Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-servername", "site.example"])
        .args(["-verify_return_error", "-verify_hostname", "site.example", "-CAfile"])
        .arg(roots)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl must be installed")
}

/// Sends a request, waits until `until` is in the output of `client` or it ends, and lets it go.
fn converse(mut client: Child, lines: &[&str]) -> String {
    let mut input = client.stdin.take().unwrap();
    let mut output = client.stdout.take().unwrap();
    let (sender, chunks) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            let _ = sender.send(String::from_utf8_lossy(&buffer[..count]).into_owned());
        }
    });
    let mut shown = String::new();
    let mut answers = 0;
    for line in lines {
        let is_request = line.ends_with("\n\n");
        // Crlf is what s_client makes of \n with -crlf; a command is a letter at the start of a line.
        let _ = input.write_all(line.as_bytes());
        let _ = input.flush();
        answers += usize::from(is_request);
        let patience =
            Instant::now() + if is_request { Duration::from_secs(10) } else { Duration::from_millis(300) };
        while let Ok(chunk) = chunks.recv_timeout(patience.saturating_duration_since(Instant::now())) {
            shown.push_str(&chunk);
            if is_request && shown.matches("200 OK").count() == answers {
                break;
            }
        }
    }
    drop(input);
    let _ = client.wait();
    while let Ok(chunk) = chunks.recv_timeout(Duration::from_secs(5)) {
        shown.push_str(&chunk);
    }
    shown
}

const REQUEST: &str = "GET / HTTP/1.1\n\n";

fn set_up(algorithm: Algorithm) -> (Pki, CertificateFiles, Arc<Acceptor>) {
    let mut pki = Pki::new();
    let files = pki.issue("own", algorithm, &["site.example"]);
    let acceptor = acceptor(TlsPolicy::default(), one_site(vec![files.clone()]));
    (pki, files, acceptor)
}

#[test]
fn openssl_agrees_on_every_version_suite_and_group() {
    for algorithm in Algorithm::ALL {
        let (_pki, files, acceptor) = set_up(algorithm);
        let (port, seen) = serve(acceptor);
        let tls12 = if algorithm == Algorithm::Rsa { "ECDHE-RSA" } else { "ECDHE-ECDSA" };
        let tls13_cases =
            ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
                .map(|suite| ("-tls1_3", "-ciphersuites", suite.to_owned()));
        let tls12_cases = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"]
            .map(|suite| ("-tls1_2", "-cipher", format!("{tls12}-{suite}")));
        // All of them each time (TLS 1.2 also wants the certificate's curve there); the first is the one to be used.
        let groups = [
            ("X25519:P-256:P-384", "X25519"),
            ("P-256:P-384:X25519", "Secp256r1"),
            ("P-384:X25519:P-256", "Secp384r1"),
        ];
        for (index, (version, flag, suite)) in tls13_cases.iter().chain(&tls12_cases).enumerate() {
            let (offered, group) = groups[index % groups.len()];
            let client =
                s_client(port, &[version, flag, suite, "-groups", offered, "-crlf"], &files.certificate);
            let shown = converse(client, &[REQUEST]);
            assert!(
                shown.contains("Verify return code: 0 (ok)") || shown.contains("Verification: OK"),
                "{shown}"
            );
            let seen =
                seen.recv().unwrap().unwrap_or_else(|label| panic!("{suite} {offered}: {label}\n{shown}"));
            assert!(shown.contains(&seen.summary), "{shown}");
            assert!(seen.summary.contains(suite) && seen.summary.contains(group), "{}", seen.summary);
            assert!(seen.summary.contains("site.example"), "{}", seen.summary);
        }
    }
}

#[test]
fn openssl_updates_its_keys_and_asks_for_ours() {
    let (_pki, files, acceptor) = set_up(Algorithm::EcdsaP256);
    let (port, seen) = serve(acceptor);
    let client = s_client(port, &["-tls1_3", "-crlf"], &files.certificate);
    let shown = converse(client, &[REQUEST, "K\n", REQUEST, "k\n", "K\n", REQUEST]);
    assert_eq!(shown.matches("200 OK").count(), 3, "{shown}");
    assert_eq!(seen.recv().unwrap().unwrap().key_updates, 3);
}

#[test]
fn openssl_resumes_sessions() {
    let (pki, files, acceptor) = set_up(Algorithm::EcdsaP256);
    let (port, seen) = serve(acceptor);
    for version in ["-tls1_3", "-tls1_2"] {
        let session = pki.path("session.pem");
        let session = session.to_str().unwrap();
        for (flag, resumed) in [("-sess_out", false), ("-sess_in", true)] {
            let client = s_client(port, &[version, flag, session, "-crlf"], &files.certificate);
            let shown = converse(client, &[REQUEST]);
            let seen = seen.recv().unwrap().unwrap();
            assert_eq!(seen.resumed, resumed, "{version}: {shown}");
        }
    }
}

#[test]
fn openssl_is_refused_by_the_right_alert() {
    let (_pki, files, acceptor) = set_up(Algorithm::EcdsaP256);
    let (port, seen) = serve(acceptor);
    for (arguments, label, alert) in [
        (&["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"][..], "no_shared_version", "alert protocol version"),
        (
            &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"],
            "no_shared_cipher",
            "alert handshake failure",
        ),
        (&["-groups", "P-521"], "no_shared_group", "alert handshake failure"),
        (&["-alpn", "h2"], "no_application_protocol", "alert no application protocol"),
        (&["-tls1_3", "-sigalgs", "RSA-PSS+SHA256"], "no_shared_signature_scheme", "alert handshake failure"),
    ] {
        let output = s_client(port, arguments, &files.certificate).wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(seen.recv().unwrap().err().as_deref(), Some(label), "{said}");
        assert!(said.contains(alert), "{label}: {said}");
    }
}

fn curl(roots: &Path, arguments: &[&str]) -> Output {
    Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "10", "--noproxy", "*", "--cacert"])
        .arg(roots)
        .args(arguments)
        .output()
        .expect("curl must be installed")
}

#[test]
fn curl_is_served_under_the_development_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let development = development_certificate(directory.path()).unwrap();
    let (port, seen) = serve(acceptor(TlsPolicy::default(), one_site(vec![development.files.clone()])));
    for (host, version) in [("localhost", "--tlsv1.3"), ("127.0.0.1", "--tlsv1.2")] {
        let output =
            curl(&development.files.certificate, &["--ipv4", version, &format!("https://{host}:{port}/")]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("TLSv1.3"));
        assert!(seen.recv().unwrap().is_ok());
    }
}

/// A server of OpenSSL's that can be connected to, and its port.
fn s_server(files: &CertificateFiles, arguments: &[&str]) -> (Child, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Command::new("openssl")
        .args(["s_server", "-quiet", "-accept", &format!("127.0.0.1:{port}"), "-cert"])
        .arg(&files.certificate)
        .arg("-key")
        .arg(&files.key)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl must be installed");
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    (server, port)
}

/// The name had another server before, which takes early data: OpenSSL's clients send it with their ClientHello.
#[test]
fn early_data_that_openssl_sends_is_passed_over() {
    let (pki, files, acceptor) = set_up(Algorithm::EcdsaP256);
    let (port, seen) = serve(acceptor);
    // -rev answers line by line, so that the client waits for the ticket that comes behind the handshake.
    let (mut server, other_port) = s_server(&files, &["-rev", "-max_early_data", "16384"]);
    let (session, early) = (pki.path("session.pem"), pki.path("early"));
    let (session, early) = (session.to_str().unwrap(), early.to_str().unwrap());
    for (early_bytes, fragment_bytes) in [(5000, "1000"), (16_384, "16384"), (16_384, "517")] {
        let first = s_client(other_port, &["-tls1_3", "-sess_out", session], &files.certificate);
        converse(first, &["hello\n"]);
        std::fs::write(early, vec![b'e'; early_bytes]).unwrap();
        let arguments =
            ["-tls1_3", "-sess_in", session, "-early_data", early, "-max_send_frag", fragment_bytes, "-crlf"];
        let shown = converse(s_client(port, &arguments, &files.certificate), &[REQUEST]);
        assert!(shown.contains("Early data was rejected"), "{shown}");
        assert!(shown.contains("200 OK"), "{shown}");
        let seen = seen.recv().unwrap().unwrap_or_else(|label| panic!("{label}: {shown}"));
        assert!(!seen.resumed);
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn the_development_certificate_is_good_for_openssl_too() {
    let directory = tempfile::tempdir().unwrap();
    let development = development_certificate(directory.path()).unwrap();
    let (mut server, port) = s_server(&development.files, &["-www"]);
    let output = curl(&development.files.certificate, &[&format!("https://localhost:{port}/")]);
    let unverified =
        curl(Path::new("/etc/ssl/certs/ca-certificates.crt"), &[&format!("https://localhost:{port}/")]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!unverified.status.success(), "curl does verify");

    // The fingerprint is the one that openssl and browsers show.
    let shown = Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(&development.files.certificate)
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.trim().ends_with(&development.sha256_fingerprint), "{shown}");
}
