//! However the bytes come, and whatever they are: split anywhere, coalesced, fragmented, oversized, garbage.

mod support;

use linerate_record::Version;
use linerate_tls::{
    Acceptor, FailureKind, HANDSHAKE_LIMIT_BYTES, Handshake, HandshakeFailure, Step, TlsPolicy,
};
use std::{io::Write, sync::Arc};
use support::{Algorithm, Pki, acceptor, channel, deliver, exchange, one_site, open_all, written};

fn set_up() -> (Pki, Arc<Acceptor>) {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let acceptor = acceptor(TlsPolicy::default(), one_site(vec![files]));
    (pki, acceptor)
}

/// Feeds `bytes` to a new handshake, which fails; gives the failure and what was to be sent.
fn refused(acceptor: &Arc<Acceptor>, bytes: &[u8]) -> (HandshakeFailure, Vec<u8>) {
    let mut handshake = Handshake::new(acceptor);
    let (mut incoming, mut outgoing) = (bytes.to_vec(), Vec::new());
    let failure = handshake.advance(&mut incoming, &mut outgoing).expect_err("it must be refused");
    (failure, outgoing)
}

fn alert(description: u8) -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, description]
}

/// The handshake message in plaintext records of at most `fragment_bytes`.
fn fragmented(record: &[u8], fragment_bytes: usize) -> Vec<u8> {
    let fragments = record[5..].chunks(fragment_bytes);
    fragments
        .flat_map(|fragment| {
            let mut record = vec![22, 3, 1];
            record.extend((fragment.len() as u16).to_be_bytes());
            record.extend(fragment);
            record
        })
        .collect()
}

#[test]
fn bytes_may_come_one_at_a_time() {
    let (pki, acceptor) = set_up();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let mut builder = pki.client();
        builder.versions = vec![version];
        let mut client = builder.connect("site.example");
        let mut handshake = Handshake::new(&acceptor);
        let mut incoming = Vec::new();
        let mut established = None;
        while established.is_none() {
            for byte in written(&mut client) {
                assert!(established.is_none(), "nothing is sent after Finished here");
                incoming.push(byte);
                let mut outgoing = Vec::new();
                if let Step::Established(done) = handshake.advance(&mut incoming, &mut outgoing).unwrap() {
                    established = Some(done);
                }
                deliver(&mut client, &outgoing).unwrap();
            }
        }
        assert!(incoming.is_empty());
        exchange(*established.unwrap(), &mut client, incoming);
    }
}

/// Trap: a client that sends Finished, a request, a KeyUpdate that asks for ours, and more, in one segment.
#[test]
fn what_follows_finished_is_left_for_the_record_layer() {
    let (pki, acceptor) = set_up();
    let mut builder = pki.client();
    builder.versions = vec![&rustls::version::TLS13];
    let mut client = builder.connect("site.example");
    let mut handshake = Handshake::new(&acceptor);
    let (mut incoming, mut outgoing) = (written(&mut client), Vec::new());
    assert!(matches!(handshake.advance(&mut incoming, &mut outgoing).unwrap(), Step::NeedInput));
    deliver(&mut client, &outgoing).unwrap();

    client.writer().write_all(b"GET / HTTP/1.1\r\n").unwrap();
    client.refresh_traffic_keys().unwrap();
    client.writer().write_all(b"Host: site.example\r\n\r\n").unwrap();
    incoming.extend(written(&mut client));
    // And a record that is still on its way.
    client.writer().write_all(b"GET /2").unwrap();
    let next = written(&mut client);
    incoming.extend(&next[..10]);

    let mut outgoing = Vec::new();
    let Step::Established(established) = handshake.advance(&mut incoming, &mut outgoing).unwrap() else {
        panic!("Finished was there")
    };
    deliver(&mut client, &outgoing).unwrap();
    assert_eq!(incoming[..3], [23, 3, 3]);
    incoming.extend(&next[10..]);
    let mut channel = channel(*established);
    assert_eq!(open_all(&mut channel, &mut incoming), b"GET / HTTP/1.1\r\nHost: site.example\r\n\r\nGET /2");
    assert_eq!(channel.key_updates_received(), 1);
    let mut outgoing = Vec::new();
    assert!(channel.prepare_sending(&mut outgoing).unwrap(), "the client is owed a key update");
    deliver(&mut client, &outgoing).unwrap();
}

#[test]
fn a_fragmented_client_hello_is_put_together() {
    let (pki, acceptor) = set_up();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        for fragment_bytes in [1, 2, 3, 4, 5, 38, 39, 100, 1000] {
            let mut builder = pki.client();
            builder.versions = vec![version];
            let mut client = builder.connect("site.example");
            let mut incoming = fragmented(&written(&mut client), fragment_bytes);
            let mut handshake = Handshake::new(&acceptor);
            let mut outgoing = Vec::new();
            let step = handshake.advance(&mut incoming, &mut outgoing).unwrap();
            assert!(matches!(step, Step::NeedInput));
            assert!(incoming.is_empty(), "{fragment_bytes}: {} bytes are left", incoming.len());
            assert_eq!(handshake.server_name(), Some("site.example"));
            deliver(&mut client, &outgoing).unwrap();
            incoming = written(&mut client);
            outgoing.clear();
            let Step::Established(established) = handshake.advance(&mut incoming, &mut outgoing).unwrap()
            else {
                panic!("{fragment_bytes}")
            };
            deliver(&mut client, &outgoing).unwrap();
            exchange(*established, &mut client, incoming);
        }
    }
}

#[test]
fn plain_http_is_recognised_and_answered_by_nobody_here() {
    let (_pki, acceptor) = set_up();
    for request in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"HEAD /x", b"PRI * HTTP/2.0\r\n"] {
        let (failure, outgoing) = refused(&acceptor, request);
        assert_eq!(failure.kind(), FailureKind::PlainHttp);
        assert_eq!(failure.kind().label(), "http_on_tls_port");
        assert!(outgoing.is_empty());
        // The same byte by byte: no earlier verdict.
        let mut handshake = Handshake::new(&acceptor);
        let mut incoming = Vec::new();
        let verdict = request.iter().find_map(|byte| {
            incoming.push(*byte);
            handshake.advance(&mut incoming, &mut Vec::new()).err()
        });
        assert_eq!(verdict.unwrap().kind(), FailureKind::PlainHttp);
    }
}

#[test]
fn what_is_not_tls_is_refused_with_an_alert() {
    let (_pki, acceptor) = set_up();
    const UNEXPECTED_MESSAGE: u8 = 10;
    const PROTOCOL_VERSION: u8 = 70;
    const RECORD_OVERFLOW: u8 = 22;
    const DECODE_ERROR: u8 = 50;
    for (bytes, kind, description) in [
        (&b"SSH-2.0-OpenSSH_9\r\n"[..], FailureKind::NotTls, UNEXPECTED_MESSAGE),
        (&[0; 64], FailureKind::NotTls, UNEXPECTED_MESSAGE),
        (&[0xFF; 64], FailureKind::NotTls, UNEXPECTED_MESSAGE),
        (&[23, 3, 3, 0, 1, 0], FailureKind::NotTls, UNEXPECTED_MESSAGE),
        (&[0x80, 0x2E, 1, 0, 2, 0, 0x15], FailureKind::NoSharedVersion, PROTOCOL_VERSION),
        (&[22, 3, 1, 0x40, 0x01, 1], FailureKind::RecordOverflow, RECORD_OVERFLOW),
        (&[22, 3, 1, 0xFF, 0xFF, 1], FailureKind::RecordOverflow, RECORD_OVERFLOW),
        // An empty handshake record; a ServerHello; a ClientHello of five zero bytes.
        (&[22, 3, 1, 0, 0], FailureKind::Malformed, DECODE_ERROR),
        (&[22, 3, 1, 0, 5, 2, 0, 0, 1, 0], FailureKind::Malformed, DECODE_ERROR),
        (&[22, 3, 1, 0, 9, 1, 0, 0, 5, 0, 0, 0, 0, 0], FailureKind::Malformed, DECODE_ERROR),
        // Larger than rustls takes: 16 MiB announced.
        (&[22, 3, 1, 0, 5, 1, 0xFF, 0xFF, 0xFF, 0], FailureKind::Malformed, DECODE_ERROR),
    ] {
        let (failure, outgoing) = refused(&acceptor, bytes);
        assert_eq!(failure.kind(), kind, "{bytes:?}: {failure}");
        assert_eq!(outgoing, alert(description), "{bytes:?}: {failure}");
    }
}

#[test]
fn a_handshake_that_is_over_stays_over() {
    let (_pki, acceptor) = set_up();
    let mut handshake = Handshake::new(&acceptor);
    let mut outgoing = Vec::new();
    handshake.advance(&mut vec![0; 8], &mut outgoing).unwrap_err();
    let said = outgoing.len();
    let again = handshake.advance(&mut vec![0; 8], &mut outgoing).unwrap_err();
    assert_eq!((again.kind(), outgoing.len()), (FailureKind::Internal, said));
}

#[test]
fn endless_fragments_are_cut_off() {
    let (_pki, acceptor) = set_up();
    // A message of 60,000 bytes in records of one byte each: 6 bytes on the wire.
    let mut incoming = Vec::new();
    let mut handshake = Handshake::new(&acceptor);
    let message = [&[1, 0, 0xEA, 0x60][..], &[0; 60_000]].concat();
    let mut sent_bytes = 0;
    let failure = message
        .chunks(100)
        .find_map(|chunk| {
            let records = fragmented(&[&[0; 5], chunk].concat(), 1);
            sent_bytes += records.len();
            incoming.extend(records);
            handshake.advance(&mut incoming, &mut Vec::new()).err()
        })
        .expect("it must be cut off");
    assert_eq!(failure.kind(), FailureKind::TooLarge);
    assert!(sent_bytes <= HANDSHAKE_LIMIT_BYTES + 600, "{sent_bytes}");
}

#[test]
fn empty_records_are_cut_off() {
    let (pki, acceptor) = set_up();
    let mut client = pki.client().connect("site.example");
    let mut handshake = Handshake::new(&acceptor);
    let mut incoming = written(&mut client);
    handshake.advance(&mut incoming, &mut Vec::new()).unwrap();
    // Middlebox-compatibility records: one is usual, a storm is not (RFC 8446 D.4).
    incoming.extend([20, 3, 3, 0, 1, 1].repeat(100));
    let failure = handshake.advance(&mut incoming, &mut Vec::new()).unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Misbehaved, "{failure}");
}

/// After our ServerHello alerts are encrypted, and the client can read them.
#[test]
fn alerts_after_the_server_hello_are_encrypted() {
    let (pki, acceptor) = set_up();
    let damaged: [fn(&mut Vec<u8>); 4] = [
        // Finished does not authenticate.
        |bytes| *bytes.last_mut().unwrap() ^= 1,
        // An illegal content type.
        |bytes| *bytes = vec![99, 3, 3, 0, 1, 0],
        // A record longer than any.
        |bytes| *bytes = vec![23, 3, 3, 0xFF, 0xFF],
        // Application data that no key fits.
        |bytes| *bytes = [&[23, 3, 3, 0, 64][..], &[0; 64]].concat(),
    ];
    for (index, damage) in damaged.into_iter().enumerate() {
        let mut builder = pki.client();
        builder.versions = vec![&rustls::version::TLS13];
        let mut client = builder.connect("site.example");
        let mut handshake = Handshake::new(&acceptor);
        let (mut incoming, mut outgoing) = (written(&mut client), Vec::new());
        handshake.advance(&mut incoming, &mut outgoing).unwrap();
        deliver(&mut client, &outgoing).unwrap();
        incoming = written(&mut client);
        damage(&mut incoming);
        outgoing.clear();
        let failure = handshake.advance(&mut incoming, &mut outgoing).unwrap_err();
        assert!(
            matches!(failure.kind(), FailureKind::BadRecordMac | FailureKind::Malformed),
            "{index}: {failure}"
        );
        assert!(!outgoing.is_empty(), "{index}: {failure}");
        let understood = deliver(&mut client, &outgoing).unwrap_err();
        assert!(matches!(understood, rustls::Error::AlertReceived(_)), "{index}: {understood}");
    }
}

#[test]
fn a_client_that_goes_in_the_middle_is_told_apart() {
    let (pki, acceptor) = set_up();
    let (tls13, tls12) = (&rustls::version::TLS13, &rustls::version::TLS12);
    const WARNING: u8 = 1;
    const FATAL: u8 = 2;
    for (version, level, description, kind) in [
        (tls12, FATAL, 40, Some(FailureKind::PeerAlert)),
        (tls13, FATAL, 40, Some(FailureKind::PeerAlert)),
        (tls12, FATAL, 48, Some(FailureKind::CertificateRefused)),
        (tls13, FATAL, 48, Some(FailureKind::CertificateRefused)),
        (tls13, WARNING, 0, Some(FailureKind::PeerClosed)),
        // Nobody vouches for a warning in the clear: TLS 1.2 goes on, and the end of the stream will tell.
        (tls12, WARNING, 0, None),
    ] {
        let mut builder = pki.client();
        builder.versions = vec![version];
        let mut client = builder.connect("site.example");
        let mut handshake = Handshake::new(&acceptor);
        let mut incoming = written(&mut client);
        handshake.advance(&mut incoming, &mut Vec::new()).unwrap();
        incoming.extend([21, 3, 3, 0, 2, level, description]);
        let mut outgoing = Vec::new();
        let result = handshake.advance(&mut incoming, &mut outgoing);
        assert_eq!(result.as_ref().err().map(HandshakeFailure::kind), kind, "{version:?} {description}");
        assert!(level == WARNING || outgoing.is_empty(), "nobody is there to be told");
    }
}

/// Whatever is flipped in a ClientHello, the answer is an answer or an alert, never a panic.
#[test]
fn a_damaged_client_hello_never_panics() {
    let (pki, acceptor) = set_up();
    let hello = written(&mut pki.client().connect("site.example"));
    let (mut served, mut failed) = (0, 0);
    for position in 0..hello.len() {
        for flip in [0x01, 0x80, 0xFF] {
            let mut incoming = hello.clone();
            incoming[position] ^= flip;
            let mut outgoing = Vec::new();
            match Handshake::new(&acceptor).advance(&mut incoming, &mut outgoing) {
                Ok(Step::NeedInput) => served += 1,
                Ok(Step::Established(_)) => panic!("from a ClientHello alone"),
                Err(failure) => {
                    failed += 1;
                    assert!(!outgoing.is_empty(), "{position} {flip:#x}: {failure}");
                }
            }
        }
    }
    // In the random, the session ID and the key shares nothing is wrong until later; elsewhere it is.
    assert!(served > 100 && failed > 100, "{served} {failed}");
}

#[test]
fn nothing_secret_is_shown() {
    let (pki, acceptor) = set_up();
    let mut client = pki.client().connect("site.example");
    let shown_before = format!("{:?} {acceptor:?} {:?}", Handshake::new(&acceptor), acceptor.tickets());
    let (established, _) = support::run(&acceptor, &mut client).unwrap();
    let shown = format!("{shown_before} {established:?}");
    assert_eq!(established.version, Version::Tls13);
    let key_file = std::fs::read_to_string(pki.path("own-key.pem")).unwrap();
    for line in key_file.lines().filter(|line| !line.starts_with("-----")) {
        assert!(!shown.contains(line));
    }
    // Keys are opaque types that end in "..": there is no byte string in it at all.
    let longest_number_list =
        shown.split(|c: char| !(c.is_ascii_digit() || c == ',' || c == ' ')).map(str::len).max();
    assert!(longest_number_list.unwrap() < 24, "{shown}");
}
