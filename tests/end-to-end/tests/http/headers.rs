//! Headers that an operator asks for, and those that are there without being asked for: on every response of the site,
//! whatever became of the request.

use crate::support::{Connection, End, Fixture, Response, Transport, add_at_rest};
use linerate_end_to_end::{Program, Site, linerate_binary};

const HSTS: &str = "max-age=31536000; includeSubDomains";

/// What every response of the site has.
const RULES: &str = r#"
hsts = { max_age = "365d", include_subdomains = true }
headers = [
  { path = "/**", set = { Access-Control-Allow-Origin = "*", X-Where = "everywhere" } },
  { path = "/folder/**", set = { x-where = "folder" } },
]
cache_control = [{ path = "/**", value = "public, max-age=31536000, immutable" }]"#;

fn site() -> Site {
    let site = Site::empty();
    add_at_rest(&site, "file.txt", 4001);
    site.add("folder/file.txt", b"below");
    site
}

/// Sends one request on a connection of its own and reads the answer.
fn exchange(fixture: &Fixture, transport: Transport, request: &str) -> Response {
    let mut connection = fixture.connect(transport);
    connection.send(request);
    connection.response_to(request.starts_with("HEAD "))
}

#[test]
fn a_sites_headers_are_on_every_response() {
    let fixture = Fixture::start_toml(site(), RULES);
    let host = "Host: localhost\r\n";
    for transport in Transport::ALL {
        for (request, status, place) in [
            (format!("GET /file.txt HTTP/1.1\r\n{host}\r\n"), 200, "everywhere"),
            (format!("GET /file.txt HTTP/1.1\r\n{host}Range: bytes=7-99\r\n\r\n"), 206, "everywhere"),
            (format!("GET /file.txt HTTP/1.1\r\n{host}If-None-Match: *\r\n\r\n"), 304, "everywhere"),
            (format!("GET /file.txt HTTP/1.1\r\n{host}If-Match: \"x\"\r\n\r\n"), 412, "everywhere"),
            (format!("GET /file.txt HTTP/1.1\r\n{host}Range: bytes=5000-\r\n\r\n"), 416, "everywhere"),
            (format!("GET /folder HTTP/1.1\r\n{host}\r\n"), 301, "everywhere"),
            (format!("GET /folder/ HTTP/1.1\r\n{host}\r\n"), 200, "folder"),
            (format!("GET /folder/missing HTTP/1.1\r\n{host}\r\n"), 404, "folder"),
            (format!("GET /folder/%zz HTTP/1.1\r\n{host}\r\n"), 400, "folder"),
            (format!("GET /../x HTTP/1.1\r\n{host}\r\n"), 400, "everywhere"),
            (format!("OPTIONS /folder/file.txt HTTP/1.1\r\n{host}Origin: https://a\r\n\r\n"), 200, "folder"),
            (format!("OPTIONS * HTTP/1.1\r\n{host}\r\n"), 200, "everywhere"),
            (format!("DELETE /folder/file.txt HTTP/1.1\r\n{host}\r\n"), 405, "folder"),
            // Nothing of these can be read: the site is the one that the connection was made for.
            ("GET /file.txt HTTP/1.1\r\n\r\n".to_owned(), 400, "everywhere"),
            (format!("GET /file.txt HTTP/3.0\r\n{host}\r\n"), 505, "everywhere"),
            (
                format!("GET /file.txt HTTP/1.1\r\n{host}Cookie: {}\r\n\r\n", "x".repeat(40_000)),
                431,
                "everywhere",
            ),
        ] {
            let response = exchange(&fixture, transport, &request);
            let told = &response.head;
            assert_eq!(response.status, status, "{told}");
            assert_eq!(response.expect("Access-Control-Allow-Origin"), "*", "{told}");
            assert_eq!(response.expect("X-Where"), place, "{told}");
            assert_eq!(response.expect("X-Content-Type-Options"), "nosniff", "{told}");
            let hsts = (transport == Transport::Tls).then_some(HSTS);
            assert_eq!(response.header("Strict-Transport-Security"), hsts, "{transport:?} {told}");
            // An error is not kept as long as the file.
            assert_eq!(response.header("Cache-Control").is_some(), status < 400, "{told}");
        }
    }
    // A host that nobody here answers for has no headers of a site that is somebody else's.
    let response =
        exchange(&fixture, Transport::Tls, "GET /file.txt HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n");
    assert_eq!(response.status, 421);
    assert_eq!(response.header("Strict-Transport-Security"), None);
    assert_eq!(response.header("X-Where"), None);
    assert_eq!(response.expect("X-Content-Type-Options"), "nosniff");
}

#[test]
fn rules_about_files_cover_index_files() {
    let site = site();
    site.add("index.html", b"home");
    site.add("folder/index.html", b"below");
    let fixture = Fixture::start_toml(
        site,
        r#"
cache_control = [
  { path = "/**", value = "public, max-age=31536000, immutable" },
  { path = "*.html", value = "no-cache" },
]"#,
    );
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        // Twice: from the disk, and from the files that are kept open.
        for target in ["/", "/folder/", "/", "/index.html", "/folder/index.html", "/folder/"] {
            let response = connection.get(target, "");
            assert_eq!((response.status, response.expect("Cache-Control")), (200, "no-cache"), "{target}");
        }
        let file = connection.get("/file.txt", "");
        assert_eq!(file.expect("Cache-Control"), "public, max-age=31536000, immutable");
    }
}

#[test]
fn redirects_to_https_are_responses_of_the_site_too() {
    let fixture = Fixture::start_changed_toml(site(), RULES, |toml| {
        toml.replacen("\"http://127.0.0.1:0\"", "\"redirect://127.0.0.1:0\"", 1)
    });
    let response = exchange(&fixture, Transport::Plain, "GET /folder/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!((response.status, response.expect("X-Where")), (308, "folder"));
    assert_eq!(response.header("Strict-Transport-Security"), None, "RFC 6797 section 7.2");
}

#[test]
fn what_was_asked_for_is_what_is_sent() {
    let fixture = Fixture::start_toml(
        site(),
        r#"
headers = [
  { path = "/**", unset = ["x-content-type-options"] },
  { path = "/**", set = { X-Tab = "a\tb", X-Empty = "", X-Note = "Content-Security-Policy Cache-Control" } },
  { path = "/**", set = { Content-Security-Policy-Report-Only = "default-src 'self'" } },
  { path = "/folder/**", set = { content-security-policy = "default-src 'self'" } },
]"#,
    );
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (target, policy) in [
            ("/", Some("default-src 'none'")),
            ("/missing", Some("default-src 'none'")),
            ("/folder", Some("default-src 'none'")),
            ("/folder/", Some("default-src 'self'")),
            ("/folder/missing", Some("default-src 'self'")),
            ("/file.txt", None),
        ] {
            // `header` fails where one is there twice.
            let response = connection.get(target, "");
            let sent = response.header("Content-Security-Policy");
            assert_eq!(sent.map(|sent| sent.split(';').next().unwrap()), policy, "{target}");
            assert_eq!(response.expect("Content-Security-Policy-Report-Only"), "default-src 'self'");
            assert_eq!(response.expect("X-Tab"), "a\tb");
            assert_eq!(response.expect("X-Empty"), "");
            assert_eq!(response.header("X-Content-Type-Options"), None, "it was taken away");
        }
        let listing = connection.get("/", "");
        assert_eq!(listing.expect("Cache-Control"), "no-cache", "a value that names it is none");
    }
}

#[test]
fn pages_of_the_server_lead_home_and_load_nothing() {
    let fixture = Fixture::start(site());
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for target in ["/missing", "/folder"] {
            let response = connection.get(target, "");
            let policy = response.expect("Content-Security-Policy").to_owned();
            assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
            let link = if target == "/missing" { "<a href=\"/\">Home</a>" } else { "<a href=\"/folder/\">" };
            assert!(response.text().contains(link), "{}", response.text());
            for loaded in ["http:", "https:", "src=", "<script", "url("] {
                assert!(!response.text().contains(loaded), "{loaded}");
            }
        }
    }
}

/// Everything that comes behind a HEAD is its head.
fn assert_no_content(connection: &mut Connection, request: &str, status: u16) {
    connection.send(request);
    let response = connection.response_to(true);
    assert_eq!(response.status, status, "{request}");
    assert_ne!(response.header("Content-Length"), Some("0"), "{request}");
    let (rest, end) = connection.end();
    assert_eq!((String::from_utf8_lossy(&rest).as_ref(), end), ("", End::Closed), "{request}");
}

#[test]
fn no_answer_to_head_has_content() {
    let fixture = Fixture::start(site());
    let host = "Host: localhost\r\nConnection: close\r\n";
    for transport in Transport::ALL {
        for (request, status) in [
            ("HEAD /file.txt HTTP/1.1\r\n\r\n".to_owned(), 400),
            (format!("HEAD /file.txt HTTP/1.1\r\n{host}Expect: something\r\n\r\n"), 417),
            (format!("\r\nHEAD /file.txt HTTP/2.0\r\n{host}\r\n"), 505),
            (format!("HEAD /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(9000)), 414),
            (format!("HEAD /file.txt HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(40_000)), 431),
            (format!("HEAD /%zz HTTP/1.1\r\n{host}\r\n"), 400),
            (format!("HEAD /missing HTTP/1.1\r\n{host}\r\n"), 404),
            (format!("HEAD /folder HTTP/1.1\r\n{host}\r\n"), 301),
        ] {
            assert_no_content(&mut fixture.connect(transport), &request, status);
        }
    }
    let mut plain_to_tls = Connection::plain(fixture.address(Transport::Tls));
    assert_no_content(&mut plain_to_tls, &format!("HEAD / HTTP/1.1\r\n{host}\r\n"), 400);
    let admin: std::net::SocketAddr = fixture.server.admin();
    for request in ["HEAD / HTTP/1.1\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let status = if request.contains("Host") { 200 } else { 400 };
        assert_no_content(&mut Connection::plain(admin), request, status);
    }
}

#[test]
fn what_is_not_sent_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("linerate.toml");
    for (set, fault) in [
        ("Server = \"x\"", ":3:36: headers.set: Server is written by the server itself"),
        ("allow = \"GET\"", ":3:36: headers.set: Allow is written by the server itself"),
        (
            "Proxy-Connection = \"close\"",
            ":3:36: headers.set: Proxy-Connection is written by the server itself",
        ),
        ("X-A = \"a\\u007f\"", ":3:42: headers.set: header value \"a\\u{7f}\" contains characters outside"),
    ] {
        let toml = format!(
            "[[site]]\nroot = {:?}\nheaders = [{{ path = \"/**\", set = {{ {set} }} }}]\n",
            folder.path()
        );
        std::fs::write(&file, toml).unwrap();
        let binary = linerate_binary().to_str().unwrap();
        let refused = Program::new(binary, ["check", "--config", file.to_str().unwrap()]).run();
        let said = &refused.stderr;
        assert!(!refused.status.success() && said.contains(fault), "{said}");
    }
}
