//! Files that shrink, clients that vanish, and clients that take their time.

use super::fixture::{Fixture, LARGE};
use linerate_end_to_end::wait_until;
use rustls::version::{TLS12, TLS13};
use std::{fs::File, io, thread, time::Duration};

/// Far more than the sockets between server and client hold.
const LENGTH_BYTES: usize = 12 << 20;
/// Little enough that the server waits for the client most of the time.
const RECEIVE_BUFFER_BYTES: usize = 32 * 1024;

#[test]
fn a_file_cut_short_cuts_the_connection() {
    const LEFT_BYTES: usize = (9 << 20) + 12_345;
    let Some(fixture) = Fixture::new("a_file_cut_short_cuts_the_connection") else { return };
    let server = fixture.setup().start();
    for (version, name) in [(&TLS13, "film13.bin"), (&TLS12, "film12.bin")] {
        let bytes = fixture.site.add_pattern(name, LENGTH_BYTES);
        let before = fixture.statistics();
        let mut client =
            fixture.client(version).connect_with_receive_buffer(server.address(), RECEIVE_BUFFER_BYTES);
        client.request(name);
        let mut received = client.read_exactly(100_000).unwrap();
        File::options()
            .write(true)
            .open(fixture.site.path().join(name))
            .unwrap()
            .set_len(LEFT_BYTES as u64)
            .unwrap();
        let ended_cleanly = match client.read_to_end() {
            Ok((rest, ended_cleanly)) => {
                received.extend(rest);
                ended_cleanly
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
                false
            }
        };
        assert!(!ended_cleanly, "{version:?}: close_notify vouches for a broken response");
        let body_from = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let body = &received[body_from..];
        assert!(body.len() <= LEFT_BYTES, "{version:?}: {} bytes of {LEFT_BYTES}", body.len());
        assert!(body == &bytes[..body.len()], "{version:?}: what came is what was there");
        assert_eq!(before.moved("TlsTxSw"), 1);
        server.wait_for_stderr(&format!("/{name}: the file was cut short at byte {LEFT_BYTES} "));
    }
}

#[test]
fn a_client_that_resets_harms_nobody() {
    let Some(fixture) = Fixture::new("a_client_that_resets_harms_nobody") else { return };
    fixture.site.add_pattern("film.bin", LENGTH_BYTES);
    let server = fixture.setup().start();
    let before = fixture.statistics();
    let mut bystander = fixture.client(&TLS13).connect(server.address());
    bystander.request(LARGE);
    for round in 0..10 {
        let version = if round % 2 == 0 { &TLS13 } else { &TLS12 };
        let mut client =
            fixture.client(version).connect_with_receive_buffer(server.address(), RECEIVE_BUFFER_BYTES);
        client.request("film.bin");
        client.read_exactly(1 + 100_000 * round).unwrap();
        client.reset();
    }
    assert!(bystander.read_response().unwrap().body == fixture.site.bytes(LARGE));
    assert_eq!(before.moved("TlsTxSw"), 11);
    wait_until("the kernel has let the ten go", || fixture.statistics().of("TlsCurrTxSw") == 1);
    assert!(bystander.get("65543.bin").body == fixture.site.bytes("65543.bin"));
}

#[test]
fn a_slow_reader_gets_every_byte_and_close_notify() {
    let Some(fixture) = Fixture::new("a_slow_reader_gets_every_byte_and_close_notify") else { return };
    let bytes = fixture.site.add_pattern("film.bin", 4_000_003);
    let server = fixture.setup().start();
    for version in [&TLS13, &TLS12] {
        let before = fixture.statistics();
        let mut client =
            fixture.client(version).connect_with_receive_buffer(server.address(), RECEIVE_BUFFER_BYTES);
        client.send(b"GET /film.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        // Odd pieces, with pauses in which the socket fills up.
        let mut received = Vec::new();
        for piece in 0..40 {
            received.extend(client.read_exactly(1 + 9_973 * (piece % 7)).unwrap());
            thread::sleep(Duration::from_millis(10));
        }
        let (rest, ended_cleanly) = client.read_to_end().unwrap();
        received.extend(rest);
        let body_from = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        assert!(received[body_from..] == bytes[..], "{version:?}");
        assert!(ended_cleanly, "{version:?}: no close_notify behind a full socket");
        assert_eq!(before.moved("TlsTxSw"), 1, "{version:?}");
        assert_eq!(before.new_faults(), []);
    }
}
