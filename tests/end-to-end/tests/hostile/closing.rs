//! How connections end: politely, by halves, abruptly, or not at all.

use crate::fixture::{Fixture, LARGE, LARGE_BYTES, VERSIONS};
use linerate_end_to_end::{Received, content_type::ALERT};
use rustls::version::{TLS12, TLS13};
use std::time::{Duration, Instant};

const CLOSE_NOTIFY: [u8; 2] = [1, 0];

#[test]
fn the_server_ends_with_close_notify() {
    let fixture = Fixture::new();
    for version in VERSIONS {
        let mut client = fixture.client(version);
        client.send(b"GET /16385.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        assert!(client.read_response().unwrap().body == fixture.site.bytes("16385.bin"));
        assert_eq!(client.read_to_end().unwrap(), (Vec::new(), true), "{version:?}");
    }
}

#[test]
fn an_idle_client_s_close_notify_is_answered() {
    let fixture = Fixture::new();
    for version in VERSIONS {
        let mut client = fixture.client(version);
        assert_eq!(client.get("1.bin").status, 200);
        client.close_notify();
        assert_eq!(client.read_to_end().unwrap(), (Vec::new(), true), "{version:?}");
        drop(client);
        fixture.wait_for_connections(0);
    }
}

#[test]
fn tls_1_3_sends_the_whole_response_after_a_close_notify() {
    let fixture = Fixture::new();
    let expected = fixture.site.add_pattern(LARGE, LARGE_BYTES);
    for with_fin in [false, true] {
        let mut client = fixture.client(&TLS13);
        client.request(LARGE);
        client.close_notify();
        if with_fin {
            client.shut_down_sending();
        }
        assert!(client.read_response().unwrap().body == expected, "FIN: {with_fin}");
        assert_eq!(client.read_to_end().unwrap(), (Vec::new(), true), "FIN: {with_fin}");
    }
}

#[test]
fn requests_before_a_fin_are_answered() {
    let fixture = Fixture::new();
    let names = ["65543.bin", "16385.bin", "3000001.bin"];
    let mut client = fixture.client(&TLS13);
    for name in names {
        client.request(name);
    }
    client.shut_down_sending();
    for name in names {
        assert!(client.read_response().unwrap().body == fixture.site.bytes(name), "{name}");
    }
    assert_eq!(client.read_to_end().unwrap(), (Vec::new(), true));
}

#[test]
fn request_and_close_notify_in_one_segment() {
    let fixture = Fixture::new();
    let mut client = fixture.raw(&TLS13);
    let segment = [client.seal_request("65543.bin"), client.seal(ALERT, &CLOSE_NOTIFY)].concat();
    client.send(&segment);
    client.shut_down_sending();
    assert!(client.receive_body(65_543) == fixture.site.bytes("65543.bin"));
    assert_eq!(client.receive(), Received::Record(ALERT, CLOSE_NOTIFY.to_vec()));
    assert_eq!(client.receive(), Received::End);
}

#[test]
fn what_follows_a_close_notify_is_not_read() {
    let fixture = Fixture::new();
    let mut client = fixture.raw(&TLS13);
    let mut segment = [client.seal_request("1.bin"), client.seal(ALERT, &CLOSE_NOTIFY)].concat();
    // Neither a request nor an illegal record counts any more (RFC 8446 6.1).
    segment.extend(client.seal_request("2.bin"));
    segment.extend([99, 3, 3, 0xff, 0xff]);
    client.send(&segment);
    assert!(client.receive_body(1) == fixture.site.bytes("1.bin"));
    assert_eq!(client.receive(), Received::Record(ALERT, CLOSE_NOTIFY.to_vec()));
    assert!(matches!(client.receive(), Received::End | Received::Reset));
}

#[test]
fn half_a_request_before_a_fin_is_no_request() {
    let fixture = Fixture::new();
    for version in VERSIONS {
        let mut client = fixture.client(version);
        client.send(b"GET /1.bin HTTP/1.1\r\nHost: local").unwrap();
        client.shut_down_sending();
        assert_eq!(client.read_to_end().unwrap(), (Vec::new(), true), "{version:?}");
    }
    drop(fixture.client(&TLS12));
    fixture.wait_for_connections(0);
}

#[test]
fn a_reset_in_a_download_is_the_end_of_that_connection_alone() {
    let fixture = Fixture::new();
    let expected = fixture.site.add_pattern(LARGE, LARGE_BYTES);
    let mut bystander = fixture.client(&TLS13);
    bystander.request(LARGE);
    for version in VERSIONS.repeat(10) {
        let mut client = fixture.client(version);
        client.request(LARGE);
        client.read_exactly(500_000).unwrap();
        client.reset();
    }
    fixture.wait_for_connections(1);
    assert_eq!(fixture.closed_for("reset"), 20.0);
    assert!(bystander.read_response().unwrap().body == expected);
}

#[test]
fn a_client_that_takes_nothing_is_cut() {
    let fixture = Fixture::with("[timeouts]\nwrite_progress = \"600ms\"");
    fixture.site.add_pattern(LARGE, LARGE_BYTES);
    let mut vanished: Vec<_> = VERSIONS
        .into_iter()
        .map(|version| {
            let mut client = fixture.client(version);
            client.request(LARGE);
            client
        })
        .collect();
    // A client that goes on taking, however slowly, is not.
    let mut slow = fixture.client(&TLS13);
    slow.request(LARGE);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        slow.read_exactly(1_000_000).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    fixture.wait_for_connections(1);
    assert_eq!(fixture.closed_for("write_timeout"), 2.0);
    // What they find when they come back ends before the response does, and without close_notify.
    for client in &mut vanished {
        match client.read_to_end() {
            Ok((received, ended_cleanly)) => assert!(received.len() < LARGE_BYTES && !ended_cleanly),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    slow.read_exactly(1_000_000).unwrap();
}

#[test]
fn an_idle_client_is_told_that_its_time_is_up() {
    let fixture = Fixture::with("[timeouts]\nidle = \"1s\"");
    for version in VERSIONS {
        let mut client = fixture.client(version);
        assert_eq!(client.get("1.bin").status, 200);
        assert_eq!(client.read_to_end().unwrap(), (Vec::new(), true), "{version:?}");
    }
    assert_eq!(fixture.closed_for("idle_timeout"), 2.0);
}
