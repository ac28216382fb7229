//! What an operator sees of the kernel engine, what clients resume, and a kernel that has lost its module.

use super::fixture::{Fixture, LARGE, kernel_bytes};
use linerate_end_to_end::{linerate_binary, skip, wait_until};
use linerate_guest_tests::Kernel;
use rustls::{
    HandshakeKind,
    version::{TLS12, TLS13},
};
use std::{fs, process::Command};

#[test]
fn metrics_and_access_log_name_the_engine() {
    let Some(fixture) = Fixture::new("metrics_and_access_log_name_the_engine") else { return };
    let server = fixture.setup().flags(["--access-log", "-", "--log-format", "json"]).start();
    let mut client = fixture.client(&TLS13).connect(server.address());
    // Promoted before the first response, which is large enough: the kernel's engine carries both.
    for name in [LARGE, "524289.bin"] {
        assert!(client.get(name).body == fixture.site.bytes(name));
    }
    assert!(kernel_bytes(&server) > 3_000_000.0);
    assert_eq!(server.metric("linerate_kernel_tls_promotions_total", ""), 1.0);
    assert_eq!(server.metric("linerate_kernel_tls_refused_total", ""), 0.0);
    let by_kernel = fixture.statistics().of("TlsTxSw") as f64;
    assert_eq!(server.metric("linerate_kernel_tls_stat", r#"counter="TlsTxSw""#), by_kernel);
    for name in [LARGE, "524289.bin"] {
        wait_until("the line of the access log", || server.stdout().contains(name));
        let log = server.stdout();
        let line = log.lines().find(|line| line.contains(name)).unwrap();
        assert!(line.contains(r#""engine":"kernel""#), "{line}");
    }
}

#[test]
fn promoted_connections_leave_tickets_that_resume() {
    let Some(fixture) = Fixture::new("promoted_connections_leave_tickets_that_resume") else { return };
    let server = fixture.setup().start();
    for version in [&TLS12, &TLS13] {
        let setup = fixture.client(version).resuming();
        let before = fixture.statistics();
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
            let mut client = setup.connect(server.address());
            assert!(client.get(LARGE).body == fixture.site.bytes(LARGE));
            assert_eq!(client.connection().handshake_kind(), Some(expected), "{version:?}");
        }
        assert_eq!(before.moved("TlsTxSw"), 3, "{version:?}");
    }
}

#[test]
fn doctor_finds_all_that_this_kernel_has() {
    let Some(_fixture) = Fixture::new("doctor_finds_all_that_this_kernel_has") else { return };
    let output = Command::new(linerate_binary()).arg("doctor").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    for version in ["TLSv1.3", "TLSv1.2"] {
        for cipher in ["AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305"] {
            let subject = format!(" {version} {cipher}: ");
            let line = said.lines().find(|line| line.contains(&subject));
            let line = line.unwrap_or_else(|| panic!("{version} {cipher} in\n{said}"));
            assert!(line.contains("kernel yes, self-test passed"), "{line}");
            let in_place = version == "TLSv1.3" && Kernel::running().takes_new_keys();
            assert_eq!(line.contains("new keys in place"), in_place, "{line}");
        }
    }
}

#[test]
fn without_the_module_everything_stays_on_the_user_engine() {
    const NAME: &str = "without_the_module_everything_stays_on_the_user_engine";
    /// What the kernel calls to load a module by itself.
    const LOADER: &str = "/proc/sys/kernel/modprobe";
    let Some(fixture) = Fixture::new(NAME) else { return };
    if std::env::var_os("GUEST_KERNEL").is_none() {
        return skip(NAME, "it takes the tls module away, which is done to guests only");
    }
    // Nobody holds it a moment after the last connection of the test before has gone.
    wait_until("the module is not in use", || Command::new("rmmod").arg("tls").status().unwrap().success());
    let loader = fs::read_to_string(LOADER).unwrap();
    fs::write(LOADER, "/bin/false").unwrap();
    let server = fixture.setup().start();
    for version in [&TLS12, &TLS13] {
        let mut client = fixture.client(version).connect(server.address());
        assert!(client.get(LARGE).body == fixture.site.bytes(LARGE));
    }
    assert_eq!(kernel_bytes(&server), 0.0);
    assert_eq!(server.metric("linerate_kernel_tls_promotions_total", ""), 0.0);
    server.wait_for_stderr("everything stays on the user engine");
    fs::write(LOADER, loader).unwrap();
    assert!(Command::new("modprobe").arg("tls").status().unwrap().success());
}
