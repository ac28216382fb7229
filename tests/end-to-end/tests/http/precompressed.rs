//! Precompressed siblings, chosen by Accept-Encoding.

use crate::support::{Fixture, Transport, add_at_rest, age};
use linerate_end_to_end::Site;
use std::{fs, time::Duration};

fn site() -> (Site, [Vec<u8>; 4]) {
    let site = Site::empty();
    let files = ["app.js", "app.js.br", "app.js.zst", "app.js.gz"].map(|name| {
        let length = if name == "app.js" { 50_000 } else { 9_000 };
        add_at_rest(&site, name, length)
    });
    add_at_rest(&site, "film.mp4", 1000);
    add_at_rest(&site, "film.mp4.gz", 999);
    (site, files)
}

#[test]
fn the_client_decides_which_coding_it_gets() {
    let (site, [plain, br, zst, gz]) = site();
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        let mut tags = Vec::new();
        for (accept, coding, bytes) in [
            ("", None, &plain),
            ("identity", None, &plain),
            ("br", Some("br"), &br),
            ("gzip, deflate, br, zstd", Some("br"), &br),
            ("gzip, zstd", Some("zstd"), &zst),
            ("gzip;q=1.0, br;q=0.5", Some("gzip"), &gz),
            ("br;q=0, gzip", Some("gzip"), &gz),
            ("deflate, compress", None, &plain),
            ("GZIP", Some("gzip"), &gz),
            ("*;q=0, identity", None, &plain),
            ("gzip;q=0", None, &plain),
        ] {
            let header =
                if accept.is_empty() { String::new() } else { format!("Accept-Encoding: {accept}\r\n") };
            let response = connection.get("/app.js", &header);
            response.assert_is(200, bytes);
            assert_eq!(response.header("Content-Encoding"), coding, "{accept}");
            assert_eq!(response.expect("Vary"), "Accept-Encoding");
            assert_eq!(response.expect("Content-Type"), "text/javascript; charset=utf-8");
            let tag = (coding, response.expect("ETag").to_owned());
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        assert_eq!(tags.len(), 4, "each coding has one tag of its own: {tags:?}");

        let response = connection.get("/app.js", "Accept-Encoding: gzip\r\nRange: bytes=10-19\r\n");
        response.assert_is(206, &gz[10..20]);
        assert_eq!(response.expect("Content-Range"), "bytes 10-19/9000");
        let (_, tag) = tags.iter().find(|(coding, _)| *coding == Some("gzip")).unwrap();
        let headers = format!("Accept-Encoding: gzip\r\nIf-None-Match: {tag}\r\n");
        let response = connection.get("/app.js", &headers);
        assert_eq!((response.status, response.expect("Vary")), (304, "Accept-Encoding"));
    }
}

#[test]
fn what_is_compressed_by_itself_has_no_siblings() {
    let (site, _) = site();
    let film = site.bytes("film.mp4");
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        let response = fixture.connect(transport).get("/film.mp4", "Accept-Encoding: gzip\r\n");
        response.assert_is(200, &film);
        assert_eq!((response.header("Vary"), response.header("Content-Encoding")), (None, None));
    }
}

#[test]
fn a_sibling_older_than_its_original_is_left_aside() {
    let (site, [plain, _, zst, _]) = site();
    age(&site.path().join("app.js.br"), Duration::from_secs(3600));
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        connection.get("/app.js", "Accept-Encoding: br\r\n").assert_is(200, &plain);
        connection.get("/app.js", "Accept-Encoding: br, zstd\r\n").assert_is(200, &zst);
    }
}

#[test]
fn a_sibling_with_the_whole_seconds_of_its_original_is_served() {
    let (site, [_, br, ..]) = site();
    let set_time = |name: &str, nanoseconds: u32| {
        let time = std::time::UNIX_EPOCH + Duration::new(1_700_000_000, nanoseconds);
        let file = fs::File::options().write(true).open(site.path().join(name)).unwrap();
        file.set_modified(time).unwrap();
    };
    // As `brotli -k` leaves it.
    set_time("app.js", 987_654_321);
    set_time("app.js.br", 0);
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        let response = fixture.connect(transport).get("/app.js", "Accept-Encoding: br\r\n");
        response.assert_is(200, &br);
        assert_eq!(response.expect("Content-Encoding"), "br");
    }
}

#[test]
fn siblings_can_be_switched_off_and_asked_for_by_their_own_name() {
    let (site, [plain, _, _, gz]) = site();
    let fixture = Fixture::start_toml(site, "precompressed = false");
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        let response = connection.get("/app.js", "Accept-Encoding: br, gzip\r\n");
        response.assert_is(200, &plain);
        assert_eq!(response.header("Vary"), None);
        let response = connection.get("/app.js.gz", "Accept-Encoding: gzip\r\n");
        response.assert_is(200, &gz);
        assert_eq!(response.header("Content-Encoding"), None, "the client asked for the archive itself");
    }
}

#[test]
fn a_sibling_that_comes_later_is_found() {
    let (site, [plain, ..]) = site();
    for name in ["app.js.br", "app.js.zst", "app.js.gz"] {
        fs::remove_file(site.path().join(name)).unwrap();
    }
    let fixture = Fixture::start(site);
    let mut connection = fixture.connect(Transport::Tls);
    connection.get("/app.js", "Accept-Encoding: br\r\n").assert_is(200, &plain);
    let late = fixture.site.add_pattern("app.js.br", 777);
    linerate_end_to_end::wait_until("the sibling is served", || {
        let response = connection.get("/app.js", "Accept-Encoding: br\r\n");
        response.header("Content-Encoding") == Some("br") && response.body == late
    });
}
