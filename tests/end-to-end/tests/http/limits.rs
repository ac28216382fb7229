//! Limits on a request's head: what fits is served, one byte more is refused in words.

use crate::support::{End, Fixture, Transport};
use linerate_end_to_end::Site;

fn check(limits: &str, requests: &[(String, u16)]) {
    let site = Site::empty();
    site.add("a", b"answer");
    let fixture = Fixture::start_toml(site, limits);
    for transport in Transport::ALL {
        for (request, status) in requests {
            let mut connection = fixture.connect(transport);
            // A server that refuses may close before it has read all.
            let _ = connection.try_send(request.as_bytes());
            let response = connection.response();
            assert_eq!(response.status, *status, "{} bytes: {}", request.len(), response.head);
            if *status == 200 {
                response.assert_is(200, b"answer");
            } else {
                assert!(response.closes());
                assert_eq!(connection.end(), (Vec::new(), End::Closed), "{transport:?}");
            }
        }
    }
}

#[test]
fn long_request_lines_are_a_414() {
    let line = |bytes: usize| {
        let query = "q".repeat(bytes - "GET /a? HTTP/1.1".len());
        format!("GET /a?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    };
    check("", &[(line(8 * 1024), 200), (line(8 * 1024 + 1), 414), (line(100_000), 414)]);
    check("\n[limits]\nrequest_line = \"300B\"\n", &[(line(300), 200), (line(301), 414)]);
}

#[test]
fn large_heads_are_a_431() {
    let head = |bytes: usize| {
        let start = "GET /a HTTP/1.1\r\nHost: localhost\r\nX-Long: ";
        format!("{start}{}\r\n\r\n", "x".repeat(bytes - start.len() - 4))
    };
    check("", &[(head(32 * 1024), 200), (head(32 * 1024 + 1), 431), (head(300_000), 431)]);
    check("\n[limits]\nhead = \"1KiB\"\nrequest_line = \"512B\"\n", &[(head(1024), 200), (head(1025), 431)]);
}

#[test]
fn many_headers_are_a_431() {
    let head = |count: usize| {
        let lines: String = (1..count).map(|index| format!("X-{index}: y\r\n")).collect();
        format!("GET /a HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n")
    };
    check("", &[(head(100), 200), (head(101), 431)]);
    check("\n[limits]\nheader_count = 3\n", &[(head(3), 200), (head(4), 431)]);
}

#[test]
fn more_ranges_than_the_limit_get_the_whole() {
    let site = Site::empty();
    site.add("a", b"0123456789");
    let fixture = Fixture::start_toml(site, "\n[limits]\nranges_per_request = 2\n");
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (ranges, status) in [("0-0", 206), ("0-0,2-2", 206), ("0-0,2-2,4-4", 200), ("0-0,1-1,2-2", 200)] {
            let response = connection.get("/a", &format!("Range: bytes={ranges}\r\n"));
            assert_eq!(response.status, status, "{ranges}");
        }
    }
}
