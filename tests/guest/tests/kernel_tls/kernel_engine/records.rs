//! Records from the client on connections that kernel TLS sends for. Receiving stays in user space; what an illegal one is
//! answered with has to leave as a control record of the kernel's, behind whatever it has made already.

#[path = "../../../../end-to-end/tests/hostile/illegal.rs"]
mod illegal;

use super::fixture::Fixture;
use illegal::{CASES, CASES_12, CASES_13, Case, fatal_alert};
use linerate_end_to_end::{
    RawClient, Received, Server,
    content_type::{APPLICATION_DATA, HANDSHAKE},
};
use rustls::{
    SupportedProtocolVersion,
    version::{TLS12, TLS13},
};
use std::net::SocketAddr;

/// The least that moves a connection to the kernel is 64 KiB.
const PROMOTING: &str = "131071.bin";
const PROMOTING_BYTES: usize = 131_071;
/// Far more than the sockets between server and client hold.
const FILM_BYTES: usize = 12 << 20;
/// In the middle of a download each takes as long as emptying the sockets does, so one in so many is tried there.
const ONE_IN: usize = 9;

/// A server on IPv4 and IPv6.
fn start(fixture: &Fixture) -> (Server, [SocketAddr; 2]) {
    let server = fixture.start_on(r#""127.0.0.1:0", "[::1]:0""#, "");
    let addresses = [server.listener("https", 0), server.listener("https", 1)];
    assert!(addresses[0].is_ipv4() && addresses[1].is_ipv6());
    (server, addresses)
}

/// A client whose connection the kernel sends for, after a response that it has compared.
fn promoted(fixture: &Fixture, version: &'static SupportedProtocolVersion, address: SocketAddr) -> RawClient {
    let mut client = RawClient::connect(&fixture.client(version), address);
    let request = client.seal_request(PROMOTING);
    client.send(&request);
    assert!(client.receive_body(PROMOTING_BYTES) == fixture.site.bytes(PROMOTING), "{version:?}");
    client
}

fn each_is_answered_by_the_kernel(version: &'static SupportedProtocolVersion, cases: &[&[Case]], test: &str) {
    let Some(fixture) = Fixture::new(test) else { return };
    fixture.site.add_pattern("film.bin", FILM_BYTES);
    let (server, addresses) = start(&fixture);
    let before = fixture.statistics();
    let mut connections = 0;
    for (index, (name, alert, make)) in cases.concat().into_iter().enumerate() {
        let mut client = promoted(&fixture, version, addresses[index % 2]);
        let illegal = make(&mut client);
        client.send(&illegal);
        assert_eq!(fatal_alert(&mut client), alert, "{name}, {version:?}");
        assert_eq!(client.receive(), Received::End, "{name}, {version:?}");
        connections += 1;
        if index % ONE_IN == 0 {
            let mut client = promoted(&fixture, version, addresses[(index / ONE_IN) % 2]);
            let request = client.seal_request("film.bin");
            client.send(&request);
            client.receive_data(100_000);
            let illegal = make(&mut client);
            client.send(&illegal);
            assert_eq!(fatal_alert(&mut client), alert, "{name} in a download, {version:?}");
            connections += 1;
        }
    }
    assert_eq!(before.moved("TlsTxSw"), connections, "each was the kernel's");
    assert_eq!(before.new_faults(), []);
    let closed = server.metric("linerate_connections_closed_total", r#"reason="record_fault""#);
    assert_eq!(closed as u64, connections);
}

#[test]
fn illegal_records_of_tls_1_3_get_their_alerts_from_the_kernel() {
    const NAME: &str = "illegal_records_of_tls_1_3_get_their_alerts_from_the_kernel";
    each_is_answered_by_the_kernel(&TLS13, &[CASES, CASES_13], NAME);
}

#[test]
fn illegal_records_of_tls_1_2_get_their_alerts_from_the_kernel() {
    const NAME: &str = "illegal_records_of_tls_1_2_get_their_alerts_from_the_kernel";
    each_is_answered_by_the_kernel(&TLS12, &[CASES, CASES_12], NAME);
}

/// Asks again, in records of this shape, on a connection that the kernel sends for.
type Ask = (&'static str, fn(&mut RawClient) -> Vec<u8>);

const REQUEST: &[u8] = b"GET /131071.bin HTTP/1.1\r\nHost: localhost\r\n\r\n";

const ASKS: &[Ask] = &[
    ("a byte a record", |client| {
        REQUEST.chunks(1).flat_map(|byte| client.seal(APPLICATION_DATA, byte)).collect()
    }),
    ("empty records between", |client| {
        let mut records = Vec::new();
        for part in REQUEST.chunks(10) {
            records.extend(client.seal(APPLICATION_DATA, &[]));
            records.extend(client.seal(APPLICATION_DATA, part));
        }
        records
    }),
];

const ASKS_13: &[Ask] = &[
    ("padding up to a full record", |client| {
        client.seal_padded(APPLICATION_DATA, REQUEST, (1 << 14) - REQUEST.len())
    }),
    ("behind a KeyUpdate", |client| {
        [client.seal_key_update(false), client.seal(APPLICATION_DATA, REQUEST)].concat()
    }),
    ("behind a KeyUpdate in two records", |client| {
        let mut records = [client.seal(HANDSHAKE, &[24, 0]), client.seal(HANDSHAKE, &[0, 1, 0])].concat();
        client.next_sending_key();
        records.extend(client.seal(APPLICATION_DATA, REQUEST));
        records
    }),
];

#[test]
fn legal_records_of_every_shape_are_answered_by_the_kernel() {
    const NAME: &str = "legal_records_of_every_shape_are_answered_by_the_kernel";
    let Some(fixture) = Fixture::new(NAME) else { return };
    let (_server, addresses) = start(&fixture);
    let before = fixture.statistics();
    for (version, asks) in [(&TLS12, &[ASKS][..]), (&TLS13, &[ASKS, ASKS_13][..])] {
        for address in addresses {
            let mut client = promoted(&fixture, version, address);
            for (name, make) in asks.concat() {
                let records = make(&mut client);
                client.send(&records);
                assert!(
                    client.receive_body(PROMOTING_BYTES) == fixture.site.bytes(PROMOTING),
                    "{name}, {version:?}, {address}"
                );
            }
        }
    }
    assert_eq!(before.moved("TlsTxSw"), 4);
    assert_eq!(before.new_faults(), []);
}
