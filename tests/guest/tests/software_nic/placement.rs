//! `--engine auto` before the software adapter: what pays for a set-up goes there, within the budget, and every response has
//! its reason.

use crate::fixture::{Fixture, LARGE};
use linerate_end_to_end::{Server, ServerSetup, calibration_with_nic, wait_until};
use linerate_guest_tests::{Adapter, TlsStatistics};
use linerate_placement::{EngineCosts, NicFigures};

/// Too small for a set-up.
const SMALL: &str = "65543.bin";

impl Fixture {
    /// A linerate that decides by figures by which the adapter pays from 556 kB on and software kernel TLS never, without
    /// learning: an emulated processor has other costs.
    #[track_caller]
    fn auto(&self, folder: &std::path::Path, placement: &str) -> Server {
        let nic = EngineCosts { per_byte_ns: 0.1, set_up_ns: 500_000.0, ..EngineCosts::FREE };
        let figures = NicFigures {
            device: Adapter::NEAR_DEVICE.to_owned(),
            driver: "linerate_nic".to_owned(),
            set_ups_per_s: 1000.0,
            flow_table_flows: 1000,
        };
        let file = calibration_with_nic(folder, 1.0, 0.0, Some((nic, figures)));
        let toml = format!(
            "listen = [\"{}:0\"]\nworkers = 1\naccess_log = \"-\"\nlog_format = \"json\"\n[placement]\n\
             calibration = {file:?}\nlearning = false\n{placement}\n[[site]]\nroot = {:?}\n\
             certificates = [{{ certificate = {:?}, key = {:?} }}]\n",
            self.nginx.kernel_tls.ip(),
            self.site.path(),
            self.pair.certificate,
            self.pair.key
        );
        ServerSetup::toml(&toml).admin().start()
    }

    /// Has the far side fetch a file on a connection of its own, compares every byte, and returns engine and reason as the
    /// access log has them.
    #[track_caller]
    fn placed(&self, server: &Server, name: &str, version: &[&str]) -> String {
        let before = server.stdout().lines().count();
        let address = server.address();
        let body = self.adapter.fetch(address.ip(), address.port(), name, version).success();
        assert!(body == self.site.bytes(name), "{name}: {} bytes", body.len());
        wait_until("the line of the access log", || server.stdout().lines().count() > before);
        let log = server.stdout();
        let line = log.lines().last().unwrap();
        let value = |key: &str| {
            let start = line.find(&format!("\"{key}\":\"")).unwrap_or_else(|| panic!("{key} in {line}"));
            line[start + key.len() + 4..].split('"').next().unwrap().to_owned()
        };
        format!("{}: {}", value("engine"), value("reason"))
    }
}

const TLS12: [&str; 2] = ["--tls-max", "1.2"];
const TLS13: [&str; 1] = ["--tlsv1.3"];

#[test]
fn auto_gives_the_adapter_what_pays_for_its_set_up() {
    let Some(fixture) = Fixture::load("auto_gives_the_adapter_what_pays_for_its_set_up", &[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = fixture.auto(folder.path(), "");
    server.wait_for_stderr("engine auto: nic from 556 kB (AES-256-GCM), else user, by calibration");
    let before = TlsStatistics::now();
    for _ in 0..5 {
        assert_eq!(fixture.placed(&server, SMALL, &TLS12), "user: below_break_even");
    }
    assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (0, 0), "no set-up for small ones");
    assert_eq!(fixture.placed(&server, LARGE, &TLS12), "nic: pays");
    assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (1, 0));
    // One tries, and the kernel keeps it: after that it is known for a while, and longer each time.
    let mut tries = 0;
    loop {
        let placed = fixture.placed(&server, LARGE, &TLS13);
        tries += 1;
        if placed == "user: version_not_in_nic" {
            break;
        }
        assert!(placed == "kernel: fell_back" && tries < 10, "{placed} at the {tries}th");
    }
    assert!(tries > 1, "somebody has to try");
    assert_eq!(fixture.placed(&server, LARGE, &TLS12), "nic: pays", "another version is not touched by that");
    assert_eq!(server.metric("linerate_placement_total", ""), f64::from(7 + tries), "the reasons add up");
    assert_eq!(before.new_faults(), []);
}

#[test]
fn auto_asks_the_adapter_for_no_more_than_its_budget() {
    let Some(fixture) = Fixture::load("auto_asks_the_adapter_for_no_more_than_its_budget", &[]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = fixture.auto(folder.path(), "nic_set_ups_per_second = 0");
    let before = TlsStatistics::now();
    for _ in 0..3 {
        assert_eq!(fixture.placed(&server, LARGE, &TLS12), "user: budget_spent");
    }
    assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (0, 0));
}
