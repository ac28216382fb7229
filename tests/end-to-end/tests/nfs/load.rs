//! `linerate load nfs://…`: every byte of what it reads is the file's, and what a server refuses is said.

use crate::calls::{certificates, serve};
use linerate_end_to_end::{Algorithm, CertificatePair, Finished, Program, Server, Site, linerate_binary};
use serde_json::Value;

/// Lengths of which blocks leave a rest, or none, and files shorter than a block.
const LENGTHS_BYTES: [usize; 5] = [1, 4095, 65_536, 300_001, 3_000_017];

fn load(words: &[&str]) -> Finished {
    let program = linerate_binary().to_str().expect("a path of a test is text");
    Program::new(program, [&["load", "--json"], words].concat()).run()
}

fn report(finished: &Finished) -> Value {
    serde_json::from_slice(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {}", finished.stderr))
}

struct Fixture {
    site: Site,
    pair: CertificatePair,
    server: Server,
    _folder: tempfile::TempDir,
}

impl Fixture {
    fn new(rule: &str) -> Self {
        let site = Site::empty();
        for length_bytes in LENGTHS_BYTES {
            site.add_pattern(&format!("a folder/{length_bytes}"), length_bytes);
        }
        // This one has been at rest for a while: it is mapped, and the others are read.
        let at_rest = std::fs::File::open(site.path().join("a folder/3000017")).unwrap();
        let hour = std::time::Duration::from_secs(3600);
        let times = std::fs::FileTimes::new().set_modified(std::time::SystemTime::now() - hour);
        at_rest.set_times(times).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let pair = CertificatePair::for_localhost(folder.path());
        let toml = format!("{}[[export]]\ndirectory = {:?}\n{rule}", certificates(&pair), site.path());
        Self { server: serve(&toml), site, pair, _folder: folder }
    }

    fn url(&self, path: &str) -> String {
        format!("nfs://localhost:{}/{path}", self.server.listener("nfs", 0).port())
    }
}

#[test]
fn every_byte_is_the_file_s_in_any_order_and_size() {
    let fixture = Fixture::new("tls = \"offer\"\n");
    let urls = LENGTHS_BYTES.map(|length_bytes| fixture.url(&format!("a%20folder/{length_bytes}")));
    let folder = fixture.site.path().to_str().unwrap();
    let authority = fixture.pair.certificate.to_str().unwrap();
    for (security, version) in
        [(["--xprtsec", "none"], "4.1"), (["--ca", authority], "4.2"), (["--ca", authority], "4.1")]
    {
        for (order, block, depth) in [
            ("sequential", "1MiB", "3"),
            ("random", "64KiB", "1"),
            ("anywhere", "99991", "8"),
            ("anywhere", "1", "2"),
        ] {
            let mut words: Vec<&str> = urls.iter().map(String::as_str).collect();
            words.extend(["-n", "200", "-c", "5", "-t", "2", "--verify", folder, "--vers", version]);
            words.extend(["--order", order, "--block", block, "--depth", depth]);
            words.extend(security);
            let finished = load(&words);
            let report = report(&finished);
            assert!(finished.status.success(), "{words:?}: {report:#}");
            assert_eq!((&report["totals"]["responses"], &report["verified"]), (&200.into(), &true.into()));
            assert_eq!(report["latency"]["count"], 200);
            let handshakes = report["totals"]["full_handshakes"].as_u64().unwrap();
            assert_eq!(handshakes, if security[0] == "--ca" { 5 } else { 0 });
        }
    }
    assert!(fixture.server.metric("linerate_nfs_calls_total", r#"outcome="answered""#) >= 2400.0);
}

#[test]
fn one_wrong_byte_is_found_and_named() {
    let fixture = Fixture::new("tls = \"offer\"\n");
    let mut wrong = std::fs::read(fixture.site.path().join("a folder/300001")).unwrap();
    wrong[200_003] ^= 1;
    let source = fixture.site.path().join("wrong");
    std::fs::write(&source, &wrong).unwrap();
    for security in ["none", "tls"] {
        let url = fixture.url("a%20folder/300001");
        let mut words = vec![url.as_str(), "-n", "7", "-c", "1", "--block", "100000", "--xprtsec", security];
        words.extend(["--verify", source.to_str().unwrap()]);
        words.extend((security == "tls").then_some("--insecure"));
        let finished = load(&words);
        let found = report(&finished);
        assert_eq!(finished.status.code(), Some(1));
        // The third READ of four, and the seventh.
        assert_eq!(found["errors"]["verify: a byte differs"], 2, "{found:#}");
        assert_eq!(found["mismatches"][0]["offset"], 200_003);
    }
}

/// The certificate is the client's, and its file one that is wanted whole.
#[test]
fn a_server_that_wants_to_know_its_clients_is_shown_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let create = |stem, name| CertificatePair::create(folder.path(), stem, Algorithm::Ecdsa, &[name]);
    let (pair, me, other) =
        (create("server", "localhost"), create("me", "me.example"), create("other", "other.example"));
    let site = Site::empty();
    site.add_pattern("file", 300_001);
    let server = serve(&format!(
        "{}client_authorities = {:?}\n[[export]]\ndirectory = {:?}\nclients = [\"me.example\"]\n",
        certificates(&pair),
        me.certificate,
        site.path()
    ));
    let url = format!("nfs://localhost:{}/file", server.listener("nfs", 0).port());
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let with = |more: &[&str]| {
        let verify = [path(&pair.certificate), path(site.path())];
        load(&[&[&url, "-n", "9", "-c", "2", "--ca", &verify[0], "--verify", &verify[1]], more].concat())
    };
    let (mine, key) = (path(&me.certificate), path(&me.key));
    let finished = with(&["--cert", &mine, "--key", &key]);
    assert!(finished.status.success(), "{}", finished.stderr);
    assert_eq!(report(&finished)["totals"]["responses"], 9);
    for (more, said) in [
        (vec![], "AUTH_TOOWEAK"),
        (vec!["--cert", &path(&other.certificate), "--key", &path(&other.key)], "AUTH_TOOWEAK"),
        (vec!["--cert", &mine, "--key", &path(&other.key)], "does not belong to the certificate"),
        (vec!["--cert", "/nowhere.pem", "--key", &key], "/nowhere.pem"),
    ] {
        let finished = with(&more);
        assert_eq!(finished.status.code(), Some(1), "{more:?}");
        assert!(finished.stderr.contains(said), "{more:?}: {}", finished.stderr);
    }
    let finished = with(&["--cert", &mine]);
    assert_eq!(finished.status.code(), Some(2));
    assert!(finished.stderr.contains("--key"), "{}", finished.stderr);
}

#[test]
fn what_the_server_refuses_is_said_in_words() {
    let fixture = Fixture::new("");
    let there = fixture.url("a%20folder/1");
    let (missing, folder) = (fixture.url("nowhere"), fixture.url("a%20folder"));
    for (words, said) in [
        (vec![there.as_str(), "--xprtsec", "none"], "AUTH_TOOWEAK"),
        (vec![there.as_str()], "the certificate is not trusted"),
        (vec![missing.as_str(), "--insecure"], "look-up: NFS4ERR_NOENT"),
        (vec![folder.as_str(), "--insecure"], "no regular file"),
    ] {
        let finished = load(&[words.as_slice(), &["-n", "1", "-c", "1"]].concat());
        assert_eq!(finished.status.code(), Some(1));
        let text = finished.stderr;
        assert!(text.contains(said), "{words:?}: {text}");
    }
    for (words, said) in [
        (vec![there.as_str(), "--discard"], "--discard means nothing"),
        (vec![there.as_str(), "https://localhost/"], "URLs of one kind"),
        (vec!["https://localhost/", "--depth", "2"], "--depth means nothing"),
        (vec![there.as_str(), "--depth", "0"], "--depth: 1 to"),
    ] {
        let finished = load(&words);
        assert_eq!(finished.status.code(), Some(2), "{words:?}");
        let text = finished.stderr;
        assert!(text.contains(said), "{words:?}: {text}");
    }
}
