//! Illegal records after the handshake: each is answered with its alert and a FIN, and other connections go on
//! (INV-PEER-1).

use crate::{
    fixture::{Fixture, LARGE, LARGE_BYTES},
    illegal::{CASES, CASES_12, CASES_13, Case, fatal_alert},
};
use linerate_end_to_end::{RawClient, Received, content_type::ALERT};
use rustls::{
    SupportedProtocolVersion,
    version::{TLS12, TLS13},
};

/// Sends each case, first alone, then in the middle of a download, with another client that downloads all the while.
fn each_is_answered_with_its_alert(version: &'static SupportedProtocolVersion, cases: &[&[Case]]) {
    let fixture = Fixture::new();
    let expected = fixture.site.add_pattern(LARGE, LARGE_BYTES);
    let mut bystander = fixture.client(version);
    bystander.request(LARGE);
    let mut seen = bystander.read_exactly(1_000).unwrap();
    for (name, alert, make) in cases.concat() {
        let mut client = fixture.raw(version);
        let illegal = make(&mut client);
        client.send(&illegal);
        assert_eq!(fatal_alert(&mut client), alert, "{name}, {version:?}");
        assert_eq!(client.receive(), Received::End, "{name}, {version:?}");

        let mut client = fixture.raw(version);
        let request = client.seal_request(LARGE);
        client.send(&request);
        client.receive_data(100_000);
        let illegal = make(&mut client);
        client.send(&illegal);
        assert_eq!(fatal_alert(&mut client), alert, "{name} in a download, {version:?}");
        seen.extend(bystander.read_exactly(100_000).unwrap());
    }
    let body_from = seen.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    seen.extend(bystander.read_exactly(expected.len() + body_from - seen.len()).unwrap());
    assert!(seen[body_from..] == expected[..]);
    assert_eq!(fixture.closed_for("record_fault") as usize, 2 * cases.concat().len());
    drop(bystander);
    fixture.wait_for_connections(0);
}

#[test]
fn tls_1_3_answers_each_with_its_alert() {
    each_is_answered_with_its_alert(&TLS13, &[CASES, CASES_13]);
}

#[test]
fn tls_1_2_answers_each_with_its_alert() {
    each_is_answered_with_its_alert(&TLS12, &[CASES, CASES_12]);
}

#[test]
fn an_illegal_record_right_behind_finished_is_answered_too() {
    let fixture = Fixture::new();
    for (name, alert, make) in [CASES, CASES_13].concat() {
        let mut client = RawClient::connect_holding_back(&fixture.setup(&TLS13), fixture.server.address());
        let mut segment = client.held_back();
        segment.extend(make(&mut client));
        client.send(&segment);
        assert_eq!(client.receive_alert(), [2, alert], "{name}");
        assert_eq!(client.receive(), Received::End, "{name}");
    }
}

#[test]
fn a_fatal_alert_from_the_client_is_not_answered() {
    for version in [&TLS12, &TLS13] {
        let fixture = Fixture::new();
        let mut client = fixture.raw(version);
        let alert = client.seal(ALERT, &[2, 80]);
        client.send(&alert);
        // RFC 8446 6.2: both sides close at once; RFC 5246 7.2.2 the same. A close_notify is no harm.
        loop {
            match client.receive() {
                Received::Record(ALERT, alert) => assert_eq!(alert, [1, 0], "{version:?}"),
                Received::Record(..) => {}
                _ => break,
            }
        }
        drop(client);
        fixture.wait_for_connections(0);
    }
}
