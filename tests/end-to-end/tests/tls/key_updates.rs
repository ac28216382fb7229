//! KeyUpdate in both directions, wherever a client may send one.

use crate::fixture::Fixture;
use linerate_end_to_end::{
    ClientSetup, RawClient, Received,
    content_type::{ALERT, APPLICATION_DATA},
    openssl,
};
use rustls::version::TLS13;
use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    time::Duration,
};

const RECEIVED: (&str, &str) = ("linerate_tls_key_updates_total", r#"direction="received""#);
const SENT: (&str, &str) = ("linerate_tls_key_updates_total", r#"direction="sent""#);

/// Where `needle` ends in `haystack`, from `start` on.
#[track_caller]
fn end_of(needle: &[u8], haystack: &[u8], start: usize) -> usize {
    let found = haystack[start..].windows(needle.len()).position(|window| window == needle);
    start + found.expect("the whole body") + needle.len()
}

/// openssl's arguments to connect and to be typed at: `K` asks for a key update in return, `k` does not.
fn s_client(fixture: &Fixture, address: &str) -> Vec<String> {
    let trusted = fixture.pair.certificate.to_str().unwrap();
    [
        "s_client",
        "-tls1_3",
        "-connect",
        address,
        "-servername",
        "localhost",
        "-verify_return_error",
        "-CAfile",
        trusted,
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
fn openssl_updates_keys_between_requests() {
    let fixture = Fixture::new();
    let server = fixture.setup().start();
    let moment = Duration::from_millis(150);
    let get = |name: &str| format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let names = ["16385.bin", "32769.bin", "65543.bin", "131071.bin", "2.bin"];
    let mut program = openssl(s_client(&fixture, &server.address().to_string())).holds_input_open();
    for (name, command) in names[..4].iter().zip(["K\n", "k\n", "k\n", "K\n"]) {
        program = program.types(moment, get(name).as_bytes()).types(moment, command.as_bytes());
    }
    let last = get(names[4]).replace("Host", "Connection: close\r\nHost");
    let finished = program.types(moment, last.as_bytes()).run();
    let mut at = 0;
    for name in names {
        at = end_of(&fixture.site.bytes(name), &finished.stdout, at);
    }
    assert_eq!(server.metric(RECEIVED.0, RECEIVED.1), 4.0);
    assert_eq!(server.metric(SENT.0, SENT.1), 2.0);
}

#[test]
fn openssl_updates_keys_in_the_middle_of_a_download() {
    const LENGTH_BYTES: usize = 40_000_003;
    let fixture = Fixture::new();
    let expected = fixture.site.add_pattern("large.bin", LENGTH_BYTES);
    let server = fixture.setup().start();
    let mut child = Command::new("openssl")
        .args(s_client(&fixture, &server.address().to_string()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut typing, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut received = Vec::with_capacity(LENGTH_BYTES + 16 * 1024);
    typing.write_all(b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    // It reads no more than is taken from it: what is typed now is typed in the middle.
    for command in ["K\n", "k\n", "K\n", "K\n", "k\n", "K\n"] {
        (&mut output).take(4_000_000).read_to_end(&mut received).unwrap();
        typing.write_all(command.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    output.read_to_end(&mut received).unwrap();
    child.wait().unwrap();
    end_of(&expected, &received, end_of(b"Content-Length: 40000003", &received, 0));
    assert_eq!(server.metric(RECEIVED.0, RECEIVED.1), 6.0);
    let sent = server.metric(SENT.0, SENT.1);
    // Requests that come together may be answered once (RFC 8446 4.6.3).
    assert!((1.0..=4.0).contains(&sent), "{sent}");
}

#[test]
fn rustls_updates_keys_in_the_middle_of_a_download() {
    let fixture = Fixture::new();
    let expected = fixture.site.add_pattern("large.bin", 20_000_001);
    let server = fixture.setup().start();
    let mut client = ClientSetup::of_version(&fixture.pair, &TLS13).connect(server.address());
    client.request("large.bin");
    let head = b"HTTP/1.1 200 OK";
    assert_eq!(client.read_exactly(head.len()).unwrap(), head);
    let mut received = Vec::new();
    for _ in 0..50 {
        received.extend(client.read_exactly(300_000).unwrap());
        client.refresh_keys();
    }
    let body_from = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let missing = expected.len() - (received.len() - body_from);
    received.extend(client.read_exactly(missing).unwrap());
    assert!(received[body_from..] == expected[..]);
    assert!(client.get("65543.bin").body == fixture.site.bytes("65543.bin"));
    assert_eq!(server.metric(RECEIVED.0, RECEIVED.1), 50.0);
    assert!(server.metric(SENT.0, SENT.1) >= 1.0);
}

#[test]
fn finished_request_and_key_update_may_come_in_one_segment() {
    let fixture = Fixture::new();
    let server = fixture.setup().start();
    let setup = ClientSetup::of_version(&fixture.pair, &TLS13);
    let expected = fixture.site.bytes("65543.bin");
    for order in ["request first", "key update first", "both ways"] {
        let mut client = RawClient::connect_holding_back(&setup, server.address());
        let mut segment = client.held_back();
        if order != "request first" {
            segment.extend(client.seal_key_update(true));
        }
        segment.extend(client.seal_request("65543.bin"));
        if order != "key update first" {
            segment.extend(client.seal_key_update(true));
        }
        client.send(&segment);
        assert!(client.receive_body(expected.len()) == expected, "{order}");
        // Both directions go on under the new keys.
        let again = client.seal_request("16385.bin");
        client.send(&again);
        assert!(client.receive_body(16_385) == fixture.site.bytes("16385.bin"), "{order}");
        assert!(client.key_updates_received() >= 1, "{order}: the key update was not answered");
    }
}

#[test]
fn a_key_update_alone_is_answered_while_the_connection_is_idle() {
    let fixture = Fixture::new();
    let server = fixture.setup().start();
    let mut client = RawClient::connect(&fixture.client(), server.address());
    for answered in 1..=3 {
        let update = client.seal_key_update(true);
        client.send(&update);
        while client.key_updates_received() < answered {
            assert!(matches!(client.receive(), Received::Record(..)));
        }
        let silent = client.seal_key_update(false);
        client.send(&silent);
    }
    let request = client.seal_request("16385.bin");
    client.send(&request);
    assert!(client.receive_body(16_385) == fixture.site.bytes("16385.bin"));
    assert_eq!(client.key_updates_received(), 3);
}

/// Sends `count` key updates at once, while another connection of the same worker downloads.
fn flood(toml: &str, count: usize, requested: bool) -> Option<[u8; 2]> {
    let fixture = Fixture::new();
    let expected = fixture.site.add_pattern("large.bin", 20_000_001);
    let server = fixture.start_with(toml);
    let mut bystander = fixture.client().connect(server.address());
    bystander.request("large.bin");
    let mut client = RawClient::connect(&fixture.client(), server.address());
    let mut storm = Vec::new();
    for _ in 0..count {
        storm.extend(client.seal_key_update(requested));
    }
    storm.extend(client.seal_request("16385.bin"));
    client.send(&storm);
    let alert = loop {
        match client.receive() {
            Received::Record(ALERT, alert) => {
                assert_eq!(client.receive(), Received::End);
                break Some(alert.try_into().unwrap());
            }
            // The request behind the storm is answered.
            Received::Record(APPLICATION_DATA, data) => {
                assert!(data.starts_with(b"HTTP/1.1 200 OK"));
                break None;
            }
            Received::Record(..) => {}
            end => panic!("{end:?}, but no alert"),
        }
    };
    assert!(bystander.read_response().unwrap().body == expected);
    alert
}

#[test]
fn a_hundred_key_updates_in_a_second_are_taken_and_one_more_is_not() {
    const UNEXPECTED_MESSAGE: [u8; 2] = [2, 10];
    assert_eq!(flood("", 100, false), None);
    assert_eq!(flood("", 101, false), Some(UNEXPECTED_MESSAGE));
    assert_eq!(flood("", 5_000, true), Some(UNEXPECTED_MESSAGE));
    assert_eq!(flood("[tls]\nkey_updates_per_second = 7", 7, true), None);
    assert_eq!(flood("[tls]\nkey_updates_per_second = 7", 8, true), Some(UNEXPECTED_MESSAGE));
}
