//! What is served of a folder and what is not: index files, dotfiles, symbolic links, special files.

use crate::support::{Connection, Fixture, Transport};
use linerate_end_to_end::Site;
use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    },
    time::{Duration, Instant},
};

fn status(connection: &mut Connection, target: &str) -> u16 {
    connection.get(target, "").status
}

#[test]
fn a_folder_is_its_index_file() {
    let site = Site::empty();
    site.add("index.html", b"<p>top");
    site.add("sub/index.htm", b"<p>sub");
    site.add("both/index.html", b"<p>first");
    site.add("both/index.htm", b"<p>second");
    let fixture = Fixture::start_toml(site, "index = [\"index.html\", \"index.htm\"]");
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (target, body) in
            [("/", "<p>top"), ("/?q", "<p>top"), ("/sub/", "<p>sub"), ("/both/", "<p>first")]
        {
            let response = connection.get(target, "");
            response.assert_is(200, body.as_bytes());
            assert_eq!(response.expect("Content-Type"), "text/html; charset=utf-8");
        }
    }
}

#[test]
fn a_missing_slash_is_a_redirect_that_keeps_the_query() {
    let site = Site::empty();
    site.add("folder name/ä/a.txt", b"a");
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (target, location) in [
            ("/folder%20name", "/folder%20name/"),
            ("/folder%20name/%C3%A4?sort=size&order=desc", "/folder%20name/%C3%A4/?sort=size&order=desc"),
            ("//folder%20name", "/folder%20name/"),
        ] {
            let response = connection.get(target, "");
            assert_eq!(response.status, 301, "{target}");
            assert_eq!(response.expect("Location"), location);
        }
        assert_eq!(status(&mut connection, "/folder%20name/%C3%A4/a.txt/"), 404, "a file is no folder");
        assert_eq!(status(&mut connection, "/nothing"), 404);
    }
}

#[test]
fn dotfiles_are_nobodys_business_unless_allowed() {
    let dotted = || {
        let site = Site::empty();
        site.add(".htpasswd", b"secret");
        site.add(".git/config", b"secret");
        site.add("a/.hidden/b", b"secret");
        site
    };
    let targets =
        ["/.htpasswd", "/.git/config", "/.git", "/.git/", "/a/.hidden/b", "/%2ehtpasswd", "/.missing"];
    let fixture = Fixture::start(dotted());
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for target in targets {
            assert_eq!(status(&mut connection, target), 404, "{target}");
        }
        let listing = connection.get("/", "").text();
        assert!(!listing.contains("htpasswd") && !listing.contains(".git"), "{listing}");
    }
    let fixture = Fixture::start_with(dotted(), |setup| setup.flag("--dotfiles"));
    let mut connection = fixture.connect(Transport::Tls);
    connection.get("/.git/config", "").assert_is(200, b"secret");
    connection.get("/a/.hidden/b", "").assert_is(200, b"secret");
    assert!(connection.get("/", "").text().contains(".htpasswd"));
}

#[test]
fn symbolic_links_stay_within_the_site_unless_allowed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "outside").unwrap();
    let linked = || {
        let site = Site::empty();
        site.add("folder/real", b"inside");
        symlink("folder/real", site.path().join("link")).unwrap();
        symlink("../folder", site.path().join("folder/again")).unwrap();
        symlink(outside.path().join("secret"), site.path().join("escape")).unwrap();
        symlink(outside.path(), site.path().join("escaped")).unwrap();
        symlink("loop", site.path().join("loop")).unwrap();
        symlink("nowhere", site.path().join("dangling")).unwrap();
        site
    };
    for (rule, inside, outwards) in [("within", 200, 403), ("refused", 403, 403), ("anywhere", 200, 200)] {
        let fixture = Fixture::start_with(linked(), |setup| setup.flags(["--symlinks", rule]));
        for transport in Transport::ALL {
            let mut connection = fixture.connect(transport);
            for (target, expected) in [
                ("/link", inside),
                ("/folder/again/real", inside),
                ("/escape", outwards),
                ("/escaped/secret", outwards),
                ("/loop", 403),
                ("/folder/real", 200),
            ] {
                let response = connection.get(target, "");
                assert_eq!(response.status, expected, "{rule} {target}");
                if expected == 200 {
                    let outer = target.starts_with("/escape");
                    response.assert_is(200, if outer { b"outside" } else { b"inside" });
                }
            }
            assert!(matches!(status(&mut connection, "/dangling"), 403 | 404), "{rule}");
        }
    }
}

#[test]
fn special_files_are_refused_and_block_nobody() {
    let site = Site::empty();
    site.add("a", b"answer");
    rustix::fs::mkfifoat(rustix::fs::CWD, site.path().join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let _listener = UnixListener::bind(site.path().join("socket")).unwrap();
    symlink("/dev/zero", site.path().join("zero")).unwrap();
    symlink("/dev/tty", site.path().join("terminal")).unwrap();
    let fixture = Fixture::start_with(site, |setup| setup.flags(["--symlinks", "anywhere"]));
    let started = Instant::now();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for target in ["/pipe", "/socket", "/zero", "/terminal"] {
            assert_eq!(status(&mut connection, target), 403, "{target}");
            connection.get("/a", "").assert_is(200, b"answer");
        }
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn what_the_server_may_not_read_is_a_403() {
    if rustix::process::geteuid().is_root() {
        linerate_end_to_end::skip(
            "what_the_server_may_not_read_is_a_403",
            "root may read everything; run the tests as another user",
        );
        return;
    }
    let site = Site::empty();
    let path = site.add("private", b"secret");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        assert_eq!(status(&mut fixture.connect(transport), "/private"), 403);
    }
}

#[test]
fn the_charset_of_text_is_the_operators() {
    for (charset, expected) in [("iso-8859-1", "text/html; charset=iso-8859-1"), ("", "text/html")] {
        let site = Site::empty();
        site.add("a.html", b"text");
        site.add("a.mp4", b"video");
        let fixture = Fixture::start_toml(site, &format!("charset = {charset:?}\nlisting = true\n"));
        for transport in Transport::ALL {
            let mut connection = fixture.connect(transport);
            assert_eq!(connection.get("/a.html", "").expect("Content-Type"), expected);
            assert_eq!(connection.get("/a.mp4", "").expect("Content-Type"), "video/mp4");
            // What the server writes itself is in UTF-8.
            assert_eq!(connection.get("/", "").expect("Content-Type"), "text/html; charset=utf-8");
            assert_eq!(connection.get("/none", "").expect("Content-Type"), "text/html; charset=utf-8");
        }
    }
}

#[test]
fn media_types_and_charsets_are_told() {
    let site = Site::empty();
    let types = [
        ("a.html", "text/html; charset=utf-8"),
        ("a.txt", "text/plain; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.mp4", "video/mp4"),
        ("a.webm", "video/webm"),
        ("a.jpg", "image/jpeg"),
        ("a.unknown-type", "application/octet-stream"),
        ("noextension", "application/octet-stream"),
        ("seg.m4s", "video/iso.segment"),
    ];
    for (name, _) in types {
        site.add(name, name.as_bytes());
    }
    let fixture = Fixture::start_toml(site, "media_types = { m4s = \"video/iso.segment\" }");
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (name, media_type) in types {
            let response = connection.get(&format!("/{name}"), "");
            response.assert_is(200, name.as_bytes());
            assert_eq!(response.expect("Content-Type"), media_type, "{name}");
        }
    }
}
