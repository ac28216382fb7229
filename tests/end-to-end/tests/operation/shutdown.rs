//! QUIT drains, TERM and INT stop.

use crate::support::{Connection, End, Fixture, Transport, add_at_rest, get};
use linerate_end_to_end::{Signal, Site, curl, wait_until};
use std::{
    net::TcpStream,
    time::{Duration, Instant},
};

const LENGTH: usize = 24 << 20;

fn fixture(timeouts: &str) -> (Fixture, Vec<u8>) {
    let site = Site::empty();
    let bytes = add_at_rest(&site, "big.bin", LENGTH);
    site.add("small", b"small");
    (Fixture::start_toml(site, &format!("\n[timeouts]\n{timeouts}\n")), bytes)
}

/// A download that has begun and then rests.
fn begun(fixture: &Fixture, transport: Transport) -> (Connection, Vec<u8>) {
    let mut connection = fixture.connect_with_small_window(transport, 32 * 1024);
    connection.send(get("/big.bin", ""));
    let mut buffer = [0; 4096];
    let count = connection.receive(&mut buffer).expect("the server sends");
    assert!(buffer.starts_with(b"HTTP/1.1 200 "));
    (connection, buffer[..count].to_vec())
}

fn health(fixture: &Fixture) -> String {
    let url = format!("http://{}/healthz", fixture.server.admin());
    curl(["--max-time", "5", "--write-out", " %{http_code}", &url]).run().text()
}

#[test]
fn quit_finishes_what_is_under_way_and_takes_nothing_new() {
    let (mut fixture, bytes) = fixture("drain = \"60s\"");
    assert_eq!(health(&fixture), "ok\n 200");
    let downloads = Transport::ALL.map(|transport| begun(&fixture, transport));
    let mut idle = Transport::ALL.map(|transport| {
        let mut connection = fixture.connect(transport);
        connection.get("/small", "").assert_is(200, b"small");
        connection
    });
    fixture.server.signal(Signal::QUIT);
    for connection in &mut idle {
        assert_eq!(connection.end(), (Vec::new(), End::Closed), "idle connections are closed properly");
    }
    for transport in Transport::ALL {
        let address = fixture.address(transport);
        wait_until("new connections are refused", || TcpStream::connect(address).is_err());
    }
    assert_eq!(health(&fixture), "draining\n 503");
    for (mut connection, beginning) in downloads {
        let (rest, end) = connection.end();
        let received = [beginning, rest].concat();
        let head_bytes = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        assert!(received[head_bytes..] == bytes, "{} bytes", received.len() - head_bytes);
        assert_eq!(end, End::Closed);
    }
    assert!(fixture.server.wait_for_end().success());
}

#[test]
fn a_request_that_comes_while_draining_is_told_to_close() {
    let (mut fixture, bytes) = fixture("drain = \"60s\"");
    for transport in Transport::ALL {
        assert!(fixture.connect(transport).get("/small", "").complete);
    }
    let (mut connection, mut received) = begun(&fixture, Transport::Tls);
    // Asked before the drain, answered during it.
    connection.send(get("/small", ""));
    fixture.server.signal(Signal::QUIT);
    fixture.server.wait_for_stderr("draining");
    let (rest, end) = connection.end();
    received.extend_from_slice(&rest);
    let head_bytes = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let (body, second) = received[head_bytes..].split_at(bytes.len());
    assert!(body == bytes);
    let second = String::from_utf8_lossy(second);
    assert!(second.contains("Connection: close\r\n") && second.ends_with("\r\n\r\nsmall"), "{second:?}");
    assert_eq!(end, End::Closed);
    assert!(fixture.server.wait_for_end().success());
}

/// What a client sends on is not read any more, and must not destroy what it has not read yet (RFC 9112 9.6).
#[test]
fn a_client_that_pipelines_gets_the_last_response_whole() {
    for transport in Transport::ALL {
        let (mut fixture, bytes) = fixture("drain = \"60s\"");
        let (mut connection, mut received) = begun(&fixture, transport);
        connection.send(get("/big.bin", ""));
        // More than the server reads ahead, so that some of it lies unread when the server closes.
        connection.send(get("/small", "").repeat(12_000));
        fixture.server.signal(Signal::QUIT);
        fixture.server.wait_for_stderr("draining");
        let (rest, end) = connection.end();
        received.extend_from_slice(&rest);
        for expected in ["HTTP/1.1 200 ", "Connection: close\r\n"] {
            let head_bytes = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
            let head: Vec<u8> = received.drain(..head_bytes).collect();
            let head = String::from_utf8_lossy(&head);
            assert!(head.contains(expected), "{transport:?}: {head}");
            assert!(received.len() >= bytes.len(), "{transport:?}: {} bytes of a body", received.len());
            assert!(received.drain(..bytes.len()).eq(bytes.iter().copied()), "{transport:?}");
        }
        assert_eq!((received.len(), end), (0, End::Closed), "{transport:?}");
        // The server need not wait any longer for a client that has seen its end.
        drop(connection);
        assert!(fixture.server.wait_for_end().success());
    }
}

/// A request that is on its way when an idle connection is closed draws no reset.
#[test]
fn an_idle_connection_is_closed_so_that_a_late_request_draws_no_reset() {
    let (mut fixture, _) = fixture("drain = \"60s\"");
    let mut idle = Transport::ALL.map(|transport| {
        let mut connection = fixture.connect(transport);
        connection.get("/small", "").assert_is(200, b"small");
        connection
    });
    // It keeps the server from ending.
    let _download = begun(&fixture, Transport::Tls);
    fixture.server.signal(Signal::QUIT);
    wait_until("idle connections are closed", || {
        fixture.server.metric("linerate_connections_closed_total", "drain") == 2.0
    });
    for connection in &mut idle {
        connection.send(get("/small", ""));
        connection.send(get("/small", ""));
        assert_eq!(connection.end(), (Vec::new(), End::Closed));
    }
    fixture.server.signal(Signal::TERM);
    assert!(fixture.server.wait_for_end().success());
}

#[test]
fn draining_has_an_end() {
    let (mut fixture, _) = fixture("drain = \"700ms\"");
    let (mut connection, _) = begun(&fixture, Transport::Tls);
    let started = Instant::now();
    fixture.server.signal(Signal::QUIT);
    assert!(fixture.server.wait_for_end().success());
    let took = started.elapsed();
    assert!((Duration::from_millis(600)..Duration::from_secs(6)).contains(&took), "{took:?}");
    assert_eq!(connection.end().1, End::Cut);
}

#[test]
fn term_and_int_stop_at_once_even_while_draining() {
    for (first, second) in [(Signal::TERM, None), (Signal::INT, None), (Signal::QUIT, Some(Signal::TERM))] {
        let (mut fixture, _) = fixture("drain = \"60s\"");
        let _download = begun(&fixture, Transport::Tls);
        let started = Instant::now();
        fixture.server.signal(first);
        if let Some(second) = second {
            fixture.server.wait_for_stderr("draining");
            fixture.server.signal(second);
        }
        assert!(fixture.server.wait_for_end().success(), "{first:?}");
        assert!(started.elapsed() < Duration::from_secs(5), "{first:?}: {:?}", started.elapsed());
    }
}
