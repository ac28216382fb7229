//! Several sites, headers by path, HSTS, and the listener that redirects: what only a configuration file says.

use crate::support::{Connection, Fixture, Transport, client_config};
use linerate_end_to_end::{Algorithm, CertificatePair, ServerSetup, Site, curl};

#[test]
fn headers_and_cache_control_are_by_path() {
    let site = Site::empty();
    for name in ["index.html", "static/app.js", "static/deep/a.m4s", "b.m4s"] {
        site.add(name, name.as_bytes());
    }
    let fixture = Fixture::start_toml(
        site,
        r#"
hsts = { max_age = "365d", include_subdomains = true, preload = true }
headers = [
  { path = "/**", set = { X-Content-Type-Options = "nosniff", X-Where = "everywhere" } },
  { path = "/static/**", set = { X-Where = "static", Access-Control-Allow-Origin = "*" } },
]
cache_control = [
  { path = "/**", value = "no-cache" },
  { path = "*.m4s", value = "public, max-age=31536000, immutable" },
]"#,
    );
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (name, place, cors, cache) in [
            ("index.html", "everywhere", None, "no-cache"),
            ("static/app.js", "static", Some("*"), "no-cache"),
            ("static/deep/a.m4s", "static", Some("*"), "public, max-age=31536000, immutable"),
            ("b.m4s", "everywhere", None, "public, max-age=31536000, immutable"),
        ] {
            let response = connection.get(&format!("/{name}"), "");
            response.assert_is(200, name.as_bytes());
            assert_eq!(response.expect("X-Content-Type-Options"), "nosniff");
            assert_eq!(response.expect("X-Where"), place, "{name}");
            assert_eq!(response.header("Access-Control-Allow-Origin"), cors, "{name}");
            assert_eq!(response.expect("Cache-Control"), cache, "{name}");
            let revalidated = format!("If-None-Match: {}\r\n", response.expect("ETag"));
            let response = connection.get(&format!("/{name}"), &revalidated);
            assert_eq!((response.status, response.expect("Cache-Control")), (304, cache));
        }
        assert_eq!(connection.get("/static/", "").expect("Cache-Control"), "no-cache");
    }
    let response = fixture.connect(Transport::Tls).get("/index.html", "");
    assert_eq!(response.expect("Strict-Transport-Security"), "max-age=31536000; includeSubDomains; preload");
}

struct Houses {
    sites: [Site; 3],
    pairs: [CertificatePair; 3],
    server: linerate_end_to_end::Server,
    _keys: tempfile::TempDir,
}

/// Three sites: a name, a wildcard, and the one for all others.
fn houses() -> Houses {
    let keys = tempfile::tempdir().unwrap();
    let sites = ["a", "b", "c"].map(|name| {
        let site = Site::empty();
        site.add("who", name.as_bytes());
        site
    });
    let pairs = [
        ("a", &["a.example", "www.a.example"][..]),
        ("b", &["*.b.example"][..]),
        ("c", &["localhost", "127.0.0.1"][..]),
    ]
    .map(|(stem, names)| CertificatePair::create(keys.path(), stem, Algorithm::Ecdsa, names));
    let mut toml = String::from(
        "listen = [\"127.0.0.1:0\", \"http://127.0.0.1:0\", \"redirect://127.0.0.1:0\"]\nworkers = 1\n",
    );
    let names = ["names = [\"a.example\", \"www.a.example\"]", "names = [\"*.b.example\"]", ""];
    for ((site, pair), names) in sites.iter().zip(&pairs).zip(names) {
        toml += &format!(
            "[[site]]\n{names}\nroot = {:?}\ncertificates = [{{ certificate = {:?}, key = {:?} }}]\n",
            site.path(),
            pair.certificate,
            pair.key
        );
    }
    let server = ServerSetup::toml(&toml).admin().start();
    Houses { sites, pairs, server, _keys: keys }
}

fn who(connection: &mut Connection, host: &str) -> (u16, String) {
    connection.send(format!("GET /who HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let response = connection.response();
    (response.status, response.text())
}

#[test]
fn sites_are_told_apart_by_name() {
    let houses = houses();
    let address = houses.server.address();
    for (index, sni, own, other) in [
        (0, "a.example", "www.a.example:8443", "x.b.example"),
        (1, "x.b.example", "y.B.example", "b.example"),
        (2, "localhost", "127.0.0.1", "a.example"),
    ] {
        let mut connection = Connection::tls(address, &houses.pairs[index], sni);
        let expected = String::from_utf8(houses.sites[index].bytes("who")).unwrap();
        for host in [sni, own] {
            assert_eq!(who(&mut connection, host), (200, expected.clone()), "{sni} {host}");
        }
        assert_eq!(who(&mut connection, other).0, 421, "{sni} {other}");
    }
    let mut plain = Connection::plain(houses.server.listener("http", 0));
    for (host, expected) in [
        ("a.example", "a"),
        ("WWW.a.example", "a"),
        ("q.b.example", "b"),
        ("b.example", "c"),
        ("else.example", "c"),
    ] {
        assert_eq!(who(&mut plain, host), (200, expected.into()), "{host}");
    }
}

#[test]
fn curl_reaches_each_site_by_its_name() {
    let houses = houses();
    let port = houses.server.address().port();
    for (pair, name, expected) in [
        (&houses.pairs[0], "a.example", "a"),
        (&houses.pairs[0], "www.a.example", "a"),
        (&houses.pairs[1], "anything.b.example", "b"),
        (&houses.pairs[2], "localhost", "c"),
    ] {
        let resolve = format!("{name}:{port}:127.0.0.1");
        let certificate = pair.certificate.to_str().unwrap();
        let url = format!("https://{name}:{port}/who");
        let fetched = curl(["--fail", "--cacert", certificate, "--resolve", &resolve, &url]).run().success();
        assert_eq!(fetched, expected.as_bytes());
    }
}

#[test]
fn a_client_without_sni_gets_the_default_site() {
    let houses = houses();
    let config = client_config(&houses.pairs[2]);
    // An address is no server name (RFC 6066 section 3): nothing is sent.
    let mut connection = Connection::try_tls(houses.server.address(), &config, "127.0.0.1").unwrap();
    assert_eq!(who(&mut connection, "127.0.0.1"), (200, "c".into()));
    connection.send("GET /who HTTP/1.0\r\n\r\n");
    connection.response().assert_is(200, b"c");
}

#[test]
fn the_redirect_listener_leads_to_the_same_place_over_tls() {
    let houses = houses();
    // Its line is the second `http://` one.
    let redirect = houses.server.listener("http", 1);
    let port = houses.server.address().port();
    let mut connection = Connection::plain(redirect);
    for (host, target, location) in [
        ("a.example", "/who", format!("https://a.example:{port}/who")),
        ("A.example:80", "/x%20y?q=1&r", format!("https://A.example:{port}/x%20y?q=1&r")),
        ("x.b.example", "//evil.example/..", format!("https://x.b.example:{port}//evil.example/..")),
        ("127.0.0.1", "/", format!("https://127.0.0.1:{port}/")),
    ] {
        connection.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let response = connection.response();
        assert_eq!(response.status, 308);
        assert_eq!(response.expect("Location"), location);
    }
    connection.send("POST /who HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nbody");
    assert_eq!(connection.response().status, 308);
    let plain_url = format!("http://a.example:{}/who", redirect.port());
    let followed = curl([
        "--fail",
        "--location",
        "--cacert",
        houses.pairs[0].certificate.to_str().unwrap(),
        "--connect-to",
        "a.example::127.0.0.1:",
        &plain_url,
    ]);
    assert_eq!(followed.run().success(), b"a");
}
