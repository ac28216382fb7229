//! More clients than there are places, most of which want nothing but a place (INV-BOUND-1).

use crate::support::{Connection, End, Fixture, Transport, add_at_rest, client_config, from_address};
use linerate_end_to_end::{ClientSetup, Site, wait_until};
use rustls::{ClientConnection, version::TLS13};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    thread,
    time::Duration,
};

const FILE_BYTES: usize = 300_007;

fn start(toml: &str) -> (Fixture, Vec<u8>) {
    let site = Site::empty();
    let bytes = add_at_rest(&site, "file.bin", FILE_BYTES);
    (Fixture::start_toml(site, toml), bytes)
}

/// Clients that hold what they are given: nothing sent, a byte, half a ClientHello, a whole one.
fn hold(fixture: &Fixture, hello: &[u8], count: usize, held: &mut Vec<TcpStream>) {
    for index in 0..count {
        let mut stream =
            TcpStream::connect(fixture.address(Transport::Tls)).expect("the kernel takes connections");
        let sent = match index % 8 {
            0 => &hello[..1],
            1 => &hello[..hello.len() / 2],
            2 => hello,
            _ => &[],
        };
        // The server may have closed it already.
        let _ = stream.write_all(sent);
        held.push(stream);
    }
}

/// 16 times as many silent connections as there are places for handshakes, beside clients that behave.
#[test]
fn silent_connections_keep_nobody_out() {
    const PLACES: usize = 256;
    const ROUNDS: usize = 32;
    let (fixture, bytes) = start(&format!("\n[tls]\nhandshakes_in_flight = {PLACES}\n"));
    let hello = ClientSetup::of_version(&fixture.pair, &TLS13).client_hello();
    let mut held = Vec::new();
    for _ in 0..ROUNDS {
        // Fewer than there are places come while one that behaves is under way: it is never the oldest.
        thread::scope(|scope| {
            scope.spawn(|| hold(&fixture, &hello, PLACES / 2, &mut held));
            let mut connection = fixture.connect(Transport::Tls);
            connection.get("/file.bin", "").assert_is(200, &bytes);
        });
        let in_flight = fixture.server.metric("linerate_tls_handshakes_in_flight", "");
        assert!(in_flight <= PLACES as f64, "{in_flight}");
    }
    assert_eq!(held.len(), ROUNDS * PLACES / 2);
    assert_eq!(fixture.server.metric("linerate_refused_total", ""), 0.0);
    let evicted = fixture.server.metric("linerate_connections_closed_total", "handshake_evicted");
    assert!(evicted > 0.0, "some had to go");
}

/// At the limit of connections those that are idle go, the longest first, and those that want something stay.
#[test]
fn idle_connections_make_room() {
    let (fixture, bytes) = start("\n[limits]\nconnections = 9\n[timeouts]\nheader = \"300ms\"\n");
    // The server's clock goes by sweeps: once it has cut half a head, it is later than it was.
    let let_time_pass = || {
        let mut half = fixture.connect(Transport::Plain);
        half.send("GET /");
        assert_eq!(half.end().0, Vec::<u8>::new());
    };
    let mut idle: Vec<Connection> = (0..8)
        .map(|index| {
            let mut connection = fixture.connect(Transport::ALL[index % 2]);
            connection.get("/file.bin", "Range: bytes=1-9\r\n").assert_is(206, &bytes[1..=9]);
            let_time_pass();
            connection
        })
        .collect();
    // The first two are used again: they are the youngest now.
    for connection in &mut idle[..2] {
        connection.get("/file.bin", "").assert_is(200, &bytes);
    }
    let mut newcomers: Vec<Connection> =
        (0..3).map(|index| fixture.connect(Transport::ALL[index % 2])).collect();
    for connection in &mut newcomers {
        connection.get("/file.bin", "").assert_is(200, &bytes);
    }
    assert_eq!(fixture.server.metric("linerate_refused_total", ""), 0.0);
    for (index, connection) in idle.iter_mut().enumerate() {
        if index == 2 || index == 3 {
            assert_eq!(connection.end(), (Vec::new(), End::Closed), "{index}");
        } else {
            connection.get("/file.bin", "").assert_is(200, &bytes);
        }
    }
    assert_eq!(fixture.server.metric("linerate_connections_closed_total", "idle_evicted"), 2.0);
}

#[test]
fn an_address_has_its_limits_and_others_have_theirs() {
    let (fixture, bytes) = start(
        "\n[tls]\nhandshakes_per_address = 2\n[limits]\nconnections_per_address = 4\n\
         exempt_addresses = [\"127.0.3.0/24\"]\n",
    );
    let source = |network: u8| Ipv4Addr::new(127, 0, network, 1);
    let secure = |network: u8| {
        let name = "localhost".try_into().unwrap();
        let session = ClientConnection::new(client_config(&fixture.pair), name).unwrap();
        let stream = from_address(source(network), fixture.address(Transport::Tls));
        Connection::over(stream, Some(session))
    };
    let silent = |network: u8, transport: Transport| {
        let stream = from_address(source(network), fixture.address(transport));
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    };
    let is_refused = |mut stream: TcpStream| stream.read(&mut [0; 1]).map_or(true, |count| count == 0);
    let refused = |reason: &str| fixture.server.metric("linerate_refused_total", reason);
    let in_flight = |count: f64| {
        wait_until("handshakes under way", || {
            fixture.server.metric("linerate_tls_handshakes_in_flight", "") == count
        });
    };
    let handshakes = [silent(1, Transport::Tls), silent(1, Transport::Tls)];
    in_flight(2.0);
    assert!(is_refused(silent(1, Transport::Tls)));
    assert_eq!((refused("address_handshakes"), refused("address_connections")), (1.0, 0.0));
    // Others are not concerned, nor is what is no handshake.
    secure(2).get("/file.bin", "").assert_is(200, &bytes);
    let plain = [silent(1, Transport::Plain), silent(1, Transport::Plain)];
    wait_until("four connections", || fixture.server.metric("linerate_connections_active", "") >= 4.0);
    assert!(is_refused(silent(1, Transport::Plain)));
    assert_eq!((refused("address_handshakes"), refused("address_connections")), (1.0, 1.0));
    let exempt: Vec<TcpStream> = (0..8).map(|index| silent(3, Transport::ALL[index % 2])).collect();
    in_flight(6.0);
    secure(3).get("/file.bin", "").assert_is(200, &bytes);
    drop((handshakes, plain, exempt));
    in_flight(0.0);
    secure(1).get("/file.bin", "").assert_is(200, &bytes);
    assert_eq!(refused(""), 2.0);
}
