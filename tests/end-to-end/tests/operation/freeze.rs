//! A server that did not run for a while (SIGSTOP, a paused machine): time that no client had (INV-PEER-2).

use crate::support::{Connection, End, Fixture, Transport, add_at_rest, get};
use linerate_end_to_end::{ClientSetup, Signal, Site, connect, wait_until};
use rustls::version::TLS13;
use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

/// Longer than each of [`TIMEOUTS`], which are long enough for a busy machine to open all connections.
const FROZEN: Duration = Duration::from_secs(7);
const TIMEOUTS: &str = "handshake = \"4s\"\nheader = \"4s\"\nidle = \"4s\"\nwrite_progress = \"4s\"";
const BIG_BYTES: usize = (24 << 20) + 13;

/// What a client waits for, or is waited for, when the server stops.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Idle,
    HalfAHead,
    /// A response of which it takes nothing.
    Stuck,
    /// A response of which it takes a little all the time.
    Taking,
}

fn open(fixture: &Fixture, transport: Transport, stage: Stage) -> Connection {
    let mut connection = fixture.connect_with_small_window(transport, 64 * 1024);
    connection.get("/small", "").assert_is(200, b"small");
    match stage {
        Stage::Idle => {}
        Stage::HalfAHead => connection.send("GET /big.bin HTTP/1.1\r\nHo"),
        Stage::Stuck => connection.send(get("/big.bin", "Range: bytes=3-\r\n")),
        Stage::Taking => connection.send(get("/big.bin", "Range: bytes=17-\r\n")),
    }
    connection
}

/// Goes on to the end, and compares every byte.
fn finish(mut connection: Connection, stage: Stage, bytes: &[u8]) {
    match stage {
        Stage::Idle => connection.get("/big.bin", "").assert_is(200, bytes),
        Stage::HalfAHead => {
            connection.send("st: localhost\r\n\r\n");
            connection.response().assert_is(200, bytes);
        }
        Stage::Stuck => connection.response().assert_is(206, &bytes[3..]),
        Stage::Taking => {
            let (mut received, mut buffer) = (Vec::new(), [0; 16 * 1024]);
            let head_bytes = loop {
                if let Some(at) = received.windows(4).position(|window| window == b"\r\n\r\n") {
                    break at + 4;
                }
                take_some(&mut connection, &mut buffer, &mut received);
            };
            // About the first 4 MiB slowly, which takes longer than the server is left to itself.
            while received.len() < 4 << 20 {
                take_some(&mut connection, &mut buffer, &mut received);
                thread::sleep(Duration::from_millis(10));
            }
            while received.len() < head_bytes + bytes.len() - 17 {
                take_some(&mut connection, &mut buffer, &mut received);
            }
            assert!(received[head_bytes..] == bytes[17..], "not the file's bytes");
        }
    }
}

fn take_some(connection: &mut Connection, buffer: &mut [u8], received: &mut Vec<u8>) {
    let bytes = connection.receive(buffer).expect("the response goes on");
    assert!(bytes > 0, "cut after {} bytes", received.len());
    received.extend_from_slice(&buffer[..bytes]);
}

#[test]
fn a_server_that_was_stopped_cuts_nobody_and_then_whoever_is_silent() {
    let site = Site::empty();
    let bytes = add_at_rest(&site, "big.bin", BIG_BYTES);
    site.add("small", b"small");
    let fixture = Fixture::start_toml(site, &format!("\n[timeouts]\n{TIMEOUTS}\n"));
    thread::scope(|scope| {
        let go_on = |(connection, stage)| {
            let bytes = &bytes;
            scope.spawn(move || finish(connection, stage, bytes));
        };
        let opened = |stages: &[Stage]| -> Vec<_> {
            let both = stages.iter().flat_map(|stage| Transport::ALL.map(|transport| (transport, *stage)));
            both.map(|(transport, stage)| (open(&fixture, transport, stage), stage)).collect()
        };
        opened(&[Stage::Taking]).into_iter().for_each(go_on);
        let waiting = opened(&[Stage::Stuck, Stage::HalfAHead, Stage::Idle]);
        let (mut shaking, hello) = half_a_handshake(&fixture);
        fixture.server.signal(Signal::STOP);
        thread::sleep(FROZEN);
        fixture.server.signal(Signal::CONT);
        shaking.write_all(&hello).expect("the handshake goes on");
        waiting.into_iter().for_each(go_on);
        let mut header = [0; 5];
        shaking.read_exact(&mut header).expect("the ClientHello is answered");
        assert_eq!(header[0], 22, "by a handshake record");
    });
    for reason in ["write_timeout", "header_timeout", "too_slow"] {
        let closed = fixture.server.metric("linerate_connections_closed_total", &format!("\"{reason}\""));
        assert_eq!(closed, 0.0, "{reason}");
    }
    // The time limits hold as before for a client that is silent from now on.
    let mut stuck = fixture.connect_with_small_window(Transport::Tls, 16 * 1024);
    stuck.send(get("/big.bin", ""));
    let mut silent = fixture.connect(Transport::Tls);
    silent.get("/small", "").assert_is(200, b"small");
    assert_eq!(silent.end(), (Vec::new(), End::Closed));
    // It takes what its kernel has room for: on a busy machine that lasts until the next look at its rate.
    wait_until("the one that takes nothing is cut", || {
        let closed = |reason| fixture.server.metric("linerate_connections_closed_total", reason);
        closed("write_timeout") + closed("too_slow") == 1.0
    });
}

/// A connection with the first half of a ClientHello sent, and the other half.
fn half_a_handshake(fixture: &Fixture) -> (TcpStream, Vec<u8>) {
    let mut hello = ClientSetup::of_version(&fixture.pair, &TLS13).client_hello();
    let rest = hello.split_off(hello.len() / 2);
    let mut stream = connect(fixture.address(Transport::Tls)).expect("the server listens");
    stream.write_all(&hello).expect("it takes bytes");
    (stream, rest)
}
