//! Why each response was carried by the engine that carried it: counted, logged, shown, and none without a reason.

use crate::support::{Fixture, Transport, add_at_rest, get};
use linerate_end_to_end::{Server, ServerSetup, Site, calibration, curl, wait_until};
use serde_json::Value;
use std::{collections::BTreeMap, fs};

/// Responses over TLS by engine and reason, as the metrics have them.
fn placements(server: &Server) -> BTreeMap<(String, String), u64> {
    let label = |line: &str, name: &str| {
        let start = line.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
        line[start..].split('"').next().unwrap().to_owned()
    };
    let page = server.metrics();
    let lines = page.lines().filter(|line| line.starts_with("linerate_placement_total{"));
    lines
        .map(|line| {
            let count = line.rsplit_once(' ').unwrap().1.parse().unwrap();
            ((label(line, "engine"), label(line, "reason")), count)
        })
        .collect()
}

fn over_tls(server: &Server) -> u64 {
    let of = |engine| server.metric("linerate_http_responses_total", &format!("engine=\"{engine}\"")) as u64;
    of("user") + of("kernel")
}

fn site() -> Site {
    let site = Site::empty();
    add_at_rest(&site, "small", 1000);
    add_at_rest(&site, "large", 3_000_001);
    add_at_rest(&site, "huge", 24 << 20);
    site
}

/// Every kind of response: whole, part, none, refused, no request at all, cut in the middle.
fn every_kind(fixture: &Fixture) {
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (target, headers) in [
            ("/small", ""),
            ("/large", ""),
            ("/large", "Range: bytes=70001-2070003\r\n"),
            ("/large", "Range: bytes=0-9,1000000-1000099\r\n"),
            ("/missing", ""),
            ("/small", "If-None-Match: *\r\n"),
        ] {
            connection.get(target, headers);
        }
        connection.send("HEAD /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
        connection.response_to(true);
        connection.send("rubbish\r\n\r\n");
        assert_eq!(connection.response().status, 400);
        let mut vanishing = fixture.connect_with_small_window(transport, 16 * 1024);
        vanishing.send(get("/huge", ""));
        vanishing.receive(&mut [0; 1000]).unwrap();
    }
}

/// INV-PLACE-3: by the metrics, and by the log.
#[test]
fn the_reasons_add_up() {
    for engine in ["auto", "user", "kernel"] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("access.log");
        let fixture = Fixture::start_with(site(), |setup| {
            setup.flag("--access-log").flag(&log).flags(["--log-format", "json", "--engine", engine])
        });
        every_kind(&fixture);
        let lines = || fs::read_to_string(&log).unwrap_or_default();
        wait_until("18 lines in the log", || lines().lines().count() == 18);
        let mut logged = BTreeMap::<(String, String), u64>::new();
        for line in lines().lines() {
            let entry: Value = serde_json::from_str(line).unwrap();
            assert_eq!(entry["reason"].is_null(), entry["engine"] == "plain", "{line}");
            if let Some(reason) = entry["reason"].as_str() {
                // A connection that moved in the middle of a response counts where it ended.
                let by = entry["engine"].as_str().unwrap().rsplit('+').next().unwrap();
                *logged.entry((by.to_owned(), reason.to_owned())).or_default() += 1;
            }
        }
        let counted = placements(&fixture.server);
        assert_eq!(counted, logged, "{engine}");
        assert_eq!(counted.values().sum::<u64>(), 9, "{engine}");
        assert_eq!(over_tls(&fixture.server), 9, "{engine}");
        if engine == "user" {
            assert_eq!(counted, [(("user".to_owned(), "fixed".to_owned()), 9)].into());
        }
    }
}

#[test]
fn the_start_says_what_will_happen_and_the_page_what_did() {
    let fixture = Fixture::start_with(site(), |setup| setup.flags(["--engine", "user"]));
    assert!(
        fixture.server.stderr().contains("engine user for all, as configured"),
        "{}",
        fixture.server.stderr()
    );
    let mut connection = fixture.connect(Transport::Tls);
    connection.get("/large", "");
    let page = || curl([&format!("http://{}/placement", fixture.server.admin())]).run().text();
    wait_until("the worker's heartbeat", || page().contains("3 MB of content, TLS 1.3 AES"));
    let page = page();
    for words in [
        "engine user for all, as configured\n",
        "costs: published figures; `linerate calibrate` measures this machine\n",
        "user    fixed\n",
        "1                    all\n",
        ": user: fixed by --engine user\n",
    ] {
        assert!(page.contains(words), "{words:?} is missing in\n{page}");
    }
}

#[test]
fn auto_says_why_it_stays_with_the_user_engine() {
    let fixture = Fixture::start(site());
    let stderr = fixture.server.stderr();
    assert!(stderr.contains("engine auto: user for all; "), "{stderr}");
    fixture.connect(Transport::Tls).get("/large", "");
    let counted = placements(&fixture.server);
    let reasons: Vec<&str> = counted.keys().map(|(_, reason)| reason.as_str()).collect();
    assert!(
        matches!(reasons[..], ["no_module" | "not_cheaper" | "not_in_kernel" | "not_known"]),
        "{reasons:?}"
    );
    let page = curl([&format!("http://{}/placement", fixture.server.admin())]).run().text();
    assert!(page.contains("kernel") && page.contains("never"), "{page}");
}

#[test]
fn a_calibration_that_cannot_be_read_is_a_fault_with_its_place() {
    let (site, folder) = (site(), tempfile::tempdir().unwrap());
    let path = folder.path().join("calibration.toml");
    let fails = |words: &str| {
        let setup = ServerSetup::new().flag(site.path()).flags(["--listen", "http://127.0.0.1:0"]);
        let (status, stderr) = match setup.flag("--calibration").flag(&path).try_start() {
            Ok(_) => panic!("it started; {words:?} was expected"),
            Err(ended) => ended,
        };
        assert_eq!(status.code(), Some(1));
        assert!(stderr.contains(&format!("--calibration: the calibration {}", path.display())), "{stderr}");
        assert!(stderr.contains(words) && stderr.contains("`linerate calibrate`"), "{stderr}");
    };
    fails("cannot be read: ");
    let text = fs::read_to_string(calibration(folder.path(), 0.5, 10_000.0)).unwrap();
    fs::write(&path, text.replacen("per_byte_ns = 1.0", "per_byte_ns = true", 1)).unwrap();
    fails(": line ");
}

#[test]
fn a_calibration_of_another_machine_is_noted_and_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = calibration(folder.path(), 0.5, 10_000.0);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("kernel = \"Linux ", "kernel = \"Linux 0.", 1)).unwrap();
    let fixture = Fixture::start_with(site(), |setup| setup.flag("--calibration").flag(&path));
    let stderr = fixture.server.stderr();
    assert!(stderr.contains("it was measured on another kernel (Linux 0."), "{stderr}");
    let page = curl([&format!("http://{}/placement", fixture.server.admin())]).run().text();
    assert!(page.contains("costs: published figures; of "), "{page}");
}

#[test]
fn a_reload_takes_a_new_calibration_and_refuses_a_broken_one() {
    let (folder, site) = (tempfile::tempdir().unwrap(), site());
    let path = calibration(folder.path(), 0.5, 10_000.0);
    let fixture = Fixture::start_changed_toml(site, "", |toml| {
        toml.replace("\n[[site]]", &format!("\n[placement]\ncalibration = {path:?}\n[[site]]"))
    });
    let page = || curl([&format!("http://{}/placement", fixture.server.admin())]).run().text();
    wait_until("the worker's heartbeat", || page().contains("20 kB"));
    assert_eq!(calibration(folder.path(), 0.8, 10_000.0), path);
    fixture.server.reload();
    wait_until("the new figures", || page().contains("50 kB"));
    fs::write(&path, "schema = 7").unwrap();
    fixture.server.signal(linerate_end_to_end::Signal::HUP);
    fixture.server.wait_for_stderr("not reloaded: the old configuration keeps serving");
    assert!(page().contains("50 kB"), "{}", page());
}
