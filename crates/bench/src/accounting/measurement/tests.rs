use std::collections::BTreeMap;

use linerate_load::report::{ClientCost, SCHEMA, Totals};

use super::super::{HardwareCounts, InterfaceUse, NetworkUse, ProcessUse};
use super::*;
use crate::result::{CoreTimes, MachineCost};

fn unavailable<T>() -> Reading<T> {
    Reading::NotAvailable("not here".to_owned())
}

fn party(user_s: f64, system_s: f64, cycles: Reading<u64>) -> PartyCosts {
    PartyCosts {
        process: ProcessUse {
            user_s,
            system_s,
            voluntary_switches: Reading::Value(7),
            involuntary_switches: Reading::Value(1),
            disk_read_bytes: Reading::Value(4096),
        },
        hardware: HardwareCounts { cycles, instructions: unavailable() },
    }
}

/// Two seconds of two cores, one of them busy for half of the time.
fn costs() -> Costs {
    let busy = CoreTimes { system_s: 0.9, softirq_s: 0.1, idle_s: 1.0, ..CoreTimes::default() };
    let idle = CoreTimes { idle_s: 2.0, ..CoreTimes::default() };
    Costs {
        elapsed_s: 2.0,
        server: party(0.2, 0.6, Reading::Value(4_096_000_000)),
        client: Reading::Value(party(0.1, 0.1, unavailable())),
        machine: MachineCost {
            total: CoreTimes { idle_s: 3.0, ..busy },
            cores: BTreeMap::from([(0, busy), (1, idle)]),
        },
        network: NetworkUse {
            interface: unavailable(),
            sent_segments: Reading::Value(1),
            retransmitted_segments: Reading::Value(3),
            tls_stat: unavailable(),
        },
        energy_j: Reading::Value(40.96),
        memory_bytes: unavailable(),
        server_resident_bytes: Reading::Value(1 << 20),
    }
}

/// 1024 million bytes a second, for as long as is said.
fn load(measured_s: f64) -> LoadReport {
    let times = |rate: f64| (rate * measured_s) as u64;
    LoadReport {
        schema: SCHEMA.to_owned(),
        measured_s,
        totals: Totals {
            responses: times(1000.0),
            body_bytes: times(1.024e9),
            received_bytes: times(1.448e9),
            full_handshakes: times(100.0),
            resumed_handshakes: times(60.0),
            ..Totals::default()
        },
        client: ClientCost { user_s: 0.25, system_s: 0.5, threads: 1, ..ClientCost::default() },
        ..LoadReport::default()
    }
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9 * right.abs().max(1.0)
}

fn is(reading: &Reading<f64>, expected: f64) -> bool {
    reading.value().is_some_and(|&value| close(value, expected))
}

#[test]
fn each_figure_is_what_its_name_says() {
    // 1,000,000 KB in each of two seconds; the server used 0.8 s, the machine 1.0 s.
    let of = costs().measurement(vec![load(2.0)]);
    assert!(close(of.application_gbit_s, 8.192), "{of:?}");
    assert!(is(&of.service_demand_us_per_kb, 0.4), "{of:?}");
    assert!(is(&of.machine_service_demand_us_per_kb, 0.5), "{of:?}");
    assert!(is(&of.server_s_per_gb, 0.8 / 2.048), "{of:?}");
    assert!(is(&of.server_us_per_response, 400.0), "{of:?}");
    assert!(close(of.responses_per_s, 1000.0), "{of:?}");
    assert!(is(&of.handshakes_per_core_s, 400.0), "{of:?}");
    assert!(is(&of.server.cycles_per_byte, 2.0), "{of:?}");
    assert!(is(&of.energy_j_per_gb, 20.0), "{of:?}");
    assert_eq!(of.retransmitted_segments, Reading::Value(3));
    assert_eq!(of.server_disk_read_bytes, Reading::Value(4096));
}

#[test]
fn a_span_that_is_longer_than_the_load_s_changes_no_ratio() {
    let (same, shorter) = (costs().measurement(vec![load(2.0)]), costs().measurement(vec![load(1.5)]));
    assert!(is(&shorter.service_demand_us_per_kb, 0.4), "{shorter:?}");
    assert!(close(same.application_gbit_s, shorter.application_gbit_s));
    assert!(is(&shorter.server.cycles_per_byte, 2.0));
}

#[test]
fn several_clients_add_up() {
    let of = costs().measurement(vec![load(2.0), load(1.0)]);
    assert!(close(of.application_gbit_s, 2.0 * 8.192), "{of:?}");
    assert!(is(&of.service_demand_us_per_kb, 0.2), "{of:?}");
}

#[test]
fn what_is_not_known_stays_so() {
    let of = costs().measurement(vec![load(2.0)]);
    assert_eq!(of.server.instructions_per_byte, unavailable());
    assert_eq!(of.memory_bytes_per_byte, unavailable());
    assert_eq!(of.tls_stat, unavailable());
    let nothing = LoadReport { totals: Totals::default(), ..load(2.0) };
    let of = costs().measurement(vec![nothing]);
    assert!(of.server.cycles_per_byte.value().is_none());
    assert!(of.energy_j_per_gb.value().is_none());
    assert!(of.server_us_per_response.value().is_none());
    for reading in [&of.server_s_per_gb, &of.service_demand_us_per_kb, &of.machine_service_demand_us_per_kb] {
        assert_eq!(*reading, Reading::NotAvailable(NO_BYTES.to_owned()));
    }
    assert!(of.wire_gbit_s.value().is_none());
    assert!(serde_json::to_string(&of).expect("no infinity").contains("no body bytes came"));
}

#[test]
fn a_client_that_has_ended_is_known_by_its_own_report() {
    let ended = Costs { client: unavailable(), ..costs() };
    let of = ended.measurement(vec![load(2.0), load(2.0)]);
    assert!(close(of.client.user_s, 0.5) && close(of.client.system_s, 1.0), "{of:?}");
    assert_eq!(of.client.voluntary_switches, unavailable());
    let there = costs().measurement(vec![load(2.0)]);
    assert!(close(there.client.user_s, 0.1), "{there:?}");
}

#[test]
fn the_wire_is_computed_or_counted_and_says_which() {
    let of = costs().measurement(vec![load(2.0)]);
    // A million full segments a second, with 90 bytes around each.
    assert!(is(&of.wire_gbit_s, 8.0 * 1.538), "{of:?}");
    assert!(of.wire_source.contains("computed for MSS 1448"), "{}", of.wire_source);
    let mut counted = costs();
    counted.network.interface = Reading::Value(InterfaceUse {
        name: "eth0".to_owned(),
        sent_bytes: 2_000_000_000 - 24_000_000,
        sent_frames: 1_000_000,
        received_bytes: 0,
        received_frames: 0,
        others_sent_bytes: 0,
    });
    let of = counted.measurement(vec![load(2.0)]);
    assert!(is(&of.wire_gbit_s, 8.0), "{of:?}");
    assert!(of.wire_source.contains("interface counters of eth0"), "{}", of.wire_source);
}
