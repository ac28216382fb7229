//! Whole responses, byte for byte, and rebuilt from their plans.

use linerate_http::*;

const LIMITS: RequestLimits = RequestLimits { head_bytes: 4096, header_count: 50, request_line_bytes: 1024 };
const NOW_UNIX_S: i64 = 784_111_800;

fn file() -> Representation<'static> {
    Representation {
        length_bytes: 1000,
        validators: Validators { etag: Some("\"v1\""), modified_unix_s: Some(784_111_777) },
        media_type: MediaType::HTML,
        content_coding: None,
        varies_by_coding: false,
    }
}

/// Content whose every byte tells its place.
fn content() -> Vec<u8> {
    (0..1000_u32).map(|index| (index % 251) as u8).collect()
}

fn answer_with(request: &str, representation: &Representation<'_>) -> (String, ResponsePlan) {
    let (request, _) = parse_request(request.as_bytes(), &LIMITS).unwrap().unwrap();
    let now = ImfFixdate::at(NOW_UNIX_S);
    let responder = Responder::for_request(&request, &now, Some("linerate"), true);
    let mut head = Vec::new();
    let plan = responder.file(&request, representation, &mut head);
    (String::from_utf8(head).unwrap(), plan)
}

fn answer(headers: &str) -> (String, ResponsePlan) {
    answer_with(&format!("GET / HTTP/1.1\r\nHost: a\r\n{headers}\r\n"), &file())
}

/// The bytes that a plan sends after the buffer.
fn body_of(plan: &ResponsePlan) -> Vec<u8> {
    let content = content();
    let bytes = |range: &ByteRange| content[range.start as usize..range.end() as usize].to_vec();
    match &plan.body {
        Body::None => Vec::new(),
        Body::Range(range) => bytes(range),
        Body::Multipart(multipart) => {
            let mut body = Vec::new();
            for part in &multipart.parts {
                body.extend_from_slice(&part.preamble);
                body.extend(bytes(&part.range));
            }
            body.extend_from_slice(&multipart.closing);
            body
        }
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(": "));
    lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

#[test]
fn a_plain_get_is_answered_byte_for_byte() {
    let (head, plan) = answer("");
    assert_eq!(
        head,
        "HTTP/1.1 200 OK\r\nServer: linerate\r\nDate: Sun, 06 Nov 1994 08:50:00 GMT\r\n\
         Content-Type: text/html; charset=utf-8\r\nContent-Length: 1000\r\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\
         X-Content-Type-Options: nosniff\r\n\r\n"
    );
    assert_eq!((plan.status, plan.content_bytes), (Status::Ok, 1000));
    assert_eq!(plan.body, Body::Range(ByteRange { start: 0, length: 1000 }));
}

#[test]
fn head_has_the_same_head_and_no_body() {
    let (get, _) = answer("");
    let (head, plan) = answer_with("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", &file());
    assert_eq!(head, get);
    assert_eq!((plan.content_bytes, &plan.body), (0, &Body::None));
    // RFC 9110 section 14.2: Range is defined for GET only.
    let (head, _) = answer_with("HEAD / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n", &file());
    assert_eq!(head, get);
}

#[test]
fn an_empty_file_has_an_empty_body() {
    let empty = Representation { length_bytes: 0, ..file() };
    let (head, plan) = answer_with("GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-\r\n\r\n", &empty);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(header(&head, "Content-Length"), Some("0"));
    assert_eq!(plan.body, Body::None);
}

#[test]
fn codings_and_the_operators_lines_are_told() {
    let sibling = Representation { content_coding: Some(Coding::Zstd), varies_by_coding: true, ..file() };
    let (head, _) = answer_with("GET / HTTP/1.1\r\nHost: a\r\n\r\n", &sibling);
    assert_eq!(header(&head, "Content-Encoding"), Some("zstd"));
    assert_eq!(header(&head, "Vary"), Some("Accept-Encoding"));

    let lines = HeaderBlock::from_iter([field("X-Where", "here")]);
    let now = ImfFixdate::at(NOW_UNIX_S);
    let mut head = Vec::new();
    let responder = Responder::without_request(b"", &now, None).with_headers(&lines);
    let _plan = responder.error(Status::NotFound, "There is no such file.", &mut head);
    let head = String::from_utf8(head).unwrap();
    assert_eq!(header(&head, "X-Where"), Some("here"));
    assert_eq!(
        header(&head, "X-Content-Type-Options"),
        None,
        "a site's own fields stand in for the standard ones"
    );
    assert_eq!(header(&head, "Server"), None);
}

fn field(name: &str, value: &str) -> HeaderField {
    HeaderField::new(HeaderName::parse(name).unwrap(), value).unwrap()
}

#[test]
fn errors_are_not_kept_as_long_as_files() {
    let now = ImfFixdate::at(NOW_UNIX_S);
    let cache_control = |request: &str| {
        let (request, _) = parse_request(request.as_bytes(), &LIMITS).unwrap().unwrap();
        let responder =
            Responder::for_request(&request, &now, None, true).with_cache_control(Some("max-age=31536000"));
        let mut head = Vec::new();
        let plan = responder.file(&request, &file(), &mut head);
        let head = String::from_utf8(head).unwrap();
        (plan.status.code(), header(&head, "Cache-Control").map(str::to_owned))
    };
    for (headers, status) in [
        ("", 200),
        ("Range: bytes=0-1\r\n", 206),
        ("Range: bytes=0-1,3-4\r\n", 206),
        ("If-None-Match: \"v1\"\r\n", 304),
        ("If-Match: \"v0\"\r\n", 412),
        ("Range: bytes=1000-\r\n", 416),
    ] {
        let expected = (status < 400).then(|| "max-age=31536000".to_owned());
        assert_eq!(cache_control(&format!("GET / HTTP/1.1\r\nHost: a\r\n{headers}\r\n")), (status, expected));
    }
}

#[test]
fn pages_of_the_server_keep_to_its_policy_or_the_operators() {
    let policies = |headers: &[HeaderField]| {
        let (now, block) = (ImfFixdate::at(NOW_UNIX_S), HeaderBlock::from_iter(headers.iter().cloned()));
        let mut head = Vec::new();
        let responder = Responder::without_request(b"", &now, None).with_headers(&block);
        let _plan = responder.error(Status::NotFound, "There is no such file.", &mut head);
        let head = String::from_utf8(head).unwrap();
        let lines = head.split("\r\n").filter_map(|line| line.split_once(": "));
        let policies = lines
            .filter(|(name, _)| name.eq_ignore_ascii_case("Content-Security-Policy"))
            .map(|(_, value)| value);
        policies.map(str::to_owned).collect::<Vec<_>>()
    };
    let [own] = &*policies(&[]) else { panic!("a page has one policy") };
    assert!(own.starts_with("default-src 'none'; style-src 'sha256-"), "{own}");
    // Neither a longer name nor a value is a policy; a name in other letters is.
    let report_only = field("Content-Security-Policy-Report-Only", "default-src 'self'");
    let note = field("X-Note", "Content-Security-Policy");
    assert_eq!(policies(&[report_only, note]), [own.as_str()]);
    assert_eq!(policies(&[field("content-security-policy", "default-src 'self'")]), ["default-src 'self'"]);
}

#[test]
fn connection_is_told_where_the_default_is_not_meant() {
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", None),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", Some("close")),
        ("GET / HTTP/1.0\r\n\r\n", Some("close")),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Some("keep-alive")),
    ] {
        let (head, _) = answer_with(request, &file());
        assert_eq!(header(&head, "Connection"), expected, "{request}");
    }
    let text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let (request, _) = parse_request(text.as_bytes(), &LIMITS).unwrap().unwrap();
    let now = ImfFixdate::at(NOW_UNIX_S);
    assert!(!Responder::for_request(&request, &now, None, false).persist);
}

#[test]
fn a_single_range_is_206() {
    let (head, plan) = answer("Range: bytes=500-\r\n");
    assert!(head.starts_with("HTTP/1.1 206 Partial Content\r\n"));
    assert_eq!(header(&head, "Content-Range"), Some("bytes 500-999/1000"));
    assert_eq!(header(&head, "Content-Length"), Some("500"));
    assert_eq!(header(&head, "ETag"), Some("\"v1\""));
    assert_eq!((plan.content_bytes, body_of(&plan)), (500, content()[500..].to_vec()));
}

#[test]
fn several_ranges_are_multipart() {
    let (head, plan) = answer("Range: bytes=990-,0-4,2-9\r\n");
    let boundary =
        header(&head, "Content-Type").unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
    assert!((1..=70).contains(&boundary.len()), "RFC 2046 section 5.1.1");
    assert_eq!(header(&head, "Content-Range"), None);
    let content = content();
    let expected = [
        format!("--{boundary}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Range: bytes 990-999/1000\r\n\r\n")
            .as_bytes(),
        &content[990..],
        format!("\r\n--{boundary}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Range: bytes 0-9/1000\r\n\r\n")
            .as_bytes(),
        &content[..10],
        format!("\r\n--{boundary}--\r\n").as_bytes(),
    ]
    .concat();
    assert_eq!(body_of(&plan), expected);
    assert_eq!(plan.content_bytes, expected.len() as u64);
    assert_eq!(header(&head, "Content-Length"), Some(expected.len().to_string().as_str()));
    let (again, _) = answer("Range: bytes=990-,0-4,2-9\r\n");
    assert_ne!(header(&again, "Content-Type"), header(&head, "Content-Type"), "boundaries are not guessable");
}

#[test]
fn the_operators_limit_on_ranges_counts() {
    let text = "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1,5-6,9-10\r\n\r\n";
    let (request, _) = parse_request(text.as_bytes(), &LIMITS).unwrap().unwrap();
    let now = ImfFixdate::at(NOW_UNIX_S);
    for (limit, status) in [(3, Status::PartialContent), (2, Status::Ok)] {
        let responder = Responder::for_request(&request, &now, None, true).with_ranges_limit(limit);
        assert_eq!(responder.file(&request, &file(), &mut Vec::new()).status, status);
    }
}

/// The reader of a page at `/` is there already, and of a host that nothing here answers for there is no home.
#[test]
fn pages_for_errors_lead_home_where_there_is_one() {
    let now = ImfFixdate::at(NOW_UNIX_S);
    for (path, status, leads_home) in [
        ("/", Status::NotFound, false),
        ("/a", Status::NotFound, true),
        ("/a", Status::MisdirectedRequest, false),
        ("/", Status::MisdirectedRequest, false),
    ] {
        let text = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        let (request, _) = parse_request(text.as_bytes(), &LIMITS).unwrap().unwrap();
        let mut page = Vec::new();
        let _ = Responder::for_request(&request, &now, None, true).error(status, "no", &mut page);
        let page = String::from_utf8(page).unwrap();
        assert_eq!(page.contains("<a href=\"/\">Home</a>"), leads_home, "{path} {status}");
    }
}

#[test]
fn ranges_beyond_the_end_are_416() {
    let (head, plan) = answer("Range: bytes=1000-\r\n");
    assert!(head.starts_with("HTTP/1.1 416 Range Not Satisfiable\r\n"));
    assert_eq!(header(&head, "Content-Range"), Some("bytes */1000"));
    assert_eq!(plan.body, Body::None);
}

#[test]
fn if_range_decides_whether_range_counts() {
    let status = |headers: &str| answer(headers).1.status;
    assert_eq!(status("Range: bytes=0-1\r\nIf-Range: \"v1\"\r\n"), Status::PartialContent);
    assert_eq!(status("Range: bytes=0-1\r\nIf-Range: \"v0\"\r\n"), Status::Ok);
    assert_eq!(status("Range: bytes=2000-\r\nIf-Range: \"v0\"\r\n"), Status::Ok);
    // The file was changed 23 seconds before Date: the date is no strong validator yet.
    let by_date = "Range: bytes=0-1\r\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    assert_eq!(status(by_date), Status::Ok);
    let modified_unix_s = Some(784_111_777 - 3600);
    let old = Representation { validators: Validators { etag: None, modified_unix_s }, ..file() };
    let by_date = "GET / HTTP/1.1\r\nHost: a\r\n\
                   Range: bytes=0-1\r\nIf-Range: Sun, 06 Nov 1994 07:49:37 GMT\r\n\r\n";
    assert_eq!(answer_with(by_date, &old).1.status, Status::PartialContent);
}

#[test]
fn conditions_come_before_ranges() {
    let (head, plan) = answer("Range: bytes=0-1\r\nIf-None-Match: \"v1\"\r\n");
    assert_eq!(
        head,
        "HTTP/1.1 304 Not Modified\r\nServer: linerate\r\nDate: Sun, 06 Nov 1994 08:50:00 GMT\r\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: \"v1\"\r\n\
         X-Content-Type-Options: nosniff\r\n\r\n"
    );
    assert_eq!((plan.content_bytes, plan.body), (0, Body::None));
    let (head, plan) = answer("Range: bytes=2000-\r\nIf-Match: \"v0\"\r\n");
    assert!(head.starts_with("HTTP/1.1 412 Precondition Failed\r\n"));
    assert_eq!(plan.status.code(), 412);
}

#[test]
fn last_modified_is_never_later_than_date() {
    let validators = Validators { etag: None, modified_unix_s: Some(NOW_UNIX_S + 3600) };
    let (head, _) =
        answer_with("GET / HTTP/1.1\r\nHost: a\r\n\r\n", &Representation { validators, ..file() });
    assert_eq!(header(&head, "Last-Modified"), header(&head, "Date"));
    assert_eq!(header(&head, "ETag"), None);
}

/// An answer that is wholly in the buffer: its head, and its content checked against Content-Length and the
/// plan.
fn short_answer(answer: impl FnOnce(&Responder<'_>, &mut Vec<u8>) -> ResponsePlan) -> (String, String) {
    let now = ImfFixdate::at(NOW_UNIX_S);
    let mut buffer = Vec::new();
    let plan = answer(&Responder::without_request(b"GET ", &now, None), &mut buffer);
    assert_eq!(plan.body, Body::None);
    let text = String::from_utf8(buffer).unwrap();
    let (head, content) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!(header(head, "Content-Length"), Some(content.len().to_string().as_str()));
    assert_eq!(plan.content_bytes, content.len() as u64);
    assert_eq!(header(head, "Connection"), Some("close"));
    (head.to_owned(), content.to_owned())
}

#[test]
fn errors_explain_themselves() {
    let (head, page) = short_answer(|responder, head| {
        let error = RequestError::HostMissing;
        responder.error(error.status(), error.explanation(), head)
    });
    assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"));
    assert_eq!(header(&head, "Content-Type"), Some("text/html; charset=utf-8"));
    assert!(page.contains("The Host header is missing."));

    let (head, text) =
        short_answer(|responder, head| responder.plain_error(Status::BadRequest, "Use https://.", head));
    assert_eq!(header(&head, "Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(text, "Use https://.\n");
}

#[test]
fn methods_are_named() {
    let (head, _) = short_answer(|responder, head| responder.method_not_allowed("GET, HEAD, OPTIONS", head));
    assert!(head.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
    assert_eq!(header(&head, "Allow"), Some("GET, HEAD, OPTIONS"));
    let (head, text) = short_answer(|responder, head| responder.plain_method_not_allowed("GET, HEAD", head));
    assert!(head.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
    assert_eq!(header(&head, "Allow"), Some("GET, HEAD"));
    assert_eq!(header(&head, "Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(text, "This can be read only: GET, HEAD.\n");
    let (head, content) = short_answer(|responder, head| responder.options("GET, HEAD, OPTIONS", head));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!((header(&head, "Allow"), content.as_str()), (Some("GET, HEAD, OPTIONS"), ""));
}

#[test]
fn redirects_cannot_be_split() {
    let location = "/a/?q=\r\nSet-Cookie: x\"><ü%20";
    let (head, page) =
        short_answer(|responder, head| responder.redirect(Status::MovedPermanently, location, head));
    assert_eq!(header(&head, "Location"), Some("/a/?q=%0D%0ASet-Cookie:%20x%22%3E%3C%C3%BC%20"));
    assert_eq!(header(&head, "Set-Cookie"), None);
    assert!(page.contains("<a href=\"/a/?q=%0D%0ASet-Cookie:%20x%22%3E%3C%C3%BC%20\">"));
}

#[test]
fn errors_for_head_have_no_content() {
    let text = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    let (request, _) = parse_request(text.as_bytes(), &LIMITS).unwrap().unwrap();
    let now = ImfFixdate::at(NOW_UNIX_S);
    let mut head = Vec::new();
    let responder = Responder::for_request(&request, &now, None, true);
    let plan = responder.error(Status::NotFound, "There is no such file.", &mut head);
    assert!(head.ends_with(b"\r\n\r\n"));
    assert_eq!(plan.content_bytes, 0);
}

#[test]
fn what_is_no_request_but_a_head_is_answered_without_content() {
    let now = ImfFixdate::at(NOW_UNIX_S);
    for (received, has_content) in [
        (&b"HEAD /%00 HTTP/9.1\r\n"[..], false),
        (b"\r\n\r\nHEAD  / ", false),
        (b"HEADS / HTTP/1.1", true),
        (b"GET HEAD / HTTP/1.1", true),
        (b"", true),
    ] {
        let mut buffer = Vec::new();
        let responder = Responder::without_request(received, &now, None);
        let plan = responder.error(Status::BadRequest, "It is wrong.", &mut buffer);
        assert_eq!(plan.content_bytes > 0, has_content);
        assert_eq!(!buffer.ends_with(b"\r\n\r\n"), has_content);
        assert!(
            header(&String::from_utf8(buffer).unwrap(), "Content-Length").is_some_and(|length| length != "0")
        );
    }
}
