//! Handshakes that never were: garbage, plain HTTP, peers that stop in the middle.

use crate::fixture::{Fixture, VERSIONS};
use linerate_end_to_end::{RawClient, connect, curl, reset, wait_until};
use rustls::version::{TLS12, TLS13};
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

/// Reads to the end, be it a FIN or a reset.
fn rest_of(stream: &mut TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    match stream.read_to_end(&mut received) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
    received
}

fn open(fixture: &Fixture) -> TcpStream {
    connect(fixture.server.address()).unwrap()
}

#[track_caller]
fn serves_still(fixture: &Fixture) {
    assert!(fixture.client(&TLS13).get("65543.bin").body == fixture.site.bytes("65543.bin"));
}

/// Handshakes that ended with this result so far.
#[track_caller]
fn results(fixture: &Fixture, result: &str) -> f64 {
    fixture.server.metric("linerate_tls_handshakes_total", &format!("result=\"{result}\""))
}

#[test]
fn garbage_is_answered_with_an_alert() {
    const UNEXPECTED_MESSAGE: [u8; 7] = [21, 3, 3, 0, 2, 2, 10];
    let fixture = Fixture::new();
    let garbage: [&[u8]; 6] = [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        &[0; 64],
        &[0xff; 64],
        b"\x16\x00\x01\x00\x05garbage",
        b"\x17\x03\x03\x00\x20................................",
        b"EHLO example.org\r\n",
    ];
    for bytes in garbage {
        let mut stream = open(&fixture);
        stream.write_all(bytes).unwrap();
        let answer = rest_of(&mut stream);
        assert!(answer.is_empty() || answer == UNEXPECTED_MESSAGE, "{bytes:?}: {answer:?}");
    }
    assert_eq!(results(&fixture, "not_tls"), garbage.len() as f64);
    serves_still(&fixture);
}

/// Closing on bytes that nobody has read makes the kernel reset the connection, and the alert with it.
#[test]
fn the_alert_arrives_although_the_client_goes_on_sending() {
    let fixture = Fixture::with("[tls]\nhandshakes_in_flight = 1");
    let mut oversized = vec![22, 3, 1, 0x40, 0x10];
    oversized.resize(200_000, 0);
    let mut wrong_version = fixture.setup(&TLS12).client_hello();
    wrong_version[9..11].copy_from_slice(&[3, 1]);
    wrong_version.resize(200_000, 0);
    for (sent, alert) in [(oversized, [2, 22]), (wrong_version, [2, 70]), (vec![0; 200_000], [2, 10])] {
        let mut stream = open(&fixture);
        for piece in sent.chunks(10_000) {
            stream.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        // Another has the handshake's place meanwhile.
        serves_still(&fixture);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap_or_else(|error| panic!("{alert:?} is lost: {error}"));
        assert_eq!(answer[..5], [21, 3, 3, 0, 2]);
        assert_eq!(answer[5..], alert);
        drop(stream);
    }
    assert_eq!(fixture.closed_for("handshake_failed"), 3.0);
    assert_eq!(fixture.closed_for("handshake_evicted"), 0.0);
    fixture.wait_for_connections(0);
}

#[test]
fn a_damaged_client_hello_is_answered_with_an_alert() {
    let fixture = Fixture::new();
    let hello = fixture.setup(&TLS13).client_hello();
    for at in (5..hello.len()).step_by(3) {
        let mut damaged = hello.clone();
        damaged[at] ^= 0xff;
        let mut stream = open(&fixture);
        stream.write_all(&damaged).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // Where it can still be understood a ServerHello comes; else an alert; for lengths that lie, the end.
        let answer = rest_of(&mut stream);
        assert!(matches!(answer.first(), None | Some(21 | 22)), "byte {at}: {answer:?}");
    }
    serves_still(&fixture);
    fixture.wait_for_connections(0);
}

#[test]
fn plain_http_is_told_to_use_https() {
    let fixture = Fixture::new();
    let url = format!("http://{}/1.bin", fixture.server.address());
    let finished = curl(["--include", &url]).run();
    let answer = finished.text();
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(answer.contains("https://"), "{answer}");
    let _ = finished.success();
    // Also when the request does not come at once, and when more of it comes than anybody reads.
    let mut stream = open(&fixture);
    for byte in b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    let _ = stream.write_all(&[b'x'; 100_000]);
    stream.shutdown(Shutdown::Write).unwrap();
    let answer = String::from_utf8(rest_of(&mut stream)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert_eq!(results(&fixture, "http_on_tls_port"), 2.0);
}

#[test]
fn a_handshake_byte_by_byte_succeeds() {
    let fixture = Fixture::new();
    for version in VERSIONS {
        for piece_bytes in [1, 3, 5, 100] {
            let mut client = fixture.setup(version).connect_in_pieces(fixture.server.address(), piece_bytes);
            assert!(client.get("65543.bin").body == fixture.site.bytes("65543.bin"), "{piece_bytes}");
        }
    }
}

#[test]
fn whoever_stops_in_the_middle_is_cut_in_time() {
    let fixture = Fixture::with("[timeouts]\nhandshake = \"500ms\"");
    let hello = fixture.setup(&TLS13).client_hello();
    let sends: [&[u8]; 5] = [&[], &hello[..1], &hello[..5], &hello[..hello.len() - 1], &hello];
    let begin = Instant::now();
    let mut streams: Vec<TcpStream> = sends
        .iter()
        .map(|bytes| {
            let mut stream = open(&fixture);
            stream.write_all(bytes).unwrap();
            stream
        })
        .collect();
    // A slow one that sends a byte now and then gets no more time than the others.
    let mut dribbling = open(&fixture);
    for byte in &hello {
        if dribbling.write_all(&[*byte]).is_err() || begin.elapsed() > Duration::from_secs(3) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(begin.elapsed() < Duration::from_secs(3), "the slow one was not cut");
    for (stream, sent) in streams.iter_mut().zip(sends) {
        let answer = rest_of(stream);
        // The whole ClientHello is answered, and then nothing follows.
        assert_eq!(answer.is_empty(), sent.len() < hello.len());
    }
    assert_eq!(fixture.closed_for("handshake_timeout"), 6.0);
    fixture.wait_for_connections(0);
    serves_still(&fixture);
}

#[test]
fn a_connection_outlives_the_handshakes_time_limit() {
    let fixture = Fixture::with("[timeouts]\nhandshake = \"300ms\"");
    let mut client = fixture.client(&TLS13);
    std::thread::sleep(Duration::from_millis(900));
    assert!(client.get("65543.bin").body == fixture.site.bytes("65543.bin"));
}

#[test]
fn the_oldest_silent_handshake_goes_where_there_are_more_than_allowed() {
    let fixture = Fixture::with("[tls]\nhandshakes_in_flight = 3");
    let refused = || fixture.server.metric("linerate_refused_total", r#"reason="handshake_limit""#);
    // Connections whose handshake is over take no place.
    let mut established: Vec<_> = (0..6).map(|_| fixture.client(&TLS13)).collect();
    assert_eq!(refused(), 0.0);
    let mut stalled: Vec<TcpStream> = (0..3).map(|_| open(&fixture)).collect();
    wait_until("three handshakes in flight", || {
        fixture.server.metric("linerate_tls_handshakes_in_flight", "") == 3.0
    });
    for index in 0..5 {
        stalled.push(open(&fixture));
        assert_eq!(rest_of(&mut stalled[index]), Vec::<u8>::new());
        assert_eq!(fixture.closed_for("handshake_evicted"), index as f64 + 1.0);
    }
    assert_eq!(fixture.server.metric("linerate_tls_handshakes_in_flight", ""), 3.0);
    assert_eq!(refused(), 0.0);
    for client in &mut established {
        assert!(client.get("16385.bin").body == fixture.site.bytes("16385.bin"));
    }
    drop(stalled);
    wait_until("no handshake in flight", || {
        fixture.server.metric("linerate_tls_handshakes_in_flight", "") == 0.0
    });
    serves_still(&fixture);
}

/// How far a peer gets before it goes.
const STEPS: [&str; 6] =
    ["connected", "half a hello", "a hello", "a handshake", "half a request", "a request"];

/// Goes as far as that.
fn reach(fixture: &Fixture, step: &str) -> Option<TcpStream> {
    let hello = fixture.setup(&TLS13).client_hello();
    let mut stream = open(fixture);
    match step {
        "connected" => {}
        "half a hello" => stream.write_all(&hello[..hello.len() / 2]).unwrap(),
        "a hello" => {
            stream.write_all(&hello).unwrap();
            stream.read_exact(&mut [0; 100]).unwrap();
        }
        _ => return None,
    }
    Some(stream)
}

#[test]
fn resets_at_every_step_leave_nothing_behind() {
    let fixture = Fixture::new();
    for step in STEPS {
        for _ in 0..5 {
            match reach(&fixture, step) {
                Some(stream) => reset(stream),
                None => {
                    let mut client = fixture.client(&TLS13);
                    match step {
                        "half a request" => client.send(b"GET /1.bin HTT").unwrap(),
                        "a request" => client.request("3000001.bin"),
                        _ => {}
                    }
                    client.reset();
                }
            }
        }
    }
    fixture.wait_for_connections(0);
    assert_eq!(fixture.server.metric("linerate_tls_handshakes_in_flight", ""), 0.0);
    serves_still(&fixture);
}

#[test]
fn peers_that_close_their_half_are_let_go() {
    let fixture = Fixture::new();
    for step in &STEPS[..3] {
        let mut stream = reach(&fixture, step).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        rest_of(&mut stream);
    }
    fixture.wait_for_connections(0);
}

#[test]
fn a_client_that_refuses_the_certificate_is_counted() {
    let fixture = Fixture::new();
    for version in VERSIONS {
        let stranger = fixture.setup(version).name("stranger.test").try_connect(fixture.server.address());
        assert!(stranger.is_err());
    }
    wait_until("two refusals", || results(&fixture, "certificate_refused") == 2.0);
    serves_still(&fixture);
}

#[test]
fn a_wrong_finished_is_answered_with_an_alert() {
    let fixture = Fixture::new();
    let mut client = RawClient::connect_holding_back(&fixture.setup(&TLS13), fixture.server.address());
    let mut flight = client.held_back();
    *flight.last_mut().unwrap() ^= 1;
    client.send(&flight);
    assert_eq!(client.receive_alert(), [2, 20]);
    assert_eq!(results(&fixture, "bad_record_mac"), 1.0);
}

#[test]
fn a_version_that_nobody_speaks_any_more_is_refused() {
    const PROTOCOL_VERSION: [u8; 7] = [21, 3, 3, 0, 2, 2, 70];
    let fixture = Fixture::new();
    let mut hello = fixture.setup(&TLS12).client_hello();
    // The ClientHello's legacy_version, behind the headers of record and message.
    hello[9..11].copy_from_slice(&[3, 1]);
    let mut stream = open(&fixture);
    stream.write_all(&hello).unwrap();
    assert_eq!(rest_of(&mut stream), PROTOCOL_VERSION);
}
