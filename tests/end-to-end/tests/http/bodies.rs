//! Requests with a body: nobody wants it, and no byte of it is ever taken for a request (INV-BODY-1).

use crate::support::{Connection, End, Fixture, Transport, add_at_rest, get};
use linerate_end_to_end::Site;

const NAME: &str = "one.bin";

fn fixture() -> (Fixture, Vec<u8>) {
    let site = Site::empty();
    let bytes = add_at_rest(&site, NAME, 40_000);
    site.add("secret.bin", b"what the body asks for");
    (Fixture::start(site), bytes)
}

/// A body that would be a request if it were taken for one.
const SMUGGLED: &str = "GET /secret.bin HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn with_length(method: &str, body: &str) -> String {
    format!("{method} /{NAME} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// In chunks of `size` bytes, with a trailer, and with extensions if there are not too many.
fn chunked(method: &str, body: &str, size: usize) -> String {
    let extension = if body.len() / size < 100 { ";name=\"value\"" } else { "" };
    let mut request =
        format!("{method} /{NAME} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    for chunk in body.as_bytes().chunks(size) {
        request += &format!("{:X}{extension}\r\n{}\r\n", chunk.len(), std::str::from_utf8(chunk).unwrap());
    }
    request + "0\r\nTrailer: GET /secret.bin HTTP/1.1\r\n\r\n"
}

fn expected(connection: &mut Connection, method: &str, bytes: &[u8]) {
    let response = connection.response();
    if method == "GET" {
        response.assert_is(200, bytes);
    } else {
        assert_eq!(response.status, 405);
        assert_eq!(response.expect("Allow"), "GET, HEAD, OPTIONS");
    }
    assert!(!response.closes(), "{}", response.head);
}

#[test]
fn a_body_is_skipped_and_the_next_request_answered() {
    let (fixture, bytes) = fixture();
    let long = SMUGGLED.repeat(400);
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for method in ["GET", "POST", "PUT"] {
            for body in [SMUGGLED, &long] {
                for request in [
                    with_length(method, body),
                    chunked(method, body, 7),
                    chunked(method, body, SMUGGLED.len()),
                    chunked(method, body, 1 << 16),
                ] {
                    connection.send(request + &get(&format!("/{NAME}"), "Range: bytes=9-29\r\n"));
                    expected(&mut connection, method, &bytes);
                    connection.response().assert_is(206, &bytes[9..30]);
                }
            }
        }
    }
}

#[test]
fn a_body_may_come_after_the_answer_and_in_pieces() {
    let (fixture, bytes) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for request in [with_length("POST", SMUGGLED), chunked("POST", SMUGGLED, 11)] {
            let head_bytes = request.find("\r\n\r\n").unwrap() + 4;
            connection.send(&request[..head_bytes]);
            expected(&mut connection, "POST", &bytes);
            for piece in request.as_bytes()[head_bytes..].chunks(3) {
                connection.send(piece);
            }
            connection.get(&format!("/{NAME}"), "").assert_is(200, &bytes);
        }
    }
}

#[test]
fn bodies_whose_end_is_in_doubt_end_the_connection() {
    let (fixture, _) = fixture();
    let head = format!("POST /{NAME} HTTP/1.1\r\nHost: localhost\r\n");
    let refused = [
        (format!("{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}"), 400),
        (format!("{head}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello{SMUGGLED}"), 400),
        (format!("{head}Content-Length: +5\r\n\r\nhello{SMUGGLED}"), 400),
        (format!("{head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n{SMUGGLED}"), 501),
        (format!("{head}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n{SMUGGLED}"), 400),
        (format!("{head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{SMUGGLED}"), 400),
    ];
    for transport in Transport::ALL {
        for (request, status) in &refused {
            let mut connection = fixture.connect(transport);
            connection.send(request);
            let response = connection.response();
            assert_eq!(response.status, *status, "{request}");
            assert!(response.closes());
            assert_eq!(connection.end(), (Vec::new(), End::Closed), "{request}");
        }
    }
}

#[test]
fn malformed_chunks_end_the_connection_behind_the_answer() {
    let (fixture, _) = fixture();
    for transport in Transport::ALL {
        for chunks in
            ["zz\r\n", "5\nhello\r\n0\r\n\r\n", "5\r\nhelloXX0\r\n\r\n", "fffffffffffffffff\r\n", "-1\r\n"]
        {
            let mut connection = fixture.connect(transport);
            connection.send(format!(
                "POST /{NAME} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{SMUGGLED}"
            ));
            assert_eq!(connection.response().status, 405, "{chunks:?}");
            connection.finish_sending();
            assert_eq!(connection.end().0, b"", "{transport:?} {chunks:?}");
        }
    }
}

#[test]
fn a_body_too_long_to_skip_ends_the_connection() {
    let (fixture, _) = fixture();
    for transport in Transport::ALL {
        for body in ["Content-Length: 1048577", "Content-Length: 18446744073709551615"] {
            let mut connection = fixture.connect(transport);
            connection.send(format!("POST /{NAME} HTTP/1.1\r\nHost: localhost\r\n{body}\r\n\r\n{SMUGGLED}"));
            let response = connection.response();
            assert_eq!(response.status, 405);
            assert!(response.closes(), "{}", response.head);
            connection.finish_sending();
            assert_eq!(connection.end().0, b"", "{transport:?}");
        }
        // The largest that is skipped.
        let mut connection = fixture.connect(transport);
        connection
            .send(format!("POST /{NAME} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n"));
        connection.send(vec![b'x'; 1 << 20]);
        assert_eq!(connection.response().status, 405);
        connection.get("/secret.bin", "").assert_is(200, b"what the body asks for");
    }
}

#[test]
fn a_client_that_waits_for_continue_is_answered_at_once() {
    let (fixture, bytes) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        let head = format!("POST /{NAME} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n");
        connection.send(format!("{head}Content-Length: 100000\r\n\r\n"));
        let response = connection.response();
        assert_eq!(response.status, 405);
        // It may send the body all the same or not: what comes next means nothing.
        assert!(response.closes(), "{}", response.head);
        connection.finish_sending();
        assert_eq!(connection.end().0, b"");

        let mut connection = fixture.connect(transport);
        connection.get(&format!("/{NAME}"), "Expect: 100-continue\r\n").assert_is(200, &bytes);
        assert_eq!(connection.get(&format!("/{NAME}"), "Expect: miracles\r\n").status, 417);
    }
}
