//! What there is not room for: refused at once, counted, and room again when others leave (INV-BOUND-1).

use crate::support::{Connection, Fixture, Transport, add_at_rest, get};
use linerate_end_to_end::{Site, wait_until};
use rustix::net::sockopt;
use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

fn site() -> Site {
    let site = Site::empty();
    site.add("small", b"small");
    site
}

/// Whether the server ends this connection without a word.
fn is_refused(fixture: &Fixture, transport: Transport) -> bool {
    let mut stream = TcpStream::connect(fixture.address(transport)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    match stream.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn connections_beyond_the_limit_are_refused_and_counted() {
    let site = site();
    let bytes = add_at_rest(&site, "big.bin", (16 << 20) + 7);
    let fixture = Fixture::start_toml(site, "\n[limits]\nconnections = 6\n");
    let mut connections: Vec<Connection> =
        (0..6).map(|index| fixture.connect_with_small_window(Transport::ALL[index % 2], 16 * 1024)).collect();
    for connection in &mut connections {
        connection.get("/small", "").assert_is(200, b"small");
        // In the middle of a response nobody makes room for another.
        connection.send(get("/big.bin", ""));
        let mut head = [0; 1];
        assert_eq!(connection.receive(&mut head).unwrap(), 1, "the response has begun");
        connection.unread(&head);
    }
    for transport in Transport::ALL {
        assert!(is_refused(&fixture, transport), "{transport:?}");
    }
    assert_eq!(fixture.server.metric("linerate_refused_total", "connection_limit"), 2.0);
    assert_eq!(fixture.server.metric("linerate_connections_active", ""), 6.0);
    for connection in &mut connections {
        connection.response().assert_is(200, &bytes);
    }
    connections.truncate(4);
    wait_until("room again", || fixture.server.metric("linerate_connections_active", "") == 4.0);
    for transport in Transport::ALL {
        fixture.connect(transport).get("/small", "").assert_is(200, b"small");
    }
}

#[test]
fn handshakes_beyond_the_limit_take_the_place_of_silent_ones() {
    let fixture = Fixture::start_toml(site(), "\n[tls]\nhandshakes_in_flight = 2\n");
    let mut established = fixture.connect(Transport::Tls);
    let mut silent: Vec<TcpStream> =
        (0..2).map(|_| TcpStream::connect(fixture.address(Transport::Tls)).unwrap()).collect();
    wait_until("two handshakes under way", || {
        fixture.server.metric("linerate_tls_handshakes_in_flight", "") == 2.0
    });
    fixture.connect(Transport::Tls).get("/small", "").assert_is(200, b"small");
    silent[0].set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(silent[0].read(&mut [0; 1]).unwrap(), 0, "the older one is closed");
    assert_eq!(fixture.server.metric("linerate_connections_closed_total", "handshake_evicted"), 1.0);
    assert_eq!(fixture.server.metric("linerate_tls_handshakes_total", "handshake_evicted"), 1.0);
    assert_eq!(fixture.server.metric("linerate_refused_total", ""), 0.0);
    assert_eq!(fixture.server.metric("linerate_tls_handshakes_in_flight", ""), 1.0);
    established.get("/small", "").assert_is(200, b"small");
    fixture.connect(Transport::Plain).get("/small", "").assert_is(200, b"small");
    drop(silent);
    wait_until("room again", || fixture.server.metric("linerate_tls_handshakes_in_flight", "") == 0.0);
    fixture.connect(Transport::Tls).get("/small", "").assert_is(200, b"small");
}

#[test]
fn two_hundred_clients_that_vanish_leave_nothing_behind() {
    let site = site();
    add_at_rest(&site, "big.bin", 8 << 20);
    let fixture = Fixture::start(site);
    let request = get("/big.bin", "");
    thread::scope(|scope| {
        for worker in 0..4 {
            let (fixture, request) = (&fixture, &request);
            scope.spawn(move || {
                for index in 0..50 {
                    let transport = Transport::ALL[index % 2];
                    vanish(fixture, transport, request, worker * 50 + index);
                }
            });
        }
    });
    wait_until("all places are free again", || {
        fixture.server.metric("linerate_connections_active", "") == 0.0
            && fixture.server.metric("linerate_tls_handshakes_in_flight", "") == 0.0
    });
    for transport in Transport::ALL {
        fixture.connect(transport).get("/small", "").assert_is(200, b"small");
    }
}

/// Goes away at one of several moments, by FIN or by reset.
fn vanish(fixture: &Fixture, transport: Transport, request: &str, turn: usize) {
    if turn.is_multiple_of(5) {
        // Within the first record, or the request line.
        let mut stream = TcpStream::connect(fixture.address(transport)).unwrap();
        stream.write_all(if transport == Transport::Tls { b"\x16\x03\x01\x02" } else { b"GET /bi" }).unwrap();
        if turn.is_multiple_of(2) {
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        }
        return;
    }
    let mut connection = fixture.connect(transport);
    if turn % 5 > 1 {
        let cut = if turn % 5 == 2 { request.len() / 2 } else { request.len() };
        connection.send(&request[..cut]);
    }
    if turn % 5 == 4 {
        let mut buffer = [0; 10_000];
        let _ = connection.receive(&mut buffer).expect("the beginning of a response");
    }
    if turn.is_multiple_of(3) {
        sockopt::set_socket_linger(connection.socket(), Some(Duration::ZERO)).unwrap();
    }
}
