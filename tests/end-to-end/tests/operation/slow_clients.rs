//! Clients that take their time: those that hold a place for nothing are cut, those that merely are slow are served
//! every byte in its order (INV-PEER-2, INV-ORDER-1).

use crate::support::{Connection, End, Fixture, Transport, add_at_rest, get};
use linerate_end_to_end::{Site, comes_true};
use std::{
    thread,
    time::{Duration, Instant},
};

fn fixture(timeouts: &str) -> (Fixture, Vec<u8>) {
    let site = Site::empty();
    let bytes = add_at_rest(&site, "big.bin", 24 << 20);
    site.add("small", b"small");
    (Fixture::start_toml(site, &format!("\n[timeouts]\n{timeouts}\n")), bytes)
}

/// Waits until `count` connections have been closed for `reason`, and says for what they were if that does not come.
#[track_caller]
fn closed(fixture: &Fixture, reason: &str, count: f64) {
    const NAME: &str = "linerate_connections_closed_total";
    if !comes_true(|| fixture.server.metric(NAME, reason) == count) {
        let page = fixture.server.metrics();
        let closed = page.lines().filter(|line| line.starts_with(NAME) && !line.ends_with(" 0"));
        panic!("not {count} for {reason}, but {:#?}", closed.collect::<Vec<_>>());
    }
}

#[test]
fn a_head_that_drips_in_is_cut() {
    let (fixture, _) = fixture("header = \"800ms\"");
    for (count, transport) in Transport::ALL.into_iter().enumerate() {
        let mut connection = fixture.connect(transport);
        connection.get("/small", "").assert_is(200, b"small");
        let started = Instant::now();
        let drip = get("/small", &format!("X-Drip: {}\r\n", "x".repeat(500)));
        let cut = drip.bytes().find(|byte| {
            thread::sleep(Duration::from_millis(25));
            connection.try_send(&[*byte]).is_err()
        });
        assert!(cut.is_some() || connection.end().0.is_empty(), "{transport:?}: nothing is answered");
        let took = started.elapsed();
        assert!(
            (Duration::from_millis(700)..Duration::from_secs(6)).contains(&took),
            "{transport:?}: {took:?}"
        );
        closed(&fixture, "header_timeout", count as f64 + 1.0);
    }
}

/// Its first byte comes with the request before: the time runs from there, and nothing that drips in behind extends it.
#[test]
fn a_head_that_begins_behind_another_request_is_cut() {
    let (fixture, _) = fixture("header = \"800ms\"");
    for (count, transport) in Transport::ALL.into_iter().enumerate() {
        let mut connection = fixture.connect(transport);
        connection.send(format!("{}GET /small", get("/small", "")));
        connection.response().assert_is(200, b"small");
        let started = Instant::now();
        let cut = (0..200).find(|_| {
            thread::sleep(Duration::from_millis(25));
            connection.try_send(b"x").is_err()
        });
        assert!(cut.is_some() || connection.end().0.is_empty(), "{transport:?}: nothing is answered");
        assert!(started.elapsed() < Duration::from_secs(6), "{transport:?}: {:?}", started.elapsed());
        closed(&fixture, "header_timeout", count as f64 + 1.0);
    }
}

#[test]
fn an_idle_connection_is_closed_as_it_should_be() {
    let (fixture, _) = fixture("idle = \"1s\"");
    for (count, transport) in Transport::ALL.into_iter().enumerate() {
        let mut connection = fixture.connect(transport);
        connection.get("/small", "").assert_is(200, b"small");
        let started = Instant::now();
        assert_eq!(connection.end(), (Vec::new(), End::Closed), "{transport:?}");
        let took = started.elapsed();
        assert!(
            (Duration::from_millis(750)..Duration::from_secs(6)).contains(&took),
            "{transport:?}: {took:?}"
        );
        closed(&fixture, "idle_timeout", count as f64 + 1.0);
    }
}

#[test]
fn a_client_that_takes_nothing_is_cut() {
    let (fixture, bytes) = fixture("write_progress = \"700ms\"");
    for (count, transport) in Transport::ALL.into_iter().enumerate() {
        let mut connection = fixture.connect_with_small_window(transport, 16 * 1024);
        connection.send(get("/big.bin", ""));
        closed(&fixture, "write_timeout", count as f64 + 1.0);
        let response = connection.response();
        assert!(!response.complete && response.body.len() < bytes.len(), "{transport:?}");
        assert!(response.body == bytes[..response.body.len()], "{transport:?}: what came is right");
    }
}

/// Reads `bytes` at about `bytes_per_second`.
fn read_slowly(connection: &mut Connection, bytes: &[u8], bytes_per_second: usize) {
    let mut received = Vec::new();
    let mut buffer = vec![0; bytes_per_second / 20];
    let head_bytes = loop {
        if let Some(at) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        let count = connection.receive(&mut buffer).expect("a head");
        assert!(count > 0);
        received.extend_from_slice(&buffer[..count]);
    };
    let mut body = received.split_off(head_bytes);
    while body.len() < bytes.len() {
        thread::sleep(Duration::from_millis(50));
        let mut filled = 0;
        while filled < buffer.len() && body.len() < bytes.len() {
            let count = connection.receive(&mut buffer[filled..]).expect("the server goes on");
            assert!(count > 0, "cut after {} of {} bytes", body.len(), bytes.len());
            body.extend_from_slice(&buffer[filled..filled + count]);
            filled += count;
        }
    }
    assert!(body.starts_with(bytes));
}

/// It takes something all the time, but less than it has to in the mean.
#[test]
fn a_client_that_takes_too_little_is_cut() {
    let (fixture, bytes) = fixture("write_progress = \"1s\"\n[limits]\nleast_rate = \"1MiB\"");
    for (count, transport) in Transport::ALL.into_iter().enumerate() {
        let mut connection = fixture.connect_with_small_window(transport, 16 * 1024);
        connection.send(get("/big.bin", ""));
        let (mut received_bytes, mut buffer) = (0, [0; 8 * 1024]);
        let started = Instant::now();
        // About 160 KiB a second.
        while let Ok(taken_bytes @ 1..) = connection.receive(&mut buffer) {
            received_bytes += taken_bytes;
            assert!(received_bytes < bytes.len(), "{transport:?}: served to the end");
            thread::sleep(Duration::from_millis(50));
        }
        assert!(started.elapsed() >= Duration::from_secs(1), "{transport:?}: {:?}", started.elapsed());
        closed(&fixture, "too_slow", count as f64 + 1.0);
        assert_eq!(fixture.server.metric("linerate_connections_closed_total", "write_timeout"), 0.0);
    }
    // A client that reads as fast as it can is not cut, nor one that pauses between two responses.
    let mut quick = fixture.connect(Transport::Tls);
    for _ in 0..3 {
        quick.get("/big.bin", "").assert_is(200, &bytes);
        thread::sleep(Duration::from_millis(1500));
    }
}

#[test]
fn a_client_slower_than_the_kernels_buffer_is_served_as_long_as_it_goes_on() {
    let (fixture, bytes) = fixture("write_progress = \"2s\"");
    thread::scope(|scope| {
        for transport in Transport::ALL {
            let (fixture, bytes) = (&fixture, &bytes);
            scope.spawn(move || {
                let mut connection = fixture.connect_as_by_ethernet(transport, 16 * 1024);
                connection.send(get("/big.bin", ""));
                // What waits in the kernel, up to 4 MiB, takes it several times as long as it may take nothing.
                read_slowly(&mut connection, &bytes[..900_000], 100_000);
            });
        }
    });
    // Then it takes nothing any more.
    closed(&fixture, "reset", 2.0);
    assert_eq!(fixture.server.metric("linerate_connections_closed_total", "write_timeout"), 0.0);
}

#[test]
fn a_client_that_is_slow_and_goes_on_is_served_to_the_end() {
    let (fixture, bytes) = fixture("write_progress = \"1s\"");
    thread::scope(|scope| {
        for transport in Transport::ALL {
            let (fixture, bytes) = (&fixture, &bytes);
            scope.spawn(move || {
                let mut connection = fixture.connect_with_small_window(transport, 64 * 1024);
                connection.send(get("/big.bin", ""));
                // Six seconds: six times what a client may take that takes nothing.
                read_slowly(&mut connection, bytes, 4 << 20);
            });
        }
    });
    assert_eq!(fixture.server.metric("linerate_connections_closed_total", "write_timeout"), 0.0);
}
