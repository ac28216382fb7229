//! KeyUpdate on promoted connections. What the client sends is taken on every kernel: receiving stays in user space.
//! What it asks for in return needs a kernel that takes a new key; on others the connection ends as it should, behind
//! a response that is whole.

use super::fixture::{Fixture, LARGE};
use linerate_end_to_end::{Client, is_installed, skip};
use linerate_guest_tests::{Kernel, OpensslSession};
use rustls::version::TLS13;

/// `k`: openssl changes its own keys. `K`: it asks for ours, too.
#[test]
fn openssl_updates_keys_and_asks_for_new_ones() {
    const NAME: &str = "openssl_updates_keys_and_asks_for_new_ones";
    let Some(fixture) = Fixture::new(NAME) else { return };
    if !is_installed("openssl") {
        return skip(NAME, "openssl is not installed");
    }
    let server = fixture.setup().start();
    let before = fixture.statistics();
    let large = fixture.site.bytes(LARGE);
    let mut openssl = OpensslSession::connect(server.address(), &fixture.pair);
    for _ in 0..3 {
        openssl.get(LARGE, &large);
        openssl.update_keys(false);
    }
    openssl.get("65543.bin", &fixture.site.bytes("65543.bin"));
    assert_eq!(server.metric("linerate_tls_key_updates_total", r#"direction="received""#), 3.0);
    openssl.update_keys(true);
    if Kernel::running().takes_new_keys() {
        openssl.get(LARGE, &large);
        openssl.update_keys(true);
        openssl.get("65543.bin", &fixture.site.bytes("65543.bin"));
        assert_eq!(before.moved("TlsTxRekeyOk"), 2);
        assert_eq!(server.metric("linerate_kernel_tls_key_updates_total", ""), 2.0);
    } else {
        openssl.wait_for_end();
    }
    assert_eq!(before.moved("TlsTxSw"), 1);
    assert_eq!(before.new_faults(), []);
}

/// Reads a response of which `received` has come, the client asking for new keys on the way.
fn read_with_updates(client: &mut Client, body_bytes: usize, pieces: usize) -> Vec<u8> {
    let piece_bytes = body_bytes / (pieces + 1);
    let mut received = Vec::new();
    for _ in 0..pieces {
        received.extend(client.read_exactly(piece_bytes).unwrap());
        client.refresh_keys();
    }
    let body_from = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let missing = body_bytes - (received.len() - body_from);
    received.extend(client.read_exactly(missing).unwrap());
    received.split_off(body_from)
}

#[test]
fn a_client_asks_for_new_keys_in_the_middle_of_a_response() {
    let Some(fixture) = Fixture::new("a_client_asks_for_new_keys_in_the_middle_of_a_response") else {
        return;
    };
    let bytes = fixture.site.add_pattern("film.bin", 6_000_001);
    let server = fixture.setup().start();
    let before = fixture.statistics();
    let mut client = fixture.client(&TLS13).connect_with_receive_buffer(server.address(), 64 * 1024);
    client.request("film.bin");
    assert!(read_with_updates(&mut client, bytes.len(), 10) == bytes, "every byte, on every kernel");
    assert_eq!(before.moved("TlsTxSw"), 1);
    if Kernel::running().takes_new_keys() {
        assert!(client.get("65543.bin").body == fixture.site.bytes("65543.bin"));
        assert!(before.moved("TlsTxRekeyOk") >= 1);
        assert_eq!(before.moved("TlsTxRekeyError"), 0);
    } else {
        assert_eq!(client.read_to_end().unwrap(), (Vec::new(), true), "close_notify, and nothing before it");
    }
    assert_eq!(before.new_faults(), []);
}
