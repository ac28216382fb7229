//! Records that are unusual and legal: each request gets its whole response.

use crate::fixture::{Fixture, VERSIONS};
use linerate_end_to_end::{
    RawClient, Received,
    content_type::{ALERT, APPLICATION_DATA, HANDSHAKE},
};
use rustls::version::{TLS12, TLS13};
use std::{thread::sleep, time::Duration};

const REQUEST: &[u8] = b"GET /65543.bin HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[track_caller]
fn expect_response(fixture: &Fixture, client: &mut RawClient, what: &str) {
    assert!(client.receive_body(65_543) == fixture.site.bytes("65543.bin"), "{what}");
}

#[test]
fn a_request_in_records_of_any_size() {
    let fixture = Fixture::new();
    for version in VERSIONS {
        let mut client = fixture.raw(version);
        for size in [1, 2, 7, 16, REQUEST.len() - 1] {
            let records: Vec<u8> =
                REQUEST.chunks(size).flat_map(|part| client.seal(APPLICATION_DATA, part)).collect();
            client.send(&records);
            expect_response(&fixture, &mut client, &format!("{size} bytes a record, {version:?}"));
        }
    }
}

#[test]
fn records_in_segments_of_any_size() {
    let fixture = Fixture::new();
    for version in VERSIONS {
        let mut client = fixture.raw(version);
        for size in [1, 4, 5, 6, 21, 60] {
            let record = client.seal(APPLICATION_DATA, REQUEST);
            for part in record.chunks(size) {
                client.send(part);
                sleep(Duration::from_micros(200));
            }
            expect_response(&fixture, &mut client, &format!("{size} bytes a segment, {version:?}"));
        }
    }
}

#[test]
fn a_full_record_of_pipelined_requests() {
    let fixture = Fixture::new();
    let expected = fixture.site.bytes("2.bin");
    for version in VERSIONS {
        let mut client = fixture.raw(version);
        let line = "GET /2.bin HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let count = (1 << 14) / line.len() - 1;
        let mut requests = line.repeat(count);
        let missing = (1 << 14) - requests.len() - line.len() - "X: \r\n".len();
        requests += &line.replace("\r\n\r\n", &format!("\r\nX: {}\r\n\r\n", "y".repeat(missing)));
        assert_eq!(requests.len(), 1 << 14);
        let record = client.seal(APPLICATION_DATA, requests.as_bytes());
        client.send(&record);
        let mut received = Vec::new();
        let whole = |received: &[u8]| {
            received.windows(16).filter(|window| window.starts_with(b"HTTP/1.1 200 OK\r")).count()
                == count + 1
        };
        while !whole(&received) || !received.ends_with(&expected) {
            received.extend(client.receive_data(1));
        }
    }
}

#[test]
fn padding_of_any_length() {
    let fixture = Fixture::new();
    let mut client = fixture.raw(&TLS13);
    for padding_bytes in [1, 255, 256, 4096, (1 << 14) - REQUEST.len()] {
        let record = client.seal_padded(APPLICATION_DATA, REQUEST, padding_bytes);
        client.send(&record);
        expect_response(&fixture, &mut client, &format!("{padding_bytes} bytes of padding"));
    }
}

#[test]
fn empty_records_in_between() {
    let fixture = Fixture::new();
    for version in VERSIONS {
        let mut client = fixture.raw(version);
        let mut records = Vec::new();
        for part in REQUEST.chunks(10) {
            for _ in 0..5 {
                records.extend(client.seal(APPLICATION_DATA, &[]));
            }
            records.extend(client.seal(APPLICATION_DATA, part));
        }
        client.send(&records);
        expect_response(&fixture, &mut client, &format!("{version:?}"));
    }
}

#[test]
fn a_key_update_in_pieces() {
    let fixture = Fixture::new();
    for cut in 1..5 {
        let mut client = fixture.raw(&TLS13);
        let (first, second) = [24, 0, 0, 1, 1].split_at(cut);
        let mut records = [client.seal(HANDSHAKE, first), client.seal(HANDSHAKE, second)].concat();
        client.next_sending_key();
        records.extend(client.seal(APPLICATION_DATA, REQUEST));
        client.send(&records);
        expect_response(&fixture, &mut client, &format!("cut at {cut}"));
        assert_eq!(client.key_updates_received(), 1);
    }
}

#[test]
fn a_warning_is_passed_over() {
    const USER_CANCELED: [u8; 2] = [1, 90];
    let fixture = Fixture::new();
    for version in VERSIONS {
        let mut client = fixture.raw(version);
        let records = [client.seal(ALERT, &USER_CANCELED), client.seal(APPLICATION_DATA, REQUEST)].concat();
        client.send(&records);
        expect_response(&fixture, &mut client, &format!("{version:?}"));
    }
}

#[test]
fn renegotiation_is_refused_by_a_warning() {
    const NO_RENEGOTIATION: [u8; 2] = [1, 100];
    let fixture = Fixture::new();
    let hello = [&[1, 0, 0, 97, 3, 3][..], &[0x5A; 95]].concat();
    for piece_bytes in [hello.len(), hello.len() - 1, 50, 3, 1] {
        let mut client = fixture.raw(&TLS12);
        let wish: Vec<u8> =
            hello.chunks(piece_bytes).flat_map(|piece| client.seal(HANDSHAKE, piece)).collect();
        client.send(&wish);
        assert_eq!(client.receive(), Received::Record(ALERT, NO_RENEGOTIATION.to_vec()), "{piece_bytes}");
        let request = client.seal(APPLICATION_DATA, REQUEST);
        client.send(&request);
        expect_response(&fixture, &mut client, "after the refusal");
    }
}
