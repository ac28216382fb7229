//! File names as they stand in URLs: encoded, in any script, with anything in them that a file system takes; and those
//! that are no names.

use crate::support::{Fixture, Transport};
use linerate_end_to_end::Site;
use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

#[test]
fn every_name_a_file_can_have_can_be_asked_for() {
    let site = Site::empty();
    let names = [
        ("plain.txt", "/plain.txt"),
        ("with space.txt", "/with%20space.txt"),
        ("plus+and&and=.txt", "/plus+and&and=.txt"),
        ("Grüße/Öl.txt", "/Gr%C3%BC%C3%9Fe/%c3%96l.txt"),
        ("雪/さくら.txt", "/%E9%9B%AA/%E3%81%95%E3%81%8F%E3%82%89.txt"),
        ("question?.txt", "/question%3F.txt"),
        ("hash#.txt", "/hash%23.txt"),
        ("percent%41.txt", "/percent%2541.txt"),
        ("back\\slash.txt", "/back%5Cslash.txt"),
        ("quote'\"<>.txt", "/quote'%22%3C%3E.txt"),
        ("semi;colon:.txt", "/semi;colon:.txt"),
        ("🎬 film.txt", "/%F0%9F%8E%AC%20film.txt"),
        ("line\r\nbreak.txt", "/line%0D%0Abreak.txt"),
        ("\u{1b}[31mred\u{7f}.txt", "/%1B%5b31mred%7F.txt"),
        ("ann\u{202e}txt.exe", "/ann%E2%80%AEtxt.exe"),
    ];
    for (name, _) in names {
        site.add(name, name.as_bytes());
    }
    // Not UTF-8: an old disk is full of such.
    fs::write(site.path().join(OsStr::from_bytes(b"latin-\xe9.txt")), b"latin").unwrap();
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (name, target) in names {
            connection.get(target, "").assert_is(200, name.as_bytes());
            connection.get(&format!("{target}?query=a/b?c"), "").assert_is(200, name.as_bytes());
            let all_encoded: String = name.bytes().fold(String::from("/"), |path, byte| match byte {
                b'/' => path + "/",
                byte => path + &format!("%{byte:02x}"),
            });
            connection.get(&all_encoded, "").assert_is(200, name.as_bytes());
        }
        connection.get("/latin-%E9.txt", "").assert_is(200, b"latin");
    }
}

#[test]
fn no_spelling_leads_out_of_the_site() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "outside").unwrap();
    fs::create_dir(outside.path().join("site")).unwrap();
    let site = Site::empty();
    site.add("folder/inner", b"inside");
    let depth = "../".repeat(site.path().components().count() + 2);
    let encoded = "%2e%2e%2f".repeat(12);
    let fixture = Fixture::start(site);
    let secret = outside.path().join("secret");
    let secret = secret.to_str().unwrap();
    for transport in Transport::ALL {
        for target in [
            format!("/{depth}{secret}"),
            format!("/folder/{depth}{secret}"),
            format!("/{encoded}{secret}"),
            format!("/folder/%2e%2e/%2E%2E/..{secret}"),
            format!("/..%2f..%2f..{secret}"),
            format!("/folder/..\\..\\{secret}"),
            format!("/{secret}"),
            "/%00".into(),
            "/folder%00/inner".into(),
            "/folder/../folder/inner".into(),
            "/folder%2finner".into(),
            "/%zz".into(),
            "/%".into(),
            "/%2".into(),
            "/folder/inner%0a".into(),
            "/%c0%ae%c0%ae/secret".into(),
        ] {
            let mut connection = fixture.connect(transport);
            let response = connection.get(&target, "");
            assert!(matches!(response.status, 400 | 404), "{target}: {}", response.head);
            assert!(!response.text().contains("side"), "{target}: {}", response.text());
        }
        fixture.connect(transport).get("/folder/./inner", "").assert_is(200, b"inside");
    }
}
