//! KeyUpdate in both directions, wherever a client may send one.

use crate::fixture::Fixture;
use linerate_end_to_end::{
    ClientSetup, RawClient, Received, Server,
    content_type::{ALERT, APPLICATION_DATA},
    wait_until,
};
use rustls::version::TLS13;
use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

const RECEIVED: (&str, &str) = ("linerate_tls_key_updates_total", r#"direction="received""#);
const SENT: (&str, &str) = ("linerate_tls_key_updates_total", r#"direction="sent""#);

/// Where `needle` ends in `haystack`, from `start` on.
#[track_caller]
fn end_of(needle: &[u8], haystack: &[u8], start: usize) -> usize {
    let found = haystack[start..].windows(needle.len()).position(|window| window == needle);
    start + found.expect("the whole body") + needle.len()
}

/// `openssl s_client` that is typed at: `K` at a line's beginning asks for a key update in return, `k` updates alone.
struct Typed {
    child: Child,
    typing: ChildStdin,
    output: ChildStdout,
    received: Vec<u8>,
}

impl Typed {
    fn connect(fixture: &Fixture, server: &Server) -> Self {
        let mut child = Command::new("openssl")
            .args(["s_client", "-tls1_3", "-connect", &server.address().to_string()])
            .args(["-servername", "localhost", "-verify_return_error", "-CAfile"])
            .arg(&fixture.pair.certificate)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (typing, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, typing, output, received: Vec::new() }
    }

    fn types(&mut self, text: &str) {
        self.typing.write_all(text.as_bytes()).unwrap();
    }

    /// What is typed next is a line of its own: it has sent all that was typed before.
    fn reads_until_body(&mut self, body: &[u8]) {
        let mut buffer = [0; 16 * 1024];
        while !self.received.ends_with(body) {
            let count = self.output.read(&mut buffer).unwrap();
            assert!(count > 0, "it ended after {} bytes", self.received.len());
            self.received.extend_from_slice(&buffer[..count]);
        }
    }
}

#[test]
fn openssl_updates_keys_between_requests() {
    let fixture = Fixture::new();
    let server = fixture.setup().start();
    let mut client = Typed::connect(&fixture, &server);
    for (number, (name, command)) in
        [("16385.bin", "K\n"), ("32769.bin", "k\n"), ("65543.bin", "k\n"), ("131071.bin", "K\n")]
            .into_iter()
            .enumerate()
    {
        client.types(&format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        client.reads_until_body(&fixture.site.bytes(name));
        client.types(command);
        wait_until("the key update", || server.metric(RECEIVED.0, RECEIVED.1) == number as f64 + 1.0);
    }
    client.types("GET /2.bin HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n\r\n");
    client.output.read_to_end(&mut client.received).unwrap();
    client.child.wait().unwrap();
    end_of(&fixture.site.bytes("2.bin"), &client.received, end_of(b"Content-Length: 2", &client.received, 0));
    assert_eq!(server.metric(RECEIVED.0, RECEIVED.1), 4.0);
    assert_eq!(server.metric(SENT.0, SENT.1), 2.0);
}

#[test]
fn openssl_updates_keys_in_the_middle_of_a_download() {
    const LENGTH_BYTES: usize = 40_000_003;
    let fixture = Fixture::new();
    let expected = fixture.site.add_pattern("large.bin", LENGTH_BYTES);
    let server = fixture.setup().start();
    let mut client = Typed::connect(&fixture, &server);
    client.types("GET /large.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    // It reads no more than is taken from it: what is typed now is typed in the middle.
    for command in ["K\n", "k\n", "K\n", "K\n", "k\n", "K\n"] {
        (&mut client.output).take(4_000_000).read_to_end(&mut client.received).unwrap();
        client.types(command);
    }
    client.output.read_to_end(&mut client.received).unwrap();
    client.child.wait().unwrap();
    end_of(&expected, &client.received, end_of(b"Content-Length: 40000003", &client.received, 0));
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
