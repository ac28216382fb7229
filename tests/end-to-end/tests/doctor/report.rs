//! What is reported, of the machine, a certificate and servers.

use crate::{doctor, findings};
use linerate_end_to_end::{Algorithm, CertificatePair, ServerSetup, Site, is_installed, skip};
use linerate_schema::{check_schema_is_complete, published, schema_faults};
use serde_json::Value;
use std::{net::TcpListener, process::Command};

fn schema() -> Value {
    published("linerate-doctor-1")
}

/// JSON of a run that may end with 0 or 3, as something is to be changed on most machines.
fn report(arguments: &[&str]) -> Value {
    let finished = doctor(&[&["--json"], arguments].concat()).run();
    assert!(matches!(finished.status.code(), Some(0 | 3)), "{}: {}", finished.status, finished.stderr);
    let report: Value = serde_json::from_slice(&finished.stdout).unwrap();
    let changes = report["summary"]["changes"].as_u64().unwrap();
    assert_eq!(finished.status.code(), Some(if changes == 0 { 0 } else { 3 }));
    report
}

/// Every engine sends what it is given, and what this machine lacks has its reason.
#[test]
fn the_self_test_proves_every_engine() {
    let finished = doctor(&["--self-test"]).run();
    let report = String::from_utf8(finished.stdout).unwrap();
    assert!(finished.status.success(), "{report}{}", finished.stderr);
    for line in [
        "ok      in the clear, by sendfile, from memory",
        "ok      in the clear, by sendfile, from a file system",
        "ok      user engine, TLSv1.3 AES-128-GCM, read",
        "ok      user engine, TLSv1.2 ChaCha20-Poly1305, mapped",
    ] {
        assert!(report.lines().any(|found| found == line), "{line}: {report}");
    }
    assert!(report.contains(", 0 failed\n") && report.contains("\nkernel: release: "), "{report}");
    let kernel = report.lines().filter(|line| line.contains(" kernel engine, ")).count();
    assert_eq!(kernel, 6, "{report}");
}

#[test]
fn json_is_what_the_schema_says() {
    check_schema_is_complete(&schema());
    let site = Site::empty();
    site.add_pattern("file", 300_000);
    let folder = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(folder.path());
    let server = ServerSetup::tls(&site, &pair).admin().start();
    let (address, admin) = (server.address(), server.admin().to_string());
    let certificate = pair.certificate.display().to_string();
    let root = site.path().display().to_string();
    let url = format!("https://{address}/file");
    let full = report(&["--cert", &certificate, "--root", &root, "--admin", &admin, &url]);
    assert_eq!(schema_faults(&schema(), &full), Vec::<String>::new());

    let [(subject, verdict, text, _)] = &findings(&full, "server.agreed")[..] else { panic!("{full}") };
    assert_eq!((*subject, *verdict), (url.as_str(), "ok"));
    assert!(text.starts_with("TLSv1.3, "), "{text}");
    assert_eq!(full["server"]["answer"]["value"]["speaks"], serde_json::json!(["TLSv1.2", "TLSv1.3"]));
    assert_eq!(full["server"]["answer"]["value"]["status"]["value"], 206);
    assert_eq!(full["server"]["answer"]["value"]["trusted"], false);
    let moved = full["server"]["answer"]["value"]["counters_moved"]["value"].to_string();
    assert!(moved.contains("linerate_http_responses_total{engine="), "{moved}");
    let shown = &full["server"]["answer"]["value"]["certificate"]["value"];
    assert_eq!(shown["sha256_fingerprint"], full["certificate"]["inspection"]["value"]["sha256_fingerprint"]);
    assert_eq!(shown["names"], serde_json::json!(["localhost", "127.0.0.1"]));
    assert_eq!(shown["chain"], "self_signed");
    let [(_, _, text, _)] = &findings(&full, "content.size")[..] else { panic!("{full}") };
    assert!(text.starts_with("293 KiB in 1 file"), "{text}");

    for (pointer, wrong) in [
        ("/schema", Value::from("linerate-doctor/2")),
        ("/summary/ok", Value::from(-1)),
        ("/findings/0/verdict", Value::from("bad")),
        ("/rates/0/bytes_per_s", Value::from(0)),
        ("/certificate/inspection/value/chain", Value::from("?")),
        ("/engines/0/kernel/carries", Value::from("yes")),
    ] {
        let mut changed = full.clone();
        *changed.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = wrong;
        assert!(!schema_faults(&schema(), &changed).is_empty(), "{pointer}");
    }
}

#[test]
fn what_cannot_be_looked_at_ends_with_1_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.pem").display().to_string();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let no_folder = folder.path().join("none").display().to_string();
    for (arguments, words) in [
        (&["--cert", &missing][..], "none.pem: cannot be read"),
        (&[&nobody], "Connection refused"),
        (&["127.0.0.1:99999"], "1 to 65535 are possible"),
        (&["--root", &no_folder], "No such file"),
    ] {
        let finished = doctor(arguments).run();
        assert_eq!(finished.status.code(), Some(1), "{arguments:?}");
        let said = finished.text();
        let (_, changes) =
            said.split_once("What to change, the most useful first\n   1. ").expect("a change");
        assert!(changes.lines().next().unwrap().contains(words), "{arguments:?}\n{said}");
    }
}

#[test]
fn a_plaintext_server_is_no_tls_server() {
    let site = Site::empty();
    let server = ServerSetup::plaintext(&site).start();
    let finished = doctor(&[&server.address().to_string()]).run();
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.text().contains("there is no TLS with it"), "{}", finished.text());
}

#[test]
fn another_server_keeps_its_engine_to_itself() {
    const NAME: &str = "another_server_keeps_its_engine_to_itself";
    if !is_installed("openssl") {
        return skip(NAME, "there is no openssl");
    }
    let folder = tempfile::tempdir().unwrap();
    let pair = CertificatePair::create(folder.path(), "rsa", Algorithm::Rsa, &["localhost"]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("openssl")
        .args(["s_server", "-quiet", "-www", "-tls1_2", "-accept", &format!("127.0.0.1:{port}"), "-cert"])
        .arg(&pair.certificate)
        .arg("-key")
        .arg(&pair.key)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    linerate_end_to_end::wait_until("openssl listens", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let finished = doctor(&["--json", &format!("localhost:{port}")]).run();
    server.kill().unwrap();
    server.wait().unwrap();
    let report: Value = serde_json::from_slice(&finished.stdout).unwrap();
    assert_eq!(schema_faults(&schema(), &report), Vec::<String>::new());
    let answer = &report["server"]["answer"]["value"];
    assert_eq!(answer["version"], "TLSv1.2", "{report}");
    assert_eq!(answer["speaks"], serde_json::json!(["TLSv1.2"]));
    assert_eq!(answer["certificate"]["value"]["key"], "RSA");
    assert_eq!(answer["certificate"]["value"]["key_bits"], 2048);
    assert!(
        answer["counters_moved"]["not_available"].as_str().unwrap().contains("only a linerate"),
        "{answer}"
    );
}

#[test]
fn openssl_is_measured_where_it_is() {
    const NAME: &str = "openssl_is_measured_where_it_is";
    if !is_installed("openssl") {
        return skip(NAME, "there is no openssl");
    }
    let path = std::env::var_os("PATH").unwrap();
    let finished = doctor(&["--json"]).env("PATH", path).run();
    let report: Value = serde_json::from_slice(&finished.stdout).unwrap();
    let rates = report["rates"].as_array().unwrap();
    let of = |library: &str| {
        rates.iter().filter(|rate| rate["library"].as_str().unwrap().starts_with(library)).count()
    };
    assert_eq!((of("aws-lc"), of("OpenSSL ")), (3, 3), "{rates:?}");
    for rate in rates {
        assert!(rate["bytes_per_s"]["value"].as_f64().is_some_and(|rate| rate > 1e7), "{rate}");
    }
}
