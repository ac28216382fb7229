//! linerate's NIC engine: which connections the adapter has is proved and told, and what it does not take is served all
//! the same, by another engine and with the reason.

use crate::{
    fixture::{Fixture, LARGE},
    upper_devices::{has_kind, ip_lines},
};
use linerate_end_to_end::{Program, Server, wait_until};
use linerate_guest_tests::{Adapter, TlsStatistics, ip};
use std::time::{Duration, Instant};

/// A user that owns nothing and has no privilege.
const NOBODY: u32 = 65_534;

/// Large enough for a move (`kernel_engine.from`), and no larger: the processor is emulated.
const ENOUGH: &str = "65543.bin";

impl Fixture {
    /// Has the far side fetch a range of a file, and compares every byte.
    #[track_caller]
    fn fetch_range(&self, server: &Server, name: &str, first: usize, last: usize) {
        let (address, range) = (server.address(), format!("{first}-{last}"));
        let body = self.adapter.fetch(address.ip(), address.port(), name, &["--range", &range]).success();
        assert!(body == self.site.bytes(name)[first..=last], "{range}: {} bytes arrived", body.len());
    }

    /// Has one program of the far side fetch a file by so many connections, one quickly after the other, and compares
    /// every byte.
    #[track_caller]
    fn fetch_often(&self, server: &Server, version: &str, times: usize) {
        let url = format!("https://{}/{ENOUGH}", server.address());
        let fixed =
            ["--silent", "--show-error", "--insecure", "--max-time", "60", "--header", "Connection: close"];
        let versions =
            if version == "1.2" { ["--tls-max", "1.2"] } else { ["--tlsv1.3", "--no-progress-meter"] };
        let curl = self.adapter.far("curl", &fixed).arguments(versions).arguments(vec![url; times]);
        let body = curl.run().success();
        assert!(body == self.site.bytes(ENOUGH).repeat(times), "{} bytes arrived", body.len());
    }

    /// Fetches until a connection was carried by `engine`, as the server counts.
    #[track_caller]
    fn fetch_until(&self, server: &Server, version: &str, engine: &str) {
        let before = responses(server, engine);
        let give_up = Instant::now() + Duration::from_secs(60);
        while responses(server, engine) == before {
            assert!(Instant::now() < give_up, "no response by the {engine} engine:\n{}", server.metrics());
            self.fetch_often(server, version, 4);
        }
    }
}

fn responses(server: &Server, engine: &str) -> f64 {
    server.metric("linerate_http_responses_total", &format!("engine={engine:?}"))
}

fn set_ups(server: &Server, outcome: &str) -> f64 {
    server.metric("linerate_nic_set_ups_total", &format!("outcome={outcome:?}"))
}

fn refused(server: &Server, reason: &str) -> f64 {
    server.metric("linerate_kernel_tls_refused_total", &format!("reason={reason:?}"))
}

#[test]
fn flows_are_proved_to_be_on_the_adapter() {
    let Some(fixture) = Fixture::load("flows_are_proved_to_be_on_the_adapter", &[]) else { return };
    let server = fixture.linerate_with(|setup| setup.flags(["--engine", "nic"]));
    server.wait_for_stderr("engine nic");
    let before = TlsStatistics::now();
    let last = fixture.site.bytes(LARGE).len() - 1;
    for (first, last) in [(0, last), (16_383, 1_000_000), (1, 100_001), (4_095, last), (1_234_567, 2_345_678)]
    {
        fixture.fetch_range(&server, LARGE, first, last);
    }
    assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (5, 0));
    assert_eq!(fixture.adapter.counter("tx_tls_ctx"), 5);
    assert_eq!((set_ups(&server, "adapter"), responses(&server, "nic")), (5.0, 5.0));
    assert!(server.metric("linerate_http_response_bytes_total", r#"engine="nic""#) > 5_000_000.0);
    wait_until("the access log", || server.stdout().lines().count() == 5);
    assert!(server.stdout().lines().all(|line| line.contains(r#""engine":"nic""#)), "{}", server.stdout());
    assert_eq!(before.new_faults(), []);
}

/// Older kernels tell a process without `CAP_NET_ADMIN` nothing of single sockets: the counts prove it.
#[test]
fn flows_are_proved_to_be_on_the_adapter_without_privileges() {
    let Some(fixture) = Fixture::load("flows_are_proved_to_be_on_the_adapter_without_privileges", &[]) else {
        return;
    };
    let keys = fixture.pair.key.parent().unwrap().to_owned();
    drop(Program::new("chmod", ["-R", "a+rX"]).arguments([fixture.site.path(), &keys]).run().success());
    let server = fixture.linerate_with(|setup| setup.flags(["--engine", "nic"]).user(NOBODY));
    fixture.fetch_often(&server, "1.2", 3);
    assert_eq!((set_ups(&server, "adapter"), responses(&server, "nic")), (3.0, 3.0));
    fixture.adapter.set("max_flows", "0");
    fixture.fetch_often(&server, "1.2", 1);
    assert_eq!((set_ups(&server, "software"), responses(&server, "kernel")), (1.0, 1.0));
}

/// Neither the kernel nor the driver says that it does not offload TLS 1.3: it is learnt.
#[test]
fn what_the_adapter_does_not_carry_is_learnt() {
    let Some(fixture) = Fixture::load("what_the_adapter_does_not_carry_is_learnt", &[]) else { return };
    let server = fixture.linerate_with(|setup| setup.flags(["--engine", "nic"]));
    fixture.fetch_often(&server, "1.3", 1);
    assert_eq!((set_ups(&server, "software"), responses(&server, "kernel")), (1.0, 1.0));
    assert_eq!(responses(&server, "nic"), 0.0);
    // The pauses between trials grow until two fetches fall into one.
    fixture.fetch_until(&server, "1.3", "user");
    assert!(refused(&server, "not_in_nic") >= 1.0);
    // That is no reason to distrust TLS 1.2.
    fixture.fetch_often(&server, "1.2", 1);
    assert_eq!(responses(&server, "nic"), 1.0);
}

#[test]
fn a_full_flow_table_leaves_connections_with_the_kernel_and_then_the_user_engine() {
    const NAME: &str = "a_full_flow_table_leaves_connections_with_the_kernel_and_then_the_user_engine";
    let Some(fixture) = Fixture::load(NAME, &[]) else { return };
    let server = fixture.linerate_with(|setup| setup.flags(["--engine", "nic"]));
    fixture.fetch_often(&server, "1.2", 1);
    fixture.adapter.set("max_flows", "0");
    let before = TlsStatistics::now();
    fixture.fetch_often(&server, "1.2", 1);
    assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (0, 1));
    assert_eq!((set_ups(&server, "adapter"), set_ups(&server, "software")), (1.0, 1.0));
    assert_eq!(responses(&server, "kernel"), 1.0);
    fixture.fetch_until(&server, "1.2", "user");
    assert!(refused(&server, "adapter_refuses") >= 1.0);
    fixture.adapter.set("max_flows", "64");
    fixture.fetch_until(&server, "1.2", "nic");
}

#[test]
fn an_adapter_that_is_switched_off_is_told_and_switched_on_it_serves_after_a_reload() {
    const NAME: &str = "an_adapter_that_is_switched_off_is_told_and_switched_on_it_serves_after_a_reload";
    let Some(fixture) = Fixture::load(NAME, &[]) else { return };
    let switch = |state| {
        let arguments = ["-K", Adapter::NEAR_DEVICE, "tls-hw-tx-offload", state];
        drop(Program::new("ethtool", arguments).run().success());
    };
    switch("off");
    let server = fixture.linerate_with(|setup| setup.flags(["--engine", "nic"]));
    server.wait_for_stderr("could, and is off (ethtool -K lrnic0 tls-hw-tx-offload on, then reload)");
    fixture.fetch_often(&server, "1.2", 1);
    assert_eq!((refused(&server, "feature_off"), responses(&server, "user")), (1.0, 1.0));
    switch("on");
    server.reload();
    server.wait_for_stderr("lrnic0 (linerate_nic");
    fixture.fetch_until(&server, "1.2", "nic");
}

/// Connections wait for a firmware that takes seconds for each, no more than a few at once; others are accepted and served
/// meanwhile.
#[test]
fn no_accept_waits_for_a_set_up() {
    let parameters = ["setup_commands=1", "command_us=4000000"];
    let Some(fixture) = Fixture::load("no_accept_waits_for_a_set_up", &parameters) else { return };
    let server = fixture.linerate_with(|setup| setup.flags(["--engine", "nic"]));
    // Until the adapter has carried one, one tries at a time.
    fixture.fetch_often(&server, "1.2", 1);
    let (host, port) = (server.address().ip(), server.address().port());
    let url = format!("https://{host}:{port}/{ENOUGH}");
    let parallel = ["--parallel", "--parallel-immediate", "--parallel-max", "6"];
    let to_nowhere = ["--output", "/dev/null"].repeat(6);
    std::thread::scope(|scope| {
        let transfers = scope.spawn(|| {
            let fixed = ["--silent", "--show-error", "--insecure", "--tls-max", "1.2", "--max-time", "60"];
            let curl = fixture.adapter.far("curl", &fixed).arguments(parallel).arguments(&to_nowhere);
            drop(curl.arguments(vec![url; 6]).run().success());
        });
        wait_until("connections are being set up", || {
            server.metric("linerate_connections_active", "") >= 4.0
        });
        let asked = Instant::now();
        let timing = ["--write-out", "\n%{time_total}"];
        let said = fixture.adapter.fetch(host, port, "1.bin", &timing).success();
        let total_s: f64 = String::from_utf8_lossy(&said).lines().last().unwrap().parse().unwrap();
        let served = asked.elapsed();
        assert!(!transfers.is_finished(), "the set-ups were over before: {served:?}");
        assert!(total_s < 3.0, "a small response waited {total_s} s for set-ups of others");
        transfers.join().unwrap();
    });
    assert!(set_ups(&server, "adapter") >= 5.0, "{}", server.metrics());
    assert!(server.metric("linerate_nic_set_up_duration_seconds_sum", "") > 20.0);
}

/// What stands upon an adapter resolves to it, where Linux hands connections down: where not, nobody tries.
#[test]
fn a_bond_is_judged_by_its_settings_and_a_vlan_by_what_it_is() {
    const NAME: &str = "a_bond_is_judged_by_its_settings_and_a_vlan_by_what_it_is";
    let Some(fixture) = Fixture::load(NAME, &[]) else { return };
    if !has_kind(NAME, "bonding") || !has_kind(NAME, "8021q") {
        return;
    }
    ip_lines(&[
        "link set lrnic0 down",
        "addr flush dev lrnic0",
        "link add bond9 type bond mode balance-xor xmit_hash_policy layer2 miimon 100",
        "link set lrnic0 master bond9",
        "link set bond9 up",
        "addr add 10.9.0.1/24 dev bond9",
        "link add link bond9 name lrvlan0 type vlan id 7",
        "addr add 10.9.7.1/24 dev lrvlan0",
        "link set lrvlan0 up",
        "netns exec far ip link add link lrnic1 name lrvlan1 type vlan id 7",
        "netns exec far ip addr add 10.9.7.2/24 dev lrvlan1",
        "netns exec far ip link set lrvlan1 up",
    ]);
    let server = fixture.linerate_with(|setup| setup.flags(["--engine", "nic", "--listen", "10.9.7.1:0"]));
    server.wait_for_stderr("connections by bond9 stay in software");
    let before = TlsStatistics::now();
    fixture.fetch_often(&server, "1.2", 2);
    assert_eq!((responses(&server, "user"), refused(&server, "no_adapter")), (2.0, 2.0));

    // What is told to be typed, as it is told.
    let told = server.stderr();
    let command = told.split("bond9 hands no connections to adapters (").nth(1).unwrap();
    let command: Vec<&str> = command.split(')').next().unwrap().split(' ').skip(1).collect();
    ip(&command);
    server.reload();
    fixture.fetch_until(&server, "1.2", "nic");
    assert!(before.moved("TlsTxDevice") >= 1);
    assert_eq!(before.moved("TlsTxSw"), 0);

    let url = format!("https://{}/{ENOUGH}", server.listener("https", 1));
    let by_user = responses(&server, "user");
    let curl = ["--silent", "--show-error", "--insecure", "--tls-max", "1.2", "--max-time", "60", &url];
    let body = fixture.adapter.far("curl", &curl).run().success();
    assert!(body == fixture.site.bytes(ENOUGH), "{} bytes arrived", body.len());
    assert_eq!(responses(&server, "user"), by_user + 1.0);
    assert_eq!(before.moved("TlsTxSw"), 0);
    drop(server);
    ip_lines(&["link del lrvlan0", "link set lrnic0 nomaster", "link del bond9"]);
}
