//! What keeps a server from starting is said in words, with the place that asked for it, and an exit status.

use crate::support::{certificate_folder, toml_for};
use linerate_end_to_end::{CertificatePair, ServerSetup, Site};
use std::{fs, net::TcpListener};

/// Fails to start with this status and all of these words.
#[track_caller]
fn fails(setup: ServerSetup, status: i32, words: &[&str]) {
    match setup.try_start() {
        Ok(_) => panic!("it started; {words:?} were expected"),
        Err((ended, stderr)) => {
            assert_eq!(ended.code(), Some(status), "{stderr}");
            for word in words {
                assert!(stderr.contains(word), "{word:?} is missing in:\n{stderr}");
            }
            assert!(!stderr.contains("panicked"), "{stderr}");
        }
    }
}

fn served() -> (Site, tempfile::TempDir, CertificatePair) {
    let (keys, pair) = certificate_folder();
    (Site::empty(), keys, pair)
}

#[test]
fn a_port_in_use() {
    let (site, _keys, pair) = served();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for workers in ["1", "2"] {
        let setup = ServerSetup::new().flag(site.path()).flags(["--workers", workers, "--listen", &address]);
        fails(setup.certificate(&pair), 1, &["--listen", &address, "another program listens there"]);
    }
    let admin = ServerSetup::tls(&site, &pair).flags(["--admin", &address]);
    fails(admin, 1, &["--admin", &address]);
}

#[test]
fn a_port_that_another_server_of_ours_has() {
    let (site, _keys, pair) = served();
    let first = ServerSetup::new().flag(site.path()).flags(["--workers", "2", "--listen", "127.0.0.1:0"]);
    let first = first.certificate(&pair).start();
    let address = first.address().to_string();
    for workers in ["1", "2"] {
        let setup = ServerSetup::new().flag(site.path()).flags(["--workers", workers, "--listen", &address]);
        fails(setup.certificate(&pair), 1, &[&address, "another program listens there"]);
    }
}

#[test]
fn a_folder_that_is_not_there_or_none() {
    let (site, _keys, pair) = served();
    let missing = site.path().join("missing");
    let file = site.add("file", b"");
    for wrong in [missing, file] {
        let setup = ServerSetup::new().flag(&wrong).flags(["--listen", "127.0.0.1:0"]).certificate(&pair);
        fails(setup, 1, &["DIR", wrong.to_str().unwrap()]);
    }
    fails(ServerSetup::new(), 2, &["DIR", "Usage"]);
}

#[test]
fn certificates_and_keys_that_do_not_fit() {
    let (site, keys, pair) = served();
    let other =
        CertificatePair::create(keys.path(), "other", linerate_end_to_end::Algorithm::Ecdsa, &["localhost"]);
    let with = |certificate: &std::path::Path, key: &std::path::Path| {
        let setup = ServerSetup::new().flag(site.path()).flags(["--listen", "127.0.0.1:0"]);
        setup.flag("--cert").flag(certificate).flag("--key").flag(key)
    };
    let (name, key) = (pair.certificate.to_str().unwrap(), other.key.to_str().unwrap());
    fails(with(&pair.certificate, &other.key), 1, &["--key", name, key]);
    fails(with(&pair.key, &pair.key), 1, &["--cert", "localhost.key"]);
    fails(with(&pair.certificate, &pair.certificate), 1, &["--key", "localhost.pem"]);
    fails(with(&keys.path().join("none.pem"), &pair.key), 1, &["none.pem"]);
    let empty = keys.path().join("empty.pem");
    fs::write(&empty, "").unwrap();
    fails(with(&empty, &pair.key), 1, &["empty.pem"]);
    let unequal = ServerSetup::new().flag(site.path()).flag("--cert").flag(&pair.certificate);
    fails(unequal, 2, &["--cert and --key come in pairs", "1 --cert and 0 --key"]);
}

#[test]
fn configurations_that_are_wrong_at_a_place() {
    let (site, _keys, pair) = served();
    for (toml, words) in [
        ("listing = 7", &["linerate.toml:7:11: ", "true or false"][..]),
        ("lisitng = true", &["linerate.toml:7:1: ", "listing"]),
        ("listing = true\nlisting = false", &["linerate.toml:8:"]),
        ("\n[timeouts]\nidle = \"10ms\"", &["linerate.toml:9:8: ", "1s"]),
        ("\n[nonsense]\n", &["linerate.toml:8:2: ", "nonsense"]),
    ] {
        fails(ServerSetup::toml(&toml_for(&site, &pair, toml)), 1, words);
    }
    fails(ServerSetup::new().flags(["--config", "/nowhere/linerate.toml"]), 1, &["/nowhere/linerate.toml"]);
}

#[test]
fn logs_and_processors_that_cannot_be_had() {
    let (site, _keys, pair) = served();
    let log = site.path().join("missing/access.log");
    fails(ServerSetup::tls(&site, &pair).flag("--access-log").flag(&log), 1, &["--access-log", "access log"]);
    // A folder that is there, and takes no files: it is found out when the file is opened.
    let log = std::path::Path::new("/proc/access.log");
    let words = ["--access-log: the access log /proc/access.log cannot be opened"];
    fails(ServerSetup::tls(&site, &pair).flag("--access-log").flag(log), 1, &words);
    let words = ["--cpus: this process cannot use the CPUs ", "-4095,4100; it may use "];
    fails(ServerSetup::tls(&site, &pair).flags(["--cpus", "0-4095,4100"]), 1, &words);
    fails(ServerSetup::tls(&site, &pair).flags(["--engine", "warp"]), 2, &["--engine", "auto, user"]);
}
