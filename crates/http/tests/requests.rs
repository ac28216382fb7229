//! Requests as clients and attackers send them.

use linerate_http::*;

const LIMITS: RequestLimits = RequestLimits { head_bytes: 2048, header_count: 20, request_line_bytes: 256 };

fn parse(text: &str) -> Request<'_> {
    let (request, head_bytes) = parse_request(text.as_bytes(), &LIMITS).unwrap().unwrap();
    assert_eq!(head_bytes, text.len());
    request
}

fn refusal(text: &str) -> RequestError {
    parse_request(text.as_bytes(), &LIMITS).unwrap_err()
}

fn with_headers(headers: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n")
}

const BROWSER: &str = "GET /films/a%20b.mp4?t=1 HTTP/1.1\r\nHost: media.example:8443\r\n\
    user-agent: Mozilla/5.0 \"x\"\r\nAccept: */*\r\nAccept-Encoding: gzip, br\r\nReferer: https://media.example/\r\n\
    Range:  bytes=0-  \r\nIf-Range: \"v1\"\r\nIf-None-Match: \"v2\"\r\nIf-Match: *\r\n\
    If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\nIf-Unmodified-Since: x\r\nConnection: keep-alive\r\n\r\n";

#[test]
fn reads_what_a_browser_sends() {
    let request = parse(BROWSER);
    assert_eq!(request.method, Method::Get);
    assert_eq!(request.target, "/films/a%20b.mp4?t=1");
    assert_eq!((request.path, request.query), ("/films/a%20b.mp4", Some("t=1")));
    assert_eq!(request.version, Version::Http11);
    assert_eq!(request.authority, Some(Authority { host: "media.example", port: Some(8443) }));
    assert!(request.keep_alive && !request.expect_continue);
    assert_eq!(request.body, BodyFraming::None);
    assert_eq!(request.range, Some(&b"bytes=0-"[..]));
    assert_eq!(request.conditions.if_range, Some(&b"\"v1\""[..]));
    assert_eq!(request.conditions.if_none_match.iter().collect::<Vec<_>>(), [b"\"v2\""]);
    assert_eq!(request.conditions.if_match.iter().collect::<Vec<_>>(), [b"*"]);
    assert_eq!(request.conditions.if_modified_since, Some(&b"Sun, 06 Nov 1994 08:49:37 GMT"[..]));
    assert_eq!(request.conditions.if_unmodified_since, Some(&b"x"[..]));
    assert_eq!(request.accepted_codings().iter().collect::<Vec<_>>(), [Coding::Brotli, Coding::Gzip]);
    assert_eq!(request.accept, Some(&b"*/*"[..]));
    assert_eq!(request.user_agent, Some(&b"Mozilla/5.0 \"x\""[..]));
    assert_eq!(request.referer, Some(&b"https://media.example/"[..]));
}

#[test]
fn methods_are_told_by_their_exact_names() {
    for (name, method) in [
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("OPTIONS", Method::Options),
        ("get", Method::Other("get")),
        ("PATCH", Method::Other("PATCH")),
    ] {
        let text = format!("{name} / HTTP/1.0\r\n\r\n");
        let request = parse(&text);
        assert_eq!((request.method, request.method.as_str()), (method, name));
    }
}

#[test]
fn is_incomplete_at_every_byte_until_the_last() {
    for head in [BROWSER, "\r\n\r\nHEAD / HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n"] {
        for length in 0..head.len() {
            let parsed = parse_request(&head.as_bytes()[..length], &LIMITS);
            assert!(matches!(parsed, Ok(None)), "{length}: {parsed:?}");
        }
        parse(head);
    }
}

#[test]
fn leaves_what_follows_to_the_next_request() {
    let two = format!("{BROWSER}HEAD /b HTTP/1.0\r\n\r\n");
    let (_, head_bytes) = parse_request(two.as_bytes(), &LIMITS).unwrap().unwrap();
    assert_eq!(head_bytes, BROWSER.len());
    let second = parse(&two[head_bytes..]);
    assert_eq!(second.method.as_str(), "HEAD");
    assert_eq!((second.method, second.path, second.authority), (Method::Head, "/b", None));
}

#[test]
fn persistence_follows_version_and_connection() {
    for (version, connection, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: Keep-Alive, CLOSE\r\n", false),
        ("1.1", "Connection: upgrade\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n");
        assert_eq!(parse(&head).keep_alive, keep_alive, "{head}");
    }
}

#[test]
fn later_minor_versions_are_read_as_1_1() {
    for minor in 2..=9 {
        let later = BROWSER.replace("HTTP/1.1", &format!("HTTP/1.{minor}"));
        for length in 0..later.len() {
            let parsed = parse_request(&later.as_bytes()[..length], &LIMITS);
            assert!(matches!(parsed, Ok(None)), "{length}: {parsed:?}");
        }
        let read = parse(&later);
        assert_eq!((read.version, read.stated_version), (Version::Http11, &*format!("HTTP/1.{minor}")));
        let expected = format!("{:?}", parse(BROWSER));
        assert_eq!(format!("{read:?}").replace(&format!("HTTP/1.{minor}"), "HTTP/1.1"), expected);
    }
    let two = "\r\nGET /a HTTP/1.2\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\n";
    let (request, head_bytes) = parse_request(two.as_bytes(), &LIMITS).unwrap().unwrap();
    assert_eq!((request.path, &two[head_bytes..]), ("/a", "GET /b HTTP/1.1\r\n"));
}

#[test]
fn later_minor_versions_are_held_to_the_same_rules() {
    let request = |lines: &str| format!("GET / HTTP/1.7\r\n{lines}\r\n\r\n");
    for (text, error) in [
        (request("Content-Length: 1"), RequestError::HostMissing),
        (request("Host: a\r\nContent-Length: 1\r\nContent-Length: 2"), RequestError::ContentLengthRepeated),
        (request("Host: a\nX: b"), RequestError::LineEnding),
        (request("Host : a"), RequestError::HeaderName),
        (request(&["Host: a"; 21].join("\r\n")), RequestError::HeaderCount),
        (request(&format!("Host: a\r\nX: {}", "x".repeat(2048))), RequestError::HeadTooLarge),
        (format!("GET /{} HTTP/1.7\r\nHost: a\r\n\r\n", "x".repeat(256)), RequestError::RequestLineTooLong),
    ] {
        assert_eq!(refusal(&text), error, "{text}");
    }
}

#[test]
fn the_target_in_absolute_form_names_the_host() {
    let request = parse("GET http://b.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!((request.authority.unwrap().host, request.path), ("b.example", "/x"));
    assert_eq!(refusal("GET http://b.example/x HTTP/1.1\r\n\r\n"), RequestError::HostMissing);
    assert_eq!(refusal("GET http://b.example/x HTTP/1.1\r\nHost: a b\r\n\r\n"), RequestError::Host);
}

#[test]
fn body_framing_is_exact() {
    for (headers, framing) in [
        ("Content-Length: 0", BodyFraming::None),
        ("Content-Length: 5", BodyFraming::Length(5)),
        ("Content-Length: 18446744073709551615", BodyFraming::Length(u64::MAX)),
        ("Transfer-Encoding: chunked", BodyFraming::Chunked),
        ("transfer-encoding:  Chunked ", BodyFraming::Chunked),
    ] {
        assert_eq!(parse(&with_headers(headers)).body, framing, "{headers}");
    }
}

#[test]
fn smuggling_is_refused() {
    use RequestError::*;
    for (headers, error) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", TwoFramings),
        ("Transfer-Encoding: chunked\r\nContent-Length: 0", TwoFramings),
        ("Content-Length: 5\r\nContent-Length: 6", ContentLengthRepeated),
        ("Content-Length: 5\r\ncontent-length: 5", ContentLengthRepeated),
        ("Content-Length: 5, 5", ContentLength),
        ("Content-Length: +5", ContentLength),
        ("Content-Length: -5", ContentLength),
        ("Content-Length: 0x5", ContentLength),
        ("Content-Length:", ContentLength),
        ("Content-Length: 5 5", ContentLength),
        ("Content-Length: 18446744073709551616", ContentLength),
        ("Transfer-Encoding:", TransferEncoding),
        ("Transfer-Encoding: identity", TransferEncoding),
        ("Transfer-Encoding: xchunked", TransferEncoding),
        ("Transfer-Encoding: chunked, gzip", TransferEncoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip", TransferEncoding),
        ("Transfer-Encoding: chunked, chunked", TransferEncoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", TransferEncoding),
        ("Transfer-Encoding: chunked,", TransferEncoding),
        ("Transfer-Encoding: ,chunked", TransferEncoding),
        ("Transfer-Encoding: chunked;q=1", TransferEncoding),
        ("Transfer-Encoding: \"chunked\"", TransferEncoding),
        ("Transfer-Encoding: gzip, chunked", TransferCodingUnknown),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", TransferCodingUnknown),
        ("Transfer-Encoding : chunked", HeaderName),
        ("Content-Length : 5", HeaderName),
        (" folded: x", HeaderName),
        ("X: a\r\n folded", HeaderName),
        ("X: a\r\n\tfolded", HeaderName),
        ("No-Colon", HeaderName),
        (": empty name", HeaderName),
        ("X: a\rb", HeaderValue),
        ("X: a\0b", HeaderValue),
        ("X: a\x7fb", HeaderValue),
        ("X: a\nY: b", LineEnding),
        ("Host: a", HostRepeated),
        ("Expect: 200-ok", Expectation),
    ] {
        assert_eq!(refusal(&with_headers(headers)), error, "{headers:?}");
    }
    for padding in 100..400 {
        let headers = format!("X: {}\nY: b", "a".repeat(padding));
        assert_eq!(refusal(&with_headers(&headers)), LineEnding, "{padding}");
    }
    assert_eq!(
        refusal("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        RequestError::TransferEncodingInHttp10
    );
    assert_eq!(refusal(&with_headers("Transfer-Encoding: gzip, chunked")).status(), Status::NotImplemented);
}

#[test]
fn request_lines_are_exact() {
    use RequestError::*;
    for (line, error) in [
        ("GET  / HTTP/1.1\r\n", RequestLine),
        ("GET / HTTP/1.1 \r\n", LineEnding),
        ("GET /a b HTTP/1.1\r\n", RequestLine),
        ("GET\t/ HTTP/1.1\r\n", RequestLine),
        (" GET / HTTP/1.1\r\n", RequestLine),
        ("G(T / HTTP/1.1\r\n", RequestLine),
        ("GET /\r\n", RequestLine),
        ("GET /\0 HTTP/1.1\r\n", RequestLine),
        ("GET / HTTP/1.1\n", LineEnding),
        ("GET / HTTP/1.1\r\r\n", LineEnding),
        ("GET / HTTP/2.0\r\n", VersionNotSupported),
        ("PRI * HTTP/2.0\r\n", VersionNotSupported),
        ("GET / HTTP/3\r\n", VersionNotSupported),
        ("GET / HTTP/1.11\r\n", LineEnding),
        ("GET / HTTP/1.22\r\n", LineEnding),
        ("GET / HTTP/1.2\n", LineEnding),
        ("GET / HTTP/1.2 \r\n", LineEnding),
        ("GET / HTTP/1.2\r\r\n", LineEnding),
        ("\nGET / HTTP/1.2\r\n", Version),
        ("GET / HTTP/1.x\r\n", Version),
        ("GET / HTTP/0.9\r\n", VersionNotSupported),
        ("GET / http/1.1\r\n", Version),
        ("GET / HTTP/1,1\r\n", Version),
        ("GET / XTTP/1.1\r\n", Version),
        ("GET a HTTP/1.1\r\n", Target),
        ("GET * HTTP/1.1\r\n", Target),
        ("GET ftp://a/ HTTP/1.1\r\n", Target),
        ("GET /a#b HTTP/1.1\r\n", Target),
        ("\x16\x03\x01\x02\0\x01", RequestLine),
        ("\nGET / HTTP/1.1\r\n", LineEnding),
    ] {
        assert_eq!(refusal(&format!("{line}Host: a\r\n\r\n")), error, "{line:?}");
    }
    assert_eq!(refusal("GET / HTTP/2.0\r\n\r\n").status(), Status::HttpVersionNotSupported);
}

#[test]
fn hosts_are_demanded_of_http_1_1_only() {
    assert_eq!(refusal("GET / HTTP/1.1\r\n\r\n"), RequestError::HostMissing);
    assert_eq!(parse("GET / HTTP/1.0\r\n\r\n").authority, None);
    assert_eq!(refusal("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), RequestError::HostRepeated);
    assert_eq!(parse("GET / HTTP/1.1\r\nHost:\r\n\r\n").authority.unwrap().host, "");
}

#[test]
fn repeated_headers_are_ignored_joined_or_first() {
    let text = with_headers("Range: bytes=0-1\r\nRange: bytes=2-3");
    assert_eq!(parse(&text).range, None);
    let text = with_headers("Range: bytes=0-1\r\nIf-Range: \"a\"\r\nIf-Range: \"a\"");
    assert_eq!(parse(&text).range, None);
    let text = with_headers("If-Modified-Since: a\r\nIf-Modified-Since: a");
    assert_eq!(parse(&text).conditions.if_modified_since, None);
    let text = with_headers("If-None-Match: \"a\"\r\nIf-None-Match: \"b\"");
    assert_eq!(parse(&text).conditions.if_none_match.iter().count(), 2);
    let text = with_headers(&["If-Match: \"a\""; FIELD_LINES_LIMIT + 1].join("\r\n"));
    assert_eq!(refusal(&text), RequestError::FieldLines);
    let text = with_headers("User-Agent: a\r\nUser-Agent: b");
    assert_eq!(parse(&text).user_agent, Some(&b"a"[..]));
}

#[test]
fn expectations_count_from_http_1_1_on() {
    assert!(parse(&with_headers("Expect: 100-Continue")).expect_continue);
    assert!(!parse("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expect_continue);
    assert_eq!(refusal(&with_headers("Expect: 100-continue, x")).status(), Status::ExpectationFailed);
}

#[test]
fn empty_lines_before_a_request_are_few() {
    for count in 0..=4 {
        let text = format!("{}GET / HTTP/1.0\r\n\r\n", "\r\n".repeat(count));
        parse(&text);
    }
    assert_eq!(refusal(&"\r\n".repeat(5)), RequestError::LeadingEmptyLines);
    assert!(parse_request(b"\r\n\r\n\r", &LIMITS).unwrap().is_none());
}

#[test]
fn request_lines_up_to_the_limit_are_taken() {
    let line_of = |length: usize| format!("GET /{} HTTP/1.0", "a".repeat(length - 14));
    let longest = format!("{}\r\n\r\n", line_of(LIMITS.request_line_bytes));
    parse(&longest);
    for length in 0..longest.len() {
        assert!(parse_request(&longest.as_bytes()[..length], &LIMITS).unwrap().is_none(), "{length}");
    }
    let longer = format!("{}\r\n\r\n", line_of(LIMITS.request_line_bytes + 1));
    assert_eq!(refusal(&longer), RequestError::RequestLineTooLong);
    assert_eq!(refusal(&longer[..LIMITS.request_line_bytes + 1]), RequestError::RequestLineTooLong);
    assert_eq!(refusal(&longer).status(), Status::UriTooLong);
}

#[test]
fn heads_up_to_the_limit_are_taken() {
    let head_of = |length: usize| {
        let frame = "GET / HTTP/1.0\r\nX: \r\n\r\n".len();
        format!("GET / HTTP/1.0\r\nX: {}\r\n\r\n", "a".repeat(length - frame))
    };
    parse(&head_of(LIMITS.head_bytes));
    let longer = head_of(LIMITS.head_bytes + 1);
    assert_eq!(refusal(&longer), RequestError::HeadTooLarge);
    assert!(parse_request(&longer.as_bytes()[..LIMITS.head_bytes - 1], &LIMITS).unwrap().is_none());
    assert_eq!(refusal(&longer[..LIMITS.head_bytes]), RequestError::HeadTooLarge);
    // A caller whose buffer is as large as the limit is never told to read more into a full one.
    let padded = format!("\r\n\r\n{}", head_of(LIMITS.head_bytes));
    assert_eq!(refusal(&padded[..LIMITS.head_bytes]).status(), Status::RequestHeaderFieldsTooLarge);
}

#[test]
fn header_counts_up_to_the_limit_are_taken() {
    let head_of = |count: usize| format!("GET / HTTP/1.0\r\n{}\r\n", "X: a\r\n".repeat(count));
    parse(&head_of(LIMITS.header_count));
    assert_eq!(refusal(&head_of(LIMITS.header_count + 1)), RequestError::HeaderCount);
    let generous = RequestLimits { header_count: usize::MAX, head_bytes: 1 << 20, ..LIMITS };
    let many = head_of(HEADER_COUNT_CAP + 1);
    assert_eq!(parse_request(many.as_bytes(), &generous).unwrap_err(), RequestError::HeaderCount);
    assert!(parse_request(head_of(HEADER_COUNT_CAP).as_bytes(), &generous).unwrap().is_some());
}

#[test]
fn plain_http_is_told_from_tls() {
    for text in ["G", "GET", "GET ", "GET / HTTP/1.1\r\n", "OPTIO", "POST /x", "PRI * HTTP/2.0\r\n\r\nSM"] {
        assert!(looks_like_http(text.as_bytes()), "{text}");
    }
    for bytes in
        [&b""[..], b"\x16\x03\x01", b"\x15\x03", b"\x80\x2e", b"SSH-2.0-x", b"get / ", b"GETX", b"\r\n"]
    {
        assert!(!looks_like_http(bytes), "{bytes:?}");
    }
}
