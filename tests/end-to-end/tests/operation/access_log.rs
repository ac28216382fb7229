//! The access log: right, in both formats, and never in the way.

use crate::support::{Fixture, Transport, add_at_rest, get};
use linerate_end_to_end::{Signal, Site, wait_until};
use serde_json::Value;
use std::{fs, path::Path};

const AGENT: &str = "User-Agent: test \"quoted\" \\ \u{e9}\r\nReferer: https://localhost/from\r\n";

fn site() -> Site {
    let site = Site::empty();
    site.add_pattern("file.bin", 12_345);
    site
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn wait_for_lines(path: &Path, count: usize) -> Vec<String> {
    wait_until(&format!("{count} lines in the log"), || lines(path).len() >= count);
    lines(path)
}

#[test]
fn combined_lines_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let fixture = Fixture::start_with(site(), |setup| setup.flag("--access-log").flag(&log));
    let mut connection = fixture.connect(Transport::Tls);
    connection.get("/file.bin?a=b", AGENT).assert_is(200, &fixture.site.bytes("file.bin"));
    connection.get("/missing%20file", "");
    fixture.connect(Transport::Plain).get("/file.bin", "Range: bytes=0-99\r\n");
    let lines = wait_for_lines(&log, 3);
    let (secure, missing, plain) = (&lines[0], &lines[1], &lines[2]);
    assert!(secure.starts_with("127.0.0.1 - - [") && secure.contains(" +0000] \"GET /file.bin?a=b HTTP/1.1\" 200 12345 \"https://localhost/from\" \"test \\x22quoted\\x22 \\x5C \\xC3\\xA9\" TLSv1.3 TLS_AES_"), "{secure}");
    assert!(secure.contains(" ok ") && secure.contains("_SHA") && secure.contains(" user 0."), "{secure}");
    assert!(missing.contains("\"GET /missing%20file HTTP/1.1\" 404 "), "{missing}");
    assert!(plain.contains("\"GET /file.bin HTTP/1.1\" 206 100 \"-\" \"-\" - - plain 0."), "{plain}");
}

#[test]
fn what_is_no_request_is_told_with_its_target_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let fixture = Fixture::start_with(site(), |setup| setup.flag("--access-log").flag(&log));
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(20_000));
    for (request, told, why) in [
        ("GET /without\"host\x1b[2J HTTP/1.1\r\n\r\n", "GET /without\\x22host\\x1B[2J HTTP/1.1", "malformed"),
        ("GET /without/host HTTP/1.1\r\n\r\n", "GET /without/host HTTP/1.1", "The Host header is missing."),
        ("\x16\x03\x01\r\n\r\n", "- \\x16\\x03\\x01 -", "malformed"),
        (&long, &format!("GET /{} ...", "y".repeat(507)), "longer than this server accepts"),
    ] {
        fs::write(&log, "").unwrap();
        let mut connection = fixture.connect(Transport::Plain);
        connection.send(request);
        assert!(connection.response().status >= 400);
        let line = wait_for_lines(&log, 1).remove(0);
        assert!(line.contains(&format!("] \"{told}\" 4")), "{told} in {line}");
        let (_, reason) = line.rsplit_once(" ok - \"").unwrap_or_else(|| panic!("{line}"));
        assert!(reason.contains(why) && reason.ends_with('"'), "{line}");
    }
}

#[test]
fn json_lines_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let site = site();
    add_at_rest(&site, "big.bin", 24 << 20);
    let fixture = Fixture::start_with(site, |setup| {
        setup.flag("--access-log").flag(&log).flags(["--log-format", "json"])
    });
    let mut connection = fixture.connect(Transport::Tls);
    connection.get("/file.bin", AGENT);
    connection.send("HEAD /file.bin HTTP/1.2\r\nHost: localhost\r\n\r\n");
    connection.response_to(true);
    connection.send("rubbish\r\n\r\n");
    assert_eq!(connection.response().status, 400);
    let mut vanishing = fixture.connect_with_small_window(Transport::Plain, 16 * 1024);
    vanishing.send(get("/big.bin", ""));
    vanishing.receive(&mut [0; 1000]).unwrap();
    drop(vanishing);
    let lines = wait_for_lines(&log, 4);
    let [got, head, rubbish, cut] =
        [0, 1, 2, 3].map(|index| serde_json::from_str::<Value>(&lines[index]).unwrap());
    for (key, value) in [
        ("peer", "127.0.0.1"),
        ("method", "GET"),
        ("target", "/file.bin"),
        ("protocol", "HTTP/1.1"),
        ("host", "localhost"),
        ("referer", "https://localhost/from"),
        ("user_agent", "test \"quoted\" \\ \u{e9}"),
        ("tls_version", "TLSv1.3"),
        ("server_name", "localhost"),
        ("engine", "user"),
    ] {
        assert_eq!(got[key], value, "{key} in {got}");
    }
    assert!(got["cipher"].as_str().unwrap().starts_with("TLS_"), "{got}");
    assert_eq!(
        (&got["status"], &got["bytes"], &got["complete"]),
        (&200.into(), &12_345.into(), &true.into())
    );
    assert_eq!((&head["method"], &head["bytes"], &head["status"]), (&"HEAD".into(), &0.into(), &200.into()));
    assert_eq!(head["protocol"], "HTTP/1.2", "as it was sent");
    assert_eq!((&rubbish["method"], &rubbish["status"]), (&"-".into(), &400.into()));
    assert_eq!((&rubbish["target"], &got["refused"]), (&"rubbish".into(), &Value::Null));
    assert!(rubbish["refused"].as_str().unwrap().contains("request line is malformed"), "{rubbish}");
    assert_eq!(
        (&cut["complete"], &cut["tls_version"], &cut["engine"]),
        (&false.into(), &Value::Null, &"plain".into())
    );
    assert!((1..24 << 20).contains(&cut["bytes"].as_u64().unwrap()), "{cut}");
}

#[test]
fn usr1_opens_the_log_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (log, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let fixture = Fixture::start_with(site(), |setup| setup.flag("--access-log").flag(&log));
    let mut connection = fixture.connect(Transport::Tls);
    connection.get("/file.bin?before", "");
    wait_for_lines(&log, 1);
    fs::rename(&log, &old).unwrap();
    connection.get("/file.bin?between", "");
    wait_for_lines(&old, 2);
    fixture.server.signal(Signal::USR1);
    wait_until("the new log", || log.exists());
    connection.get("/file.bin?after", "");
    let new = wait_for_lines(&log, 1);
    assert!(new.len() == 1 && new[0].contains("?after"), "{new:?}");
    let old = lines(&old);
    assert!(old.len() == 2 && old[0].contains("?before") && old[1].contains("?between"), "{old:?}");
}

#[test]
fn nothing_is_missing_after_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    for (round, signal) in [Signal::TERM, Signal::QUIT].into_iter().enumerate() {
        let mut fixture = Fixture::start_with(site(), |setup| setup.flag("--access-log").flag(&log));
        let mut connection = fixture.connect(Transport::Plain);
        for _ in 0..500 {
            connection.get("/file.bin", "Range: bytes=0-9\r\n");
        }
        drop(connection);
        fixture.server.signal(signal);
        assert!(fixture.server.wait_for_end().success());
        assert_eq!(lines(&log).len(), 500 * (round + 1), "{signal:?}");
    }
}

#[test]
fn a_full_disk_disturbs_nobody() {
    let fixture = Fixture::start_with(site(), |setup| setup.flags(["--access-log", "/dev/full"]));
    let bytes = fixture.site.bytes("file.bin");
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for _ in 0..1000 {
            connection.get("/file.bin", AGENT).assert_is(200, &bytes);
        }
    }
    wait_until("all lines are counted", || {
        fixture.server.metric("linerate_access_log_dropped_total", "") == 2000.0
    });
    let said = fixture.server.stderr();
    assert_eq!(said.matches("the access log cannot be written").count(), 1, "{said}");
}

#[test]
fn a_dash_is_standard_output() {
    let fixture = Fixture::start_with(site(), |setup| setup.flags(["--access-log", "-"]));
    fixture.connect(Transport::Tls).get("/file.bin", "");
    wait_until("a line", || fixture.server.stdout().contains("\"GET /file.bin HTTP/1.1\" 200 12345 "));
}
