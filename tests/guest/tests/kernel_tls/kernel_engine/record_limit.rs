//! The limit of records under one key: a transfer that is far longer goes through many keys in the kernel, or, where
//! the kernel takes no new one, through many on the user engine.

use super::fixture::Fixture;
use linerate_guest_tests::Kernel;
use rustls::version::{TLS12, TLS13};

/// 100 MB, but where there is nothing new to see: the user engine's keys are tested on the host, too.
const LENGTH_BYTES: usize = 100_000_003;
const LENGTH_ELSEWHERE_BYTES: usize = 20_000_003;
const RECORDS_PER_KEY: usize = 50;

#[test]
fn a_transfer_goes_through_many_keys() {
    let Some(fixture) = Fixture::new("a_transfer_goes_through_many_keys") else { return };
    let kernel_updates = Kernel::running().takes_new_keys();
    let length_bytes = if kernel_updates { LENGTH_BYTES } else { LENGTH_ELSEWHERE_BYTES };
    let bytes = fixture.site.add_pattern("film.bin", length_bytes);
    let server = fixture.start_with(&format!("[tls]\nrecords_per_key = {RECORDS_PER_KEY}"));
    let before = fixture.statistics();
    let mut client = fixture.client(&TLS13).connect(server.address());
    assert!(client.get("film.bin").body == bytes, "every byte, on every kernel");
    let updates = server.metric("linerate_tls_key_updates_total", r#"direction="sent""#);
    assert!(updates >= (length_bytes / 16_384 / RECORDS_PER_KEY) as f64, "{updates}");
    if kernel_updates {
        assert_eq!(before.moved("TlsTxSw"), 1);
        let by_kernel = before.moved("TlsTxRekeyOk");
        assert!(by_kernel as f64 >= updates - 2.0, "{by_kernel} of {updates} in the kernel");
        assert!(client.get("65543.bin").body == fixture.site.bytes("65543.bin"));
    }
    assert_eq!(before.moved("TlsTxRekeyError"), 0);
    assert_eq!(before.new_faults(), []);
}

#[test]
fn what_fits_under_a_key_is_whole_and_ends_cleanly() {
    let Some(fixture) = Fixture::new("what_fits_under_a_key_is_whole_and_ends_cleanly") else { return };
    let server = fixture.start_with(&format!("[tls]\nrecords_per_key = {RECORDS_PER_KEY}"));
    // TLS 1.2 has no key update; half of what a key can carry fits in any case.
    let mut client = fixture.client(&TLS12).connect(server.address());
    let mut responses = 0;
    let end = loop {
        let request = b"GET /131071.bin HTTP/1.1\r\nHost: localhost\r\n\r\n";
        match client.send(request).and_then(|()| client.read_response()) {
            Ok(response) => assert!(response.body == fixture.site.bytes("131071.bin")),
            Err(error) => break error,
        }
        responses += 1;
    };
    assert!(responses >= 2, "{responses}");
    assert_eq!(end.kind(), std::io::ErrorKind::ConnectionAborted, "close_notify: {end}");
}
