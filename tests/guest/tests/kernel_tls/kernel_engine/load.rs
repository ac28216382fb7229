//! Many connections, promoted at random moments while others send; and a reload in the middle.

use super::fixture::{Dice, Fixture, LARGE};
use linerate_end_to_end::{Client, Site, wait_until};
use rustls::version::{TLS12, TLS13};
use std::{net::SocketAddr, thread};

/// Small files, larger ones, and one, the last, that promotes every connection that is not promoted yet.
const LENGTHS: [usize; 8] = [1, 2, 16_383, 16_385, 65_543, 262_145, 524_289, 1_048_577];

#[test]
fn two_hundred_connections_are_promoted_at_random_moments() {
    const CONNECTIONS: usize = 200;
    const SIDE_BY_SIDE: usize = 20;
    let Some(fixture) = Fixture::new("two_hundred_connections_are_promoted_at_random_moments") else {
        return;
    };
    // In the middle of responses, at offsets that depend on what went before.
    let server = fixture.start_with("[kernel_engine]\nafter = \"200KiB\"");
    let before = fixture.statistics();
    thread::scope(|scope| {
        for lane in 0..SIDE_BY_SIDE {
            let (fixture, address) = (&fixture, server.address());
            scope.spawn(move || {
                let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ (lane as u64 + 1));
                for _ in 0..CONNECTIONS / SIDE_BY_SIDE {
                    ask_at_random(fixture, address, &mut dice);
                }
            });
        }
    });
    assert_eq!(before.moved("TlsTxSw"), CONNECTIONS as u64);
    assert_eq!(before.new_faults(), []);
    wait_until("the kernel has let all of them go", || fixture.statistics().of("TlsCurrTxSw") == 0);
}

/// Some requests, alone or several at once, of which one is of a large file: the moment of promotion.
fn ask_at_random(fixture: &Fixture, address: SocketAddr, dice: &mut Dice) {
    let version = if dice.below(2) == 0 { &TLS12 } else { &TLS13 };
    let mut client = fixture.client(version).connect(address);
    let requests = 2 + dice.below(3);
    let large_at = dice.below(requests);
    let names: Vec<String> = (0..requests)
        .map(|index| {
            let choice = if index == large_at { 7 } else { dice.below(6) as usize };
            Site::name_for(LENGTHS[choice])
        })
        .collect();
    if dice.below(2) == 0 {
        for name in &names {
            check(fixture, &mut client, name);
        }
    } else {
        let pipelined: String =
            names.iter().map(|name| format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n")).collect();
        client.send(pipelined.as_bytes()).expect("requests can be sent");
        for name in &names {
            let response = client.read_response().expect("a whole response");
            assert!(response.body == fixture.site.bytes(name), "{name} of {names:?}");
        }
    }
}

#[track_caller]
fn check(fixture: &Fixture, client: &mut Client, name: &str) {
    assert!(client.get(name).body == fixture.site.bytes(name), "{name}");
}

#[test]
fn a_reload_disturbs_nobody() {
    const CONNECTIONS: usize = 6;
    let Some(fixture) = Fixture::new("a_reload_disturbs_nobody") else { return };
    let server = fixture.setup().start();
    let before = fixture.statistics();
    let large = fixture.site.bytes(LARGE);
    let mut clients: Vec<Client> = (0..CONNECTIONS)
        .map(|index| {
            let version = if index % 2 == 0 { &TLS13 } else { &TLS12 };
            let mut client = fixture.client(version).connect(server.address());
            client.request(LARGE);
            client
        })
        .collect();
    // Each has read a part when the reload comes.
    let parts: Vec<Vec<u8>> =
        clients.iter_mut().map(|client| client.read_exactly(300_000).unwrap()).collect();
    server.reload();
    for (client, mut received) in clients.iter_mut().zip(parts) {
        let body_from = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let missing = large.len() - (received.len() - body_from);
        received.extend(client.read_exactly(missing).unwrap());
        assert!(received[body_from..] == large[..]);
        check(&fixture, client, "65543.bin");
    }
    // A connection that comes afterwards is promoted as well.
    let mut late = fixture.client(&TLS13).connect(server.address());
    check(&fixture, &mut late, LARGE);
    assert_eq!(before.moved("TlsTxSw"), CONNECTIONS as u64 + 1);
}
