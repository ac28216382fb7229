//! What a run of streams said, as a measurement: the end that sends is the "server", the one that receives the "client". Where
//! both do both, the machine that asked is the server.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::definition::Way;
use crate::result::{CoreTimes, MachineCost, Measurement, ProcessCost, Reading};

const IN_STREAMS: &str = "streams are not asked for it";

/// Of `linerate stream --json` (docs/schema/linerate-stream-1.json), what is needed here; of `iperf3 -J` the same fields, but for
/// the cost.
#[derive(Debug, Deserialize)]
struct Said {
    error: Option<String>,
    end: Option<End>,
}

#[derive(Debug, Deserialize)]
struct End {
    #[serde(default)]
    streams: Vec<Pair>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    sum_sent_bidir_reverse: Option<Sum>,
    sum_received_bidir_reverse: Option<Sum>,
    cpu_utilization_percent: Option<Percent>,
    cost: Option<Cost>,
}

#[derive(Debug, Deserialize)]
struct Pair {
    sender: Option<StreamEnd>,
}

#[derive(Debug, Deserialize)]
struct StreamEnd {
    tls: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Sum {
    bytes: f64,
    seconds: f64,
    retransmits: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Percent {
    host_user: f64,
    host_system: f64,
    remote_user: Option<f64>,
    remote_system: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Cost {
    host: EndCost,
    remote: Option<EndCost>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct EndCost {
    cpu: Cpu,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Cpu {
    user_s: f64,
    system_s: f64,
}

/// A measurement, and the suite that its streams agreed on.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) measurement: Measurement,
    /// "TLS_AES_256_GCM_SHA384"; nothing in the clear.
    pub(super) suite: Option<String>,
}

/// Reads what the client printed.
///
/// # Errors
/// What it says went wrong, or that it is not what was expected.
pub(super) fn read(printed: &str, way: Way) -> Result<Measured, String> {
    let said: Said = serde_json::from_str(printed).map_err(|error| format!("no report: {error}"))?;
    if let Some(error) = said.error {
        return Err(error);
    }
    let end = said.end.ok_or("a report without an end")?;
    let suite = end.streams.iter().find_map(|pair| pair.sender.as_ref()?.tls.clone());
    let suite = suite.and_then(|tls| tls.split(", ").nth(1).map(str::to_owned));
    // iperf3 leaves out, and linerate says null, where a way was not gone.
    let received = [end.sum_received, end.sum_received_bidir_reverse].into_iter().flatten();
    let received_bytes: f64 = received.clone().map(|sum| sum.bytes).sum();
    let elapsed_s = received.map(|sum| sum.seconds).fold(0.0, f64::max);
    if received_bytes <= 0.0 || elapsed_s <= 0.0 {
        return Err("nothing was received".to_owned());
    }
    let (host, remote) = costs(&end, elapsed_s).ok_or("the other end did not say what it paid")?;
    let (sender, receiver) = if way == Way::Receive { (remote, host) } else { (host, remote) };
    let sent = [end.sum_sent, end.sum_sent_bidir_reverse].into_iter().flatten();
    let retransmits: Vec<f64> = sent.filter_map(|sum| sum.retransmits).collect();
    let sender_s = sender.user_s + sender.system_s;
    let demand = sender_s * 1e6 / (received_bytes / 1024.0);
    let measurement = Measurement {
        load: Vec::new(),
        elapsed_s,
        application_gbit_s: received_bytes * 8.0 / elapsed_s / 1e9,
        wire_gbit_s: unknown(),
        wire_source: IN_STREAMS.to_owned(),
        server: process(sender),
        client: process(receiver),
        machine: MachineCost { total: CoreTimes::default(), cores: BTreeMap::new() },
        responses_per_s: 0.0,
        handshakes_per_core_s: unknown(),
        server_s_per_gb: Reading::Value(sender_s / (received_bytes / 1e9)),
        server_us_per_response: unknown(),
        service_demand_us_per_kb: Reading::Value(demand),
        machine_service_demand_us_per_kb: unknown(),
        server_resident_bytes: unknown(),
        server_bytes_per_connection: unknown(),
        server_disk_read_bytes: unknown(),
        energy_j_per_gb: unknown(),
        memory_bytes_per_byte: unknown(),
        retransmitted_segments: if retransmits.is_empty() {
            unknown()
        } else {
            Reading::Value(retransmits.iter().sum::<f64>() as u64)
        },
        tls_stat: unknown(),
        seal_and_copy: Reading::default(),
    };
    Ok(Measured { measurement, suite })
}

/// CPU time of the client's end and of the listener's.
fn costs(end: &End, elapsed_s: f64) -> Option<(Cpu, Cpu)> {
    if let Some(cost) = end.cost {
        return Some((cost.host.cpu, cost.remote?.cpu));
    }
    let percent = end.cpu_utilization_percent?;
    let cpu = |user: f64, system: f64| Cpu {
        user_s: user / 100.0 * elapsed_s,
        system_s: system / 100.0 * elapsed_s,
    };
    let host = cpu(percent.host_user, percent.host_system);
    Some((host, cpu(percent.remote_user?, percent.remote_system?)))
}

fn process(cpu: Cpu) -> ProcessCost {
    ProcessCost {
        user_s: cpu.user_s,
        system_s: cpu.system_s,
        voluntary_switches: unknown(),
        involuntary_switches: unknown(),
        cycles_per_byte: unknown(),
        instructions_per_byte: unknown(),
    }
}

fn unknown<T>() -> Reading<T> {
    Reading::NotAvailable(IN_STREAMS.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity;
    use serde_json::json;

    fn said(value: &serde_json::Value, way: Way) -> Measurement {
        read(&value.to_string(), way).unwrap().measurement
    }

    #[test]
    fn both_ends_are_told_apart_by_the_direction() {
        let linerate = json!({
            "error": null,
            "end": {
                "streams": [{"sender": {"tls": "TLS 1.3, TLS_AES_128_GCM_SHA256"}, "receiver": null}],
                "sum_sent": {"bytes": 1_024_000_000, "seconds": 1.0, "retransmits": 3},
                "sum_received": {"bytes": 1_024_000_000, "seconds": 2.0, "retransmits": null},
                "sum_sent_bidir_reverse": null,
                "sum_received_bidir_reverse": null,
                "cpu_utilization_percent": {"host_total": 1.0, "host_user": 1.0, "host_system": 0.0,
                    "remote_user": null, "remote_system": null},
                "cost": {
                    "host": {"cpu": {"user_s": 0.25, "system_s": 0.25}},
                    "remote": {"cpu": {"user_s": 0.5, "system_s": 0.5}}
                }
            }
        });
        let value =
            |key: &str, way| *(quantity::named(key).unwrap().read)(&said(&linerate, way)).value().unwrap();
        assert!((value("application_gbit_s", Way::Send) - 4.096).abs() < 1e-9);
        assert!((value("sender_us_per_kb", Way::Send) - 0.5).abs() < 1e-9);
        assert!((value("sender_us_per_kb", Way::Receive) - 1.0).abs() < 1e-9);
        assert!((value("receiver_us_per_kb", Way::Receive) - 0.5).abs() < 1e-9);
        assert!((value("sender_cpu_percent", Way::Send) - 25.0).abs() < 1e-9);
        assert!((value("both_ends_s_per_gb", Way::Send) - 1.5 / 1.024).abs() < 1e-9);
        assert_eq!(said(&linerate, Way::Send).retransmitted_segments.value(), Some(&3));
        let suite = read(&linerate.to_string(), Way::Send).unwrap().suite;
        assert_eq!(suite.as_deref(), Some("TLS_AES_128_GCM_SHA256"));
    }

    #[test]
    fn iperf3_says_its_costs_in_percent() {
        let iperf3 = json!({
            "end": {
                "streams": [{"sender": {"bytes": 5}, "receiver": {"bytes": 5}}],
                "sum_sent": {"bytes": 2e9, "seconds": 2.0, "retransmits": 0},
                "sum_received": {"bytes": 2e9, "seconds": 2.0},
                "cpu_utilization_percent": {"host_total": 50.0, "host_user": 10.0, "host_system": 40.0,
                    "remote_total": 100.0, "remote_user": 20.0, "remote_system": 80.0}
            }
        });
        let measured = said(&iperf3, Way::Send);
        assert!((measured.application_gbit_s - 8.0).abs() < 1e-9);
        assert!((*measured.server_s_per_gb.value().unwrap() - 0.5).abs() < 1e-9);
        assert!((measured.client.user_s + measured.client.system_s - 2.0).abs() < 1e-9);
    }

    #[test]
    fn what_went_wrong_is_no_measurement() {
        for (printed, word) in [
            ("", "no report"),
            ("{}", "without an end"),
            (r#"{"error": "unable to connect"}"#, "unable to connect"),
            (r#"{"end": {}}"#, "nothing was received"),
        ] {
            assert!(read(printed, Way::Send).unwrap_err().contains(word), "{printed}");
        }
    }
}
