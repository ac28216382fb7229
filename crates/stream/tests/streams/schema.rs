//! What `--json` prints is what `docs/schema/linerate-stream-1.json` and `linerate-stream-engines-1.json` say, field for field,
//! both ways.

use super::support::{listen, plan, run};
use linerate_schema::{check_schema_is_complete, published, schema_faults, unused_fields};
use linerate_stream::{
    Limits, StreamPlan, StreamReport, json,
    plan::{Amount, Direction, Reception, StreamEngine, ZeroCopySend},
    report::{Floor, PathReport},
};
use serde_json::Value;
use std::time::Duration;

/// Real runs, of which one has lost its listener.
fn reports() -> Vec<StreamReport> {
    let address = listen("127.0.0.1:0", None, Limits::default());
    let plain = run(&plan(address));
    let both = StreamPlan {
        direction: Direction::Both,
        engine: StreamEngine::User,
        interval: Some(Duration::from_millis(100)),
        amount: Amount::Milliseconds(300),
        rate_bits: Some(8_000_000),
        ..plan(address)
    };
    let mut lost = run(&StreamPlan { direction: Direction::Receive, ..plan(address) });
    lost.remote = None;
    lost.faults.push("the listener is gone".to_owned());
    lost.local.machine = None;
    lost.local.streams[0].wrong_at = Some(7);
    lost.local.streams[0].fault = Some("the connection failed".to_owned());
    let uncopied = StreamPlan {
        zero_copy_send: Some(ZeroCopySend::MsgZerocopy),
        reception: Reception::Mapped,
        ..plan(address)
    };
    vec![plain, run(&both), lost, run(&uncopied)]
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_is_printed_is_what_the_schema_says() {
    let (schema, engines) = (published("linerate-stream-1"), published("linerate-stream-engines-1"));
    check_schema_is_complete(&schema);
    check_schema_is_complete(&engines);
    let reports = reports();
    let values: Vec<Value> = reports.iter().map(|report| read(&json::of_run(report))).collect();
    for value in &values {
        assert_eq!(schema_faults(&schema, value), Vec::<String>::new());
    }
    assert_eq!(unused_fields(&schema, &values), Vec::<String>::new(), "never printed");
    let runs = vec![
        (StreamEngine::Plain, Ok(reports[0].clone())),
        (StreamEngine::Nic, Err("there is no adapter".to_owned())),
    ];
    let floor = Floor {
        cipher: "AES-128-GCM".to_owned(),
        cipher_us_per_kb: 0.08,
        copy_us_per_kb: 0.02,
        plain_us_per_kb: 0.3,
    };
    assert!((floor.us_per_kb() - 0.4).abs() < 1e-9);
    let value = read(&json::of_engines(&runs, Some(&floor)));
    assert_eq!(schema_faults(&engines, &value), Vec::<String>::new());
    assert_eq!(unused_fields(&engines, &[value]), Vec::<String>::new(), "never printed");
}

#[test]
fn what_iperf3_calls_the_same_is_the_same() {
    let mut report = reports().swap_remove(1);
    let path =
        PathReport { retransmits: 3, congestion_window_bytes: 5000, rtt_us: 70, ..PathReport::default() };
    report.local.streams[0].path = Some(path);
    let value = read(&json::of_run(&report));
    let number =
        |pointer: &str| value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}"));
    assert_eq!(number("/end/streams/0/sender/retransmits"), 3.0);
    assert_eq!(number("/end/streams/0/sender/snd_cwnd"), 5000.0);
    assert_eq!(number("/end/sum_sent/bytes"), report.local.bytes(true) as f64);
    assert_eq!(number("/end/sum_received/bytes"), report.local.bytes(true) as f64);
    assert_eq!(number("/end/sum_sent_bidir_reverse/bytes"), report.local.bytes(false) as f64);
    let rate = number("/end/sum_sent/bytes") * 8.0 / number("/end/sum_sent/seconds");
    assert!((number("/end/sum_sent/bits_per_second") - rate).abs() < 1.0);
    let cpu_s = number("/end/cost/host/cpu/user_s") + number("/end/cost/host/cpu/system_s");
    let percent = cpu_s * 100.0 / number("/end/cost/host/seconds");
    assert!((number("/end/cpu_utilization_percent/host_total") - percent).abs() < 1e-6);
    let moved_kb = (report.local.bytes(true) + report.local.bytes(false)) as f64 / 1024.0;
    assert!((number("/end/cost/host/service_demand_us_per_kb") - cpu_s * 1e6 / moved_kb).abs() < 1e-6);
    let told: f64 =
        value["intervals"].as_array().unwrap().iter().map(|one| one["sum"]["bytes"].as_f64().unwrap()).sum();
    assert!(told <= number("/end/sum_sent/bytes") && told > 0.0);
}
