//! `linerate calibrate` before the software adapter: how many connections it sets up in a second, by a server's budget.

use crate::fixture::Fixture;
use linerate_end_to_end::{Program, ServerSetup, curl, linerate_binary, wait_until};
use linerate_guest_tests::{Adapter, TlsStatistics};
use linerate_placement::{Calibration, Costs, Engine, Placer, Policy};
use std::{fs, net::TcpStream, time::Duration};

/// The far side's, where the sink listens.
const SINK: &str = "10.9.0.2:9000";

/// A preset, slower: an emulated processor on a busy host has no time for its own figures, and would be what is measured.
struct Slowed {
    preset: &'static str,
    command_us: u32,
    set_ups_per_s: u32,
    /// By the commands of a set-up and a teardown, which firmware carries out one after the other, or by its limit.
    expected_per_s: f64,
}

const SLOWED: [Slowed; 2] = [
    Slowed { preset: "connectx6dx", command_us: 2940, set_ups_per_s: 85, expected_per_s: 85.0 },
    Slowed { preset: "connectx7", command_us: 15_000, set_ups_per_s: 0, expected_per_s: 33.3 },
];

#[test]
fn set_ups_a_second_are_the_adapters_and_a_servers_budget_follows() {
    const NAME: &str = "set_ups_a_second_are_the_adapters_and_a_servers_budget_follows";
    let Some(fixture) = Fixture::load(NAME, &[]) else { return };
    let program = linerate_binary().to_str().unwrap();
    let _sink = fixture.adapter.hold(program, &["calibrate", "--sink", SINK]);
    wait_until("the sink listens", || TcpStream::connect(SINK).is_ok());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calibration.toml");
    let mut budget = String::new();
    for Slowed { preset, command_us, set_ups_per_s, expected_per_s } in SLOWED {
        fixture.adapter.set("preset", preset);
        fixture.adapter.set("command_us", &command_us.to_string());
        fixture.adapter.set("setups_per_second", &set_ups_per_s.to_string());
        let before = TlsStatistics::now();
        let run = Program::new(program, ["calibrate", "--quick", "--peer", SINK, "--output"])
            .arguments([&path])
            .limit(Duration::from_secs(60))
            .run();
        let said = run.text();
        assert!(run.status.success(), "{said}{}", run.stderr);
        assert!(before.moved("TlsTxDevice") >= 3 * 4, "{said}");
        for words in ["The same to the peer, by lrnic0 (linerate_nic)", "lrnic0 is the software adapter"] {
            assert!(said.contains(words), "{words:?} is missing in {said}");
        }
        let measured = Calibration::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        let nic = measured.nic.clone().expect("the adapter was measured");
        assert_eq!((nic.device.as_str(), nic.driver.as_str()), (Adapter::NEAR_DEVICE, "linerate_nic"));
        // A host that is busy makes them fewer, and nothing makes them more: without what is torn down it would be twice as many.
        let of_expected = nic.set_ups_per_s / expected_per_s;
        assert!(
            (0.5..1.2).contains(&of_expected),
            "{preset}: {} set-ups/s, not {expected_per_s}\n{said}",
            nic.set_ups_per_s
        );
        let ciphers: Vec<&str> = measured
            .engines
            .iter()
            .filter(|figures| figures.engine == Engine::Nic.name())
            .map(|figures| {
                assert!(figures.per_byte_ns > 0.0 && figures.set_up_ns > 0.0, "{figures:?}");
                let wait_share = (figures.set_up_wait_ns + figures.set_up_ns) * nic.set_ups_per_s / 1e9;
                assert!(
                    (0.5..1.5).contains(&wait_share),
                    "waiting and computing make up its time: {figures:?}"
                );
                figures.cipher.as_str()
            })
            .collect();
        assert_eq!(ciphers, ["AES-128-GCM", "AES-256-GCM"], "{said}");
        let policy = Placer::new(Policy::default(), Costs::from(&measured)).set_ups_per_s();
        budget =
            format!("adapter: at most {policy:.0} set-ups a second (it can do {:.0})", nic.set_ups_per_s);
    }
    let server =
        ServerSetup::tls(&fixture.site, &fixture.pair).flag("--calibration").flag(&path).admin().start();
    let page = curl([&format!("http://{}/placement", server.admin())]).run().text();
    assert!(page.contains(&budget), "{budget:?} is missing in {page}");
    assert!(!server.stderr().contains("the calibration"), "{}", server.stderr());
}
