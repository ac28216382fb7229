//! The admin pages: what is counted is what was done.

use crate::support::{Fixture, Transport, add_at_rest};
use linerate_end_to_end::{Site, curl, wait_until};

#[test]
fn counters_add_up_with_what_was_done() {
    let site = Site::empty();
    add_at_rest(&site, "file", 300_000);
    let fixture = Fixture::start_changed_toml(site, "", |toml| toml.replace("workers = 1", "workers = 2"));
    let mut bytes = [0; 2];
    for (index, transport) in Transport::ALL.into_iter().enumerate() {
        for _ in 0..3 {
            let mut connection = fixture.connect(transport);
            for (target, headers) in [
                ("/file", ""),
                ("/file", "Range: bytes=5-104\r\n"),
                ("/missing", ""),
                ("/file", "If-None-Match: *\r\n"),
            ] {
                let response = connection.get(target, headers);
                bytes[index] += response.head.len() + response.body.len();
            }
        }
    }
    let server = &fixture.server;
    for (status, count) in [("200", 6.0), ("206", 6.0), ("404", 6.0), ("304", 6.0)] {
        let label = format!("status=\"{status}\"");
        assert_eq!(server.metric("linerate_http_requests_total", &label), count, "{status}");
    }
    for (index, engine) in ["user", "plain"].into_iter().enumerate() {
        let label = format!("engine=\"{engine}\"");
        assert_eq!(
            server.metric("linerate_http_response_bytes_total", &label),
            bytes[index] as f64,
            "{engine}"
        );
    }
    assert_eq!(server.metric("linerate_connections_total", ""), 6.0);
    assert_eq!(server.metric("linerate_tls_handshakes_total", "version=\"TLSv1.3\""), 3.0);
    assert_eq!(server.metric("linerate_tls_handshake_duration_seconds_count", ""), 3.0);
    assert_eq!(server.metric("linerate_http_request_duration_seconds_count", ""), 24.0);
    assert_eq!(server.metric("linerate_http_request_duration_seconds_bucket", "le=\"+Inf\""), 24.0);
    wait_until("all connections are closed", || {
        server.metric("linerate_connections_active", "") == 0.0
            && server.metric("linerate_connections_closed_total", "") == 6.0
    });
    assert_eq!(server.metric("linerate_refused_total", ""), 0.0);
    assert_eq!(server.metric("linerate_workers", ""), 2.0);
}

#[test]
fn the_page_is_as_prometheus_reads_it() {
    let fixture = Fixture::start(Site::empty());
    let page = fixture.server.metrics();
    let mut names = Vec::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(page.contains(&format!("# HELP {name} ")), "{name}");
            assert!(!names.contains(&name), "{name} is there twice");
            names.push(name);
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            let last = names.last().unwrap();
            assert!(name.starts_with(*last), "{line} is not of {last}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(names.len() > 12 && page.ends_with('\n'), "{names:?}");
}

#[test]
fn admin_pages_answer_get_and_head_and_nothing_else() {
    let fixture = Fixture::start(Site::empty());
    let admin = fixture.server.admin();
    let status = |arguments: &[&str], path: &str| {
        let url = format!("http://{admin}{path}");
        let all = [
            &["--max-time", "5", "-o", "/dev/null", "-w", "%{http_code} %{content_type}"],
            arguments,
            &[&url],
        ];
        curl(all.concat()).run().text()
    };
    for (arguments, path, expected) in [
        (&[][..], "/healthz", "200 text/plain"),
        (&["--head"], "/healthz", "200 text/plain"),
        (&[], "/metrics", "200 text/plain"),
        (&[], "/placement", "200 text/plain"),
        (&[], "/", "200 text/plain"),
        (&[], "/other", "404 text/plain"),
        (&["--data", "x"], "/healthz", "405 text/plain"),
    ] {
        let told = status(arguments, path);
        assert!(told.starts_with(expected), "{arguments:?} {path}: {told}");
    }
}
