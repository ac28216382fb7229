//! The limit of records under one key: TLS 1.3 takes new keys on the way, TLS 1.2 ends the connection and never sends
//! a wrong byte.

use crate::fixture::Fixture;
use linerate_end_to_end::{ClientSetup, curl};
use rustls::version::{TLS12, TLS13};

#[test]
fn a_transfer_goes_through_many_keys() {
    const LENGTH_BYTES: usize = 40_000_003;
    const RECORDS_PER_KEY: usize = 50;
    let fixture = Fixture::new();
    let expected = fixture.site.add_pattern("large.bin", LENGTH_BYTES);
    let server = fixture.start_with(&format!("[tls]\nrecords_per_key = {RECORDS_PER_KEY}"));
    let updates = || server.metric("linerate_tls_key_updates_total", r#"direction="sent""#);
    let mut client = ClientSetup::of_version(&fixture.pair, &TLS13).connect(server.address());
    assert!(client.get("large.bin").body == expected);
    let of_first = updates();
    assert!(of_first >= (LENGTH_BYTES / 16_384 / RECORDS_PER_KEY) as f64, "{of_first}");
    assert!(client.get("3000001.bin").body == fixture.site.bytes("3000001.bin"));
    fixture.fetch_with_curl(&server, "large.bin", &["--tlsv1.3"]);
    assert!(updates() > 1.9 * of_first);
}

#[test]
fn the_smallest_limit_works_with_updates_from_both_sides() {
    let fixture = Fixture::new();
    let expected = fixture.site.bytes("3000001.bin");
    let server = fixture.start_with("[tls]\nrecords_per_key = 4");
    let mut client = ClientSetup::of_version(&fixture.pair, &TLS13).connect(server.address());
    for _ in 0..10 {
        client.request("3000001.bin");
        client.refresh_keys();
        let response = client.read_response().unwrap();
        client.refresh_keys();
        assert!(response.body == expected);
    }
}

#[test]
fn tls_1_2_ends_with_close_notify_between_responses() {
    let fixture = Fixture::new();
    let expected = fixture.site.bytes("1.bin");
    let server = fixture.start_with("[tls]\nrecords_per_key = 20");
    let setup = ClientSetup::of_version(&fixture.pair, &TLS12);
    let mut client = setup.connect(server.address());
    let mut responses = 0;
    loop {
        let response = client.get("1.bin");
        assert!(response.body == expected);
        responses += 1;
        if response.header("Connection") == Some("close") {
            break;
        }
    }
    assert!((10..=20).contains(&responses), "{responses}");
    assert_eq!(client.read_to_end().unwrap(), (Vec::new(), true));
    // It ends right behind the response that says so, also for a client that ignores it.
    let mut again = setup.connect(server.address());
    for _ in 0..responses {
        assert!(again.get("1.bin").body == expected);
    }
    assert_eq!(again.read_to_end().unwrap(), (Vec::new(), true));
}

#[test]
fn tls_1_2_tells_before_a_response_that_leaves_no_room_for_another() {
    let fixture = Fixture::new();
    let expected = fixture.site.bytes("131071.bin");
    let server = fixture.start_with("[tls]\nrecords_per_key = 24");
    let client = ClientSetup::of_version(&fixture.pair, &TLS12);
    // 8 records and their head: two of them fit, a third does not.
    let mut connection = client.connect(server.address());
    let mut closes = Vec::new();
    for _ in 0..2 {
        let response = connection.get("131071.bin");
        assert!(response.body == expected);
        closes.push(response.header("Connection") == Some("close"));
    }
    assert_eq!(closes, [false, true]);
    assert_eq!(connection.read_to_end().unwrap(), (Vec::new(), true));
    // A range is as long as it is, however long the file.
    let mut connection = client.connect(server.address());
    connection.send(b"GET /131071.bin HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-99\r\n\r\n").unwrap();
    assert_eq!(connection.read_response().unwrap().header("Connection"), None);
    // And a response that does not fit at all says so, too.
    let mut connection = client.connect(server.address());
    connection.request("3000001.bin");
    let (received, _) = connection.read_to_end().unwrap();
    assert!(String::from_utf8_lossy(&received[..1000]).contains("\r\nConnection: close\r\n"));
}

#[test]
fn tls_1_2_never_pads_a_body_that_the_limit_cuts() {
    let fixture = Fixture::new();
    let expected = fixture.site.bytes("3000001.bin");
    let server = fixture.start_with("[tls]\nrecords_per_key = 20");
    let mut client = ClientSetup::of_version(&fixture.pair, &TLS12).connect(server.address());
    client.request("3000001.bin");
    let (received, ended_cleanly) = client.read_to_end().unwrap();
    assert!(ended_cleanly, "no close_notify");
    let body_from = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let body = &received[body_from..];
    assert!(body.len() > 100_000 && body.len() < expected.len(), "{}", body.len());
    assert!(body == &expected[..body.len()]);
    assert_eq!(server.metric("linerate_connections_closed_total", r#"reason="record_limit""#), 1.0);

    // curl notices: 18 is "transfer closed with outstanding read data remaining".
    let partial =
        curl(fixture.trust()).arguments(["--tls-max", "1.2"]).arguments([server.url("3000001.bin")]).run();
    assert_eq!(partial.status.code(), Some(18), "{}", partial.stderr);
    assert!(partial.stdout[..] == expected[..partial.stdout.len()]);
    // And what fits is whole.
    fixture.fetch_with_curl(&server, "131071.bin", &["--tls-max", "1.2"]);
}
