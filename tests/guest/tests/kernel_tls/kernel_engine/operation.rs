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

/// The tls module has been taken away, and the kernel does not load it by itself. It is back when this is dropped.
struct WithoutModule {
    /// What the kernel calls to load a module by itself.
    loader: String,
}

impl WithoutModule {
    const LOADER: &str = "/proc/sys/kernel/modprobe";

    /// `None`, said loudly, on a machine that is no guest.
    fn new(test: &str) -> Option<Self> {
        if std::env::var_os("GUEST_KERNEL").is_none() {
            skip(test, "it takes the tls module away, which is done to guests only");
            return None;
        }
        // Nobody holds it a moment after the last connection of the test before has gone.
        wait_until("the module is not in use", || {
            Command::new("rmmod").arg("tls").status().unwrap().success()
        });
        let loader = fs::read_to_string(Self::LOADER).unwrap();
        fs::write(Self::LOADER, "/bin/false").unwrap();
        Some(Self { loader })
    }
}

impl Drop for WithoutModule {
    fn drop(&mut self) {
        fs::write(Self::LOADER, &self.loader).unwrap();
        assert!(Command::new("modprobe").arg("tls").status().unwrap().success());
    }
}

#[test]
fn without_the_module_everything_stays_on_the_user_engine() {
    const NAME: &str = "without_the_module_everything_stays_on_the_user_engine";
    let Some(fixture) = Fixture::new(NAME) else { return };
    let Some(_without) = WithoutModule::new(NAME) else { return };
    let server = fixture.setup().start();
    for version in [&TLS12, &TLS13] {
        let mut client = fixture.client(version).connect(server.address());
        assert!(client.get(LARGE).body == fixture.site.bytes(LARGE));
    }
    assert_eq!(kernel_bytes(&server), 0.0);
    assert_eq!(server.metric("linerate_kernel_tls_promotions_total", ""), 0.0);
    server.wait_for_stderr("everything stays on the user engine");
}

#[test]
fn a_module_that_is_loaded_later_is_used_after_a_reload() {
    const NAME: &str = "a_module_that_is_loaded_later_is_used_after_a_reload";
    let Some(fixture) = Fixture::new(NAME) else { return };
    let Some(without) = WithoutModule::new(NAME) else { return };
    let server = fixture.setup().start();
    server.wait_for_stderr("the tls module is not loaded");
    let mut older = fixture.client(&TLS13).connect(server.address());
    assert!(older.get(LARGE).body == fixture.site.bytes(LARGE));
    drop(without);
    let before = fixture.statistics();
    let mut unasked = fixture.client(&TLS13).connect(server.address());
    assert!(unasked.get(LARGE).body == fixture.site.bytes(LARGE));
    assert_eq!(kernel_bytes(&server), 0.0, "nobody has asked for a look");

    server.reload();
    server.wait_for_stderr("kernel TLS: TLSv1.3 AES-128-GCM, ");
    for version in [&TLS12, &TLS13] {
        // What was found is told a moment before workers have it.
        let carried_before = kernel_bytes(&server);
        wait_until("the kernel engine carries a response", || {
            let mut client = fixture.client(version).connect(server.address());
            assert!(client.get(LARGE).body == fixture.site.bytes(LARGE));
            kernel_bytes(&server) > carried_before
        });
        assert!(kernel_bytes(&server) - carried_before > 3_000_000.0);
    }
    // Connections from before go on; which engine has them is theirs.
    for client in [&mut older, &mut unasked] {
        assert!(client.get("524289.bin").body == fixture.site.bytes("524289.bin"));
    }
    let promotions = server.metric("linerate_kernel_tls_promotions_total", "");
    assert!(promotions >= 2.0, "{promotions}");
    // The kernel has counted them, beside those of the self-test at the reload.
    assert!(before.moved("TlsTxSw") as f64 > promotions);
}
