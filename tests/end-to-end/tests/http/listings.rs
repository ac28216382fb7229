//! Folder listings: a page for people, JSON for programs, or none.

use crate::support::{Fixture, Transport, age};
use linerate_end_to_end::Site;
use serde_json::Value;
use std::time::Duration;

fn site() -> Site {
    let site = Site::empty();
    for (name, length) in [("b.txt", 2), ("a10.txt", 3000), ("a9.txt", 10), ("Über <uns> & \"wir\".html", 5)]
    {
        site.add_pattern(name, length);
    }
    site.add("sub folder/deep/x", b"x");
    age(&site.path().join("b.txt"), Duration::from_secs(86_400));
    site
}

#[test]
fn a_page_lists_what_is_there_and_links_to_it() {
    let fixture = Fixture::start(site());
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        let response = connection.get("/", "");
        assert_eq!(response.status, 200);
        assert!(response.complete);
        assert_eq!(response.expect("Content-Type"), "text/html; charset=utf-8");
        assert!(response.expect("Content-Security-Policy").starts_with("default-src 'none'"));
        let page = response.text();
        for link in ["b.txt", "a10.txt", "sub%20folder/", "%C3%9Cber%20%3Cuns%3E%20&amp;%20%22wir%22.html"] {
            let link = link.replace("&amp;", "&");
            let found = page.contains(&format!("href=\"{link}\""))
                || page.contains(&format!("href=\"{}\"", link.replace('&', "%26")));
            assert!(found, "{link}\n{page}");
        }
        assert!(page.contains("Über &lt;uns&gt; &amp; &quot;wir&quot;.html"), "{page}");
        for outside in ["http://", "https://", "<script", "src="] {
            assert!(!page.contains(outside), "{outside}");
        }
        // Every link leads somewhere.
        let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let links: Vec<_> =
            links.filter(|link| !link.starts_with(['?', '#']) && !link.contains(':')).collect();
        assert!(links.len() >= 5, "{links:?}");
        for link in links {
            let target = format!("/{}", link.trim_start_matches("./").replace("&amp;", "&"));
            assert_eq!(connection.get(&target, "").status, 200, "{target}");
        }
    }
}

fn names(document: &Value) -> Vec<&str> {
    let entries = document["entries"].as_array().expect("entries");
    entries.iter().map(|entry| entry["name"].as_str().expect("a name")).collect()
}

#[test]
fn json_tells_exactly_what_is_there() {
    let fixture = Fixture::start(site());
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        let mut fetch = |query: &str| {
            let response = connection.get(&format!("/?format=json{query}"), "");
            assert_eq!(response.status, 200);
            assert_eq!(response.expect("Content-Type"), "application/json");
            serde_json::from_slice::<Value>(&response.body).expect("JSON")
        };
        let by_name = fetch("");
        let uber = "Über <uns> & \"wir\".html";
        assert_eq!(names(&by_name), ["sub folder", "a9.txt", "a10.txt", "b.txt", uber]);
        assert_eq!(
            names(&fetch("&sort=size&order=desc")),
            ["sub folder", "a10.txt", "a9.txt", uber, "b.txt"]
        );
        assert_eq!(names(&fetch("&sort=date"))[1], "b.txt");
        assert_eq!(by_name["files"], 4);
        assert_eq!(by_name["directories"], 1);
        assert_eq!(by_name["total_bytes"], 2 + 3000 + 10 + 5);
        assert_eq!(by_name["cut"], false);
        assert_eq!(by_name["entries"][2]["size"], 3000);
        assert_eq!(by_name["entries"][0]["type"], "directory");
        for entry in by_name["entries"].as_array().unwrap() {
            let target = format!("/{}", entry["href"].as_str().unwrap());
            let response = connection.get(&target, "");
            assert_eq!(response.status, 200, "{target}");
            if let Some(size) = entry["size"].as_u64() {
                assert_eq!(response.body.len() as u64, size);
                assert!(response.body == fixture.site.bytes(entry["name"].as_str().unwrap()));
            }
        }
        let deep = connection.get("/sub%20folder/deep/?format=json", "");
        let deep: Value = serde_json::from_slice(&deep.body).unwrap();
        assert_eq!((deep["path"].as_str(), names(&deep)), (Some("/sub folder/deep/"), vec!["x"]));
    }
}

#[test]
fn names_with_controls_are_listed_shown_and_reachable() {
    let site = Site::empty();
    let names = ["line\r\nbreak", "\u{1b}[31mred", "\u{1}", "\u{7f}", "tab\tulator", "ann\u{202e}txt.exe"];
    for name in names {
        site.add(name, name.as_bytes());
        site.add(&format!("{name} folder/{name}"), name.as_bytes());
    }
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        let page = connection.get("/", "").text();
        assert!(page.contains("<bdi>ann<b>U+202E</b>txt.exe</bdi>"), "{page}");
        assert!(page.contains("<bdi>line<b>U+000D</b><b>U+000A</b>break</bdi>"), "{page}");
        let is_hidden =
            |character: char| character != '\n' && (character.is_control() || character == '\u{202e}');
        assert!(!page.contains(is_hidden));
        let document = connection.get("/?format=json", "").text();
        assert!(!document.contains(is_hidden));
        let document: Value = serde_json::from_str(&document).expect("JSON");
        assert_eq!(
            (&document["files"], &document["directories"]),
            (&names.len().into(), &names.len().into())
        );
        for entry in document["entries"].as_array().unwrap() {
            let (name, href) = (entry["name"].as_str().unwrap(), entry["href"].as_str().unwrap());
            let name = name.trim_end_matches(" folder");
            let file = href.trim_end_matches("%20folder/");
            let target = if file == href { format!("/{href}") } else { format!("/{href}{file}") };
            connection.get(&target, "").assert_is(200, name.as_bytes());
            if file != href {
                let below = connection.get(&format!("/{href}"), "").text();
                assert!(below.contains("<title>Index of /") && !below.contains(is_hidden), "{below}");
                // Without its slash it is redirected to the same place, and the header is whole.
                let redirect = connection.get(&format!("/{}", href.trim_end_matches('/')), "");
                assert_eq!((redirect.status, redirect.expect("Location")), (301, &*format!("/{href}")));
            }
        }
    }
}

#[test]
fn accept_chooses_the_format_where_the_query_does_not() {
    let fixture = Fixture::start_toml(site(), "headers = [{ path = \"/**\", set = { Vary = \"Origin\" } }]");
    let (html, json) = ("text/html; charset=utf-8", "application/json");
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (target, accept, media_type) in [
            ("/", "Accept: application/json\r\n", json),
            ("/", "Accept: text/html, application/json;q=0.9, */*;q=0.8\r\n", html),
            ("/", "Accept: */*\r\n", html),
            ("/", "", html),
            ("/?format=html", "Accept: application/json\r\n", html),
            ("/?format=json", "Accept: text/html\r\n", json),
        ] {
            let response = connection.get(target, accept);
            assert_eq!(response.expect("Content-Type"), media_type, "{target} {accept}");
            for vary in ["\r\nVary: Accept\r\n", "\r\nVary: Origin\r\n"] {
                assert!(response.head.contains(vary), "{}", response.head);
            }
        }
        assert!(!connection.get("/b.txt", "").head.contains("Vary: Accept\r\n"));
    }
}

#[test]
fn a_listing_can_be_cut_off_and_switched_off() {
    let fixture = Fixture::start_toml(site(), "\n[limits]\nlisting_entries = 3\n");
    let response = fixture.connect(Transport::Tls).get("/?format=json", "");
    let document: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!((names(&document).len(), &document["cut"]), (3, &Value::Bool(true)));

    let fixture = Fixture::start_with(site(), |setup| setup.flag("--no-listing"));
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (target, status) in
            [("/", 403), ("/?format=json", 403), ("/sub%20folder/", 403), ("/missing/", 404)]
        {
            assert_eq!(connection.get(target, "").status, status, "{target}");
        }
        connection.get("/sub%20folder/deep/x", "").assert_is(200, b"x");
    }
}

#[test]
fn head_of_a_listing_tells_its_length() {
    let fixture = Fixture::start(site());
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        let page = connection.get("/", "");
        connection.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(connection.response_to(true).content_length(), Some(page.body.len()));
        connection.get("/", "Range: bytes=0-14\r\n").assert_is(206, &page.body[..15]);
    }
}
