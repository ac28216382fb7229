//! Conditional requests (RFC 9110 section 13).

use crate::support::{Connection, Fixture, Response, Transport, add_at_rest};
use linerate_end_to_end::Site;

const NAME: &str = "film.webm";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const NEVER: &str = "Fri, 31 Dec 2100 23:59:59 GMT";

struct Scene {
    fixture: Fixture,
    bytes: Vec<u8>,
}

impl Scene {
    fn new() -> Self {
        let site = Site::empty();
        let bytes = add_at_rest(&site, NAME, 70_001);
        // So old that its date is a strong validator as well.
        crate::support::age(&site.path().join(NAME), std::time::Duration::from_secs(3600));
        Self { fixture: Fixture::start(site), bytes }
    }

    /// What `check` makes of each transport: a connection, the tag and the date of the file.
    fn each(&self, check: impl Fn(&mut Connection, &str, &str)) {
        for transport in Transport::ALL {
            let mut connection = self.fixture.connect(transport);
            let plain = ask(&mut connection, "");
            plain.assert_is(200, &self.bytes);
            let (tag, date) = (plain.expect("ETag").to_owned(), plain.expect("Last-Modified").to_owned());
            assert!(tag.starts_with('"') && tag.ends_with('"'), "a strong tag: {tag}");
            check(&mut connection, &tag, &date);
        }
    }
}

fn ask(connection: &mut Connection, headers: &str) -> Response {
    connection.get(&format!("/{NAME}"), headers)
}

#[test]
fn what_a_client_has_already_is_a_304() {
    let scene = Scene::new();
    scene.each(|connection, tag, date| {
        for headers in [
            format!("If-None-Match: {tag}\r\n"),
            format!("If-None-Match: W/{tag}\r\n"),
            format!("If-None-Match: \"other\", {tag}\r\n"),
            "If-None-Match: *\r\n".into(),
            format!("If-Modified-Since: {date}\r\n"),
            format!("If-Modified-Since: {NEVER}\r\n"),
            // The tag counts, not the date.
            format!("If-None-Match: {tag}\r\nIf-Modified-Since: {EARLIER}\r\n"),
            format!("If-None-Match: {tag}\r\nRange: bytes=0-4\r\n"),
        ] {
            let response = ask(connection, &headers);
            response.assert_is(304, b"");
            assert_eq!(response.expect("ETag"), tag, "{headers}");
            assert_eq!(response.expect("Last-Modified"), date);
            assert_eq!(response.header("Content-Length"), None);
        }
        for headers in [
            "If-None-Match: \"other\"\r\n".into(),
            format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {date}\r\n"),
            format!("If-Modified-Since: {EARLIER}\r\n"),
            "If-Modified-Since: yesterday\r\n".into(),
        ] {
            ask(connection, &headers).assert_is(200, &scene.bytes);
        }
    });
}

#[test]
fn what_is_another_version_is_a_412() {
    let scene = Scene::new();
    scene.each(|connection, tag, date| {
        for headers in [
            "If-Match: \"other\"\r\n".into(),
            format!("If-Match: W/{tag}\r\n"),
            format!("If-Unmodified-Since: {EARLIER}\r\n"),
            format!("If-Match: \"other\"\r\nIf-Unmodified-Since: {date}\r\n"),
            "If-Match: \"other\"\r\nRange: bytes=1-2\r\n".into(),
        ] {
            assert_eq!(ask(connection, &headers).status, 412, "{headers}");
        }
        for headers in [
            format!("If-Match: {tag}\r\n"),
            format!("If-Match: \"other\", {tag}\r\n"),
            "If-Match: *\r\n".into(),
            format!("If-Unmodified-Since: {date}\r\n"),
            format!("If-Match: {tag}\r\nIf-Unmodified-Since: {EARLIER}\r\n"),
        ] {
            ask(connection, &headers).assert_is(200, &scene.bytes);
        }
    });
}

#[test]
fn a_range_holds_for_the_version_it_was_meant_for() {
    let scene = Scene::new();
    scene.each(|connection, tag, date| {
        for condition in [tag, date] {
            let response = ask(connection, &format!("If-Range: {condition}\r\nRange: bytes=100-199\r\n"));
            response.assert_is(206, &scene.bytes[100..200]);
        }
        for condition in [&format!("W/{tag}"), "\"other\"", EARLIER, NEVER, "nonsense"] {
            let response = ask(connection, &format!("If-Range: {condition}\r\nRange: bytes=100-199\r\n"));
            response.assert_is(200, &scene.bytes);
        }
    });
}

#[test]
fn a_date_stands_for_a_version_only_after_a_while() {
    let scene = Scene::new();
    // A few seconds old: the tag is strong, the date is not yet (RFC 9110 section 8.8.2.2).
    let path = scene.fixture.site.path().join(NAME);
    crate::support::age(&path, std::time::Duration::from_secs(20));
    scene.each(|connection, tag, date| {
        let by_tag = ask(connection, &format!("If-Range: {tag}\r\nRange: bytes=101-198\r\n"));
        by_tag.assert_is(206, &scene.bytes[101..199]);
        let by_date = ask(connection, &format!("If-Range: {date}\r\nRange: bytes=101-198\r\n"));
        by_date.assert_is(200, &scene.bytes);
        // To have it already is enough said by the date.
        let unchanged = ask(connection, &format!("If-Modified-Since: {date}\r\n"));
        assert_eq!(unchanged.status, 304);
    });
}

#[test]
fn a_new_version_has_a_new_tag_at_once() {
    let scene = Scene::new();
    scene.each(|connection, tag, _| {
        let old = scene.fixture.site.bytes(NAME);
        // Same length, same time to the second or not: what counts is that it is another file.
        let new: Vec<u8> = old.iter().map(|byte| byte ^ 1).collect();
        scene.fixture.site.replace(NAME, &new);
        let response = ask(connection, &format!("If-None-Match: {tag}\r\n"));
        response.assert_is(200, &new);
        assert_ne!(response.expect("ETag"), tag);
        // It has changed just now, so the tag is weak and no range may be built on it.
        let weak = response.expect("ETag").to_owned();
        assert!(weak.starts_with("W/"), "{weak}");
        ask(connection, &format!("If-Range: {weak}\r\nRange: bytes=0-9\r\n")).assert_is(200, &new);
        scene.fixture.site.replace(NAME, &old);
        crate::support::age(&scene.fixture.site.path().join(NAME), std::time::Duration::from_secs(60));
    });
}

#[test]
fn conditions_hold_for_head_as_well() {
    let scene = Scene::new();
    scene.each(|connection, tag, _| {
        let head = format!("HEAD /{NAME} HTTP/1.1\r\nHost: localhost\r\n");
        connection.send(format!("{head}If-None-Match: {tag}\r\n\r\n"));
        assert_eq!(connection.response_to(true).status, 304);
        connection.send(format!("{head}If-Match: \"other\"\r\n\r\n"));
        assert_eq!(connection.response_to(true).status, 412);
        ask(connection, "").assert_is(200, &scene.bytes);
    });
}
