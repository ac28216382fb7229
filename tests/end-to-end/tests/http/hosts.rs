//! Which host a request is for (RFC 9112 section 3.2, RFC 9110 section 7.4; INV-HOST-1), methods, and the forms of a
//! target.

use crate::support::{Connection, End, Fixture, Transport, add_at_rest};
use linerate_end_to_end::Site;

fn fixture() -> (Fixture, Vec<u8>) {
    let site = Site::empty();
    let bytes = add_at_rest(&site, "a.bin", 500);
    (Fixture::start(site), bytes)
}

fn refused(connection: &mut Connection, request: &str, status: u16) {
    connection.send(request);
    let response = connection.response();
    assert_eq!(response.status, status, "{request}");
    assert!(response.closes(), "{}", response.head);
    assert_eq!(connection.end(), (Vec::new(), End::Closed));
}

#[test]
fn a_request_without_exactly_one_sound_host_is_a_400() {
    let (fixture, _) = fixture();
    for transport in Transport::ALL {
        for request in [
            "GET /a.bin HTTP/1.1\r\n\r\n",
            "GET /a.bin HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
            "GET /a.bin HTTP/1.1\r\nHost: localhost\r\nhost: other\r\n\r\n",
            "GET /a.bin HTTP/1.1\r\nHost: local host\r\n\r\n",
            "GET /a.bin HTTP/1.1\r\nHost: localhost/a\r\n\r\n",
            "GET /a.bin HTTP/1.1\r\nHost: user@localhost\r\n\r\n",
            "GET /a.bin HTTP/1.1\r\nHost: localhost:99999\r\n\r\n",
            "GET http://localhost/a.bin HTTP/1.1\r\n\r\n",
        ] {
            refused(&mut fixture.connect(transport), request, 400);
        }
    }
}

#[test]
fn a_host_that_the_certificate_does_not_cover_is_misdirected() {
    let (fixture, bytes) = fixture();
    let mut connection = fixture.connect(Transport::Tls);
    for host in ["other.example", "localhost.example", "sub.localhost", "127.0.0.2"] {
        for (target, host) in [("/a.bin", host), (&*format!("https://{host}/a.bin"), "localhost")] {
            connection.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(connection.response().status, 421, "{target} {host}");
        }
    }
    for host in ["localhost", "LOCALHOST:8443", "localhost.", "127.0.0.1", "127.0.0.1:443"] {
        connection.send(format!("GET /a.bin HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        connection.response().assert_is(200, &bytes);
    }
    // In the clear there is no certificate to mislead anybody: the default site answers for every name.
    let mut connection = fixture.connect(Transport::Plain);
    connection.send("GET /a.bin HTTP/1.1\r\nHost: other.example\r\n\r\n");
    connection.response().assert_is(200, &bytes);
}

#[test]
fn a_target_may_be_absolute_and_wins_over_host() {
    let (fixture, bytes) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for target in ["http://localhost/a.bin", "https://localhost:1234/a.bin", "HTTPS://LocalHost/a.bin?q"]
        {
            connection.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            connection.response().assert_is(200, &bytes);
        }
        connection.send("GET https://localhost/a.bin HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n");
        connection.response().assert_is(200, &bytes);
    }
}

#[test]
fn targets_of_no_known_form_are_a_400() {
    let (fixture, _) = fixture();
    for transport in Transport::ALL {
        for target in ["*", "a.bin", "ftp://localhost/a.bin", "localhost:443", "/a.bin#top"] {
            let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            refused(&mut fixture.connect(transport), &request, 400);
        }
    }
}

#[test]
fn http_1_0_needs_no_host() {
    let (fixture, bytes) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        connection.send("GET /a.bin HTTP/1.0\r\n\r\n");
        connection.response().assert_is(200, &bytes);
        assert_eq!(connection.end(), (Vec::new(), End::Closed));
    }
}

#[test]
fn other_methods_are_told_what_is_allowed() {
    let (fixture, bytes) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for method in ["POST", "PUT", "DELETE", "PATCH", "PROPFIND", "get", "TRACE"] {
            connection.send(format!("{method} /a.bin HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            let response = connection.response();
            assert_eq!(response.status, 405, "{method}");
            assert_eq!(response.expect("Allow"), "GET, HEAD, OPTIONS");
        }
        for target in ["*", "/a.bin", "http://localhost"] {
            connection.send(format!("OPTIONS {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            let response = connection.response();
            response.assert_is(200, b"");
            assert_eq!(response.expect("Allow"), "GET, HEAD, OPTIONS");
        }
        connection.get("/a.bin", "").assert_is(200, &bytes);
    }
}

#[test]
fn what_is_no_http_1_is_refused() {
    let (fixture, _) = fixture();
    for transport in Transport::ALL {
        for (request, status) in [
            ("GET /a.bin HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
            ("GET /a.bin HTTP/1.22\r\nHost: localhost\r\n\r\n", 400),
            ("GET /a.bin\r\nHost: localhost\r\n\r\n", 400),
            ("GET  /a.bin HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
            ("GET /a.bin HTTP/1.1\nHost: localhost\n\n", 400),
            ("GET /a.bin HTTP/1.1\r\nHost: localhost\r\n folded: yes\r\n\r\n", 400),
            ("GET /a.bin HTTP/1.1\r\nHost: localhost\r\nName : value\r\n\r\n", 400),
            ("GET /a.bin HTTP/1.1\r\nHost: localhost\r\nName: va\0lue\r\n\r\n", 400),
            ("\u{1}\u{2}\u{3}\u{4}\r\n\r\n", 400),
        ] {
            refused(&mut fixture.connect(transport), request, status);
        }
    }
}

#[test]
fn later_minor_versions_are_answered_as_1_1() {
    let (fixture, bytes) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        // Persistent, as in HTTP/1.1, and at every split.
        for minor in [2, 9] {
            let request = format!("GET /a.bin HTTP/1.{minor}\r\nHost: localhost\r\n\r\n");
            connection.send(&request);
            connection.response().assert_is(200, &bytes);
            for byte in request.as_bytes() {
                connection.send([*byte]);
            }
            connection.response().assert_is(200, &bytes);
        }
        connection.get("/a.bin", "").assert_is(200, &bytes);
    }
}
