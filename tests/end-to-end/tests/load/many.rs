//! Ten thousand connections at once.

use super::program::{flawless, load, number};
use crate::support::{Fixture, Transport};
use linerate_end_to_end::{Site, skip};
use rustix::process::{Resource, getrlimit};
use std::time::Duration;

#[test]
fn ten_thousand_connections_are_opened_and_served() {
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    if limit < 10_200 {
        skip("ten_thousand_connections_are_opened_and_served", &format!("{limit} open files are permitted"));
        return;
    }
    let site = Site::empty();
    site.add_pattern("f.bin", 5_000);
    let fixture = Fixture::start_toml(site, "[limits]\nconnections = 12000\n");
    let folder = fixture.site.path().to_str().unwrap().to_owned();
    let url = fixture.url(Transport::Plain, "f.bin");
    let words = [url.as_str(), "-c", "10000", "-t", "2", "-n", "30000", "--verify", &folder];
    let report = flawless(&words);
    assert_eq!(number(&report, "/totals/connections"), 10_000.0);
    assert_eq!(number(&report, "/totals/responses"), 30_000.0);
    // At a rate all are opened and kept, however few requests there are.
    let words = [url.as_str(), "-c", "10000", "-R", "2000", "-d", "4s", "--warmup", "5s"];
    let finished = load(&words).limit(Duration::from_secs(60)).run();
    let report = super::program::report(&finished);
    assert_eq!(report["errors"], serde_json::json!({}), "{report:#}");
    assert!(number(&report, "/totals/responses") > 7_000.0, "{report:#}");
    assert_eq!(fixture.server.metric("linerate_connections_total", ""), 20_000.0);
}

#[test]
fn more_than_the_limit_of_open_files_is_refused_with_advice() {
    let finished = load(&["http://127.0.0.1:9/", "-c", "1000000"]).run();
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.stderr.contains("raise it with `ulimit -n 10"), "{}", finished.stderr);
}
