//! Devices above the adapter's: a bond, which hands its connections to the port, and a VLAN.

use crate::fixture::{Fixture, LARGE};
use linerate_end_to_end::{Program, skip};
use linerate_guest_tests::{Nginx, TlsStatistics, ip};
use std::net::Ipv4Addr;

/// Runs `ip` for each of these lines.
pub(crate) fn ip_lines(lines: &[&str]) {
    for line in lines {
        ip(&line.split(' ').collect::<Vec<_>>());
    }
}

/// Whether this kernel has devices of that kind.
pub(crate) fn has_kind(test: &str, kind: &str) -> bool {
    let loaded = Program::new("modprobe", [kind]).run().status.success();
    if !loaded {
        skip(test, &format!("this kernel has no module {kind}"));
    }
    loaded
}

#[test]
fn a_bond_hands_its_connections_to_the_port() {
    const NAME: &str = "a_bond_hands_its_connections_to_the_port";
    let Some(fixture) = Fixture::load(NAME, &[]) else { return };
    if !has_kind(NAME, "bonding") {
        return;
    }
    ip_lines(&[
        "addr del 10.9.0.1/24 dev lrnic0",
        "link set lrnic0 down",
        "link add bond9 type bond mode balance-xor xmit_hash_policy layer3+4 miimon 100",
        "link set lrnic0 master bond9",
        "link set bond9 up",
        "addr add 10.9.0.1/24 dev bond9",
    ]);
    fixture.fetch_by_device(LARGE, &[]);
    assert_eq!(fixture.adapter.counter("tx_tls_ctx"), 1);
    assert!(fixture.adapter.counter("tx_tls_encrypted_bytes") > 3_000_000);
    // Linux does this only where it chooses the port by the connection (bond_sk_check).
    for policy in ["layer2", "layer2+3", "encap3+4"] {
        ip_lines(&[&format!("link set bond9 type bond xmit_hash_policy {policy}")]);
        let before = TlsStatistics::now();
        fixture.fetch("65543.bin", &[]);
        assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (0, 1), "{policy}");
    }
    ip_lines(&["link del bond9"]);
}

#[test]
fn bytes_over_a_vlan_are_equal() {
    const NAME: &str = "bytes_over_a_vlan_are_equal";
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 9, 7, 1);
    let Some(fixture) = Fixture::load(NAME, &[]) else { return };
    if !has_kind(NAME, "8021q") {
        return;
    }
    ip_lines(&[
        "link add link lrnic0 name lrvlan0 type vlan id 7",
        "addr add 10.9.7.1/24 dev lrvlan0",
        "link set lrvlan0 up",
        "netns exec far ip link add link lrnic1 name lrvlan1 type vlan id 7",
        "netns exec far ip addr add 10.9.7.2/24 dev lrvlan1",
        "netns exec far ip link set lrvlan1 up",
    ]);
    let nginx = Nginx::start_at(ADDRESS.into(), &fixture.site, &fixture.pair).expect("it runs already");
    let before = TlsStatistics::now();
    let body = fixture.adapter.fetch(ADDRESS.into(), nginx.kernel_tls.port(), LARGE, &[]).success();
    assert!(body == fixture.site.bytes(LARGE));
    // Linux looks for adapters beneath bonds only.
    assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (0, 1));
}
