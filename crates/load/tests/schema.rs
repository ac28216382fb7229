//! What `--json` prints is what `docs/schema/linerate-load-1.json` says, field for field, both ways.

mod support;

use std::fs;

use linerate_load::plan::{BodyUse, Until};
use linerate_schema::{check_schema_is_complete, published, schema_faults, unused_fields};
use serde_json::Value;

fn schema() -> Value {
    published("linerate-load-1")
}

fn faults(report: &Value) -> Vec<String> {
    schema_faults(&schema(), report)
}

/// A real run with something in every field: errors, mismatches, two statuses, a rate.
fn reports() -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::write(&source, b"as it should be").unwrap();
    let address = support::serve(|request, stream| match request.number % 3 {
        0 => support::respond(stream, "200 OK", "", b"as it shoulD be"),
        1 => support::respond(stream, "200 OK", "", b"as it should be, and more"),
        _ => support::respond(stream, "404 Not Found", "", b"no"),
    });
    let mut plan = support::plan(address, "/f");
    plan.until = Until::Requests(9);
    let plain = support::run(&plan);
    plan.rate = Some(1000.0);
    plan.body = BodyUse::Verify(source);
    let full = support::run(&plan);
    assert!(full.mismatches.len() >= 2 && full.errors.len() >= 2 && full.statuses.len() == 2, "{full:?}");
    [plain, full].map(|report| serde_json::from_str(&report.to_json()).unwrap()).to_vec()
}

#[test]
fn what_is_printed_is_what_the_schema_says() {
    check_schema_is_complete(&schema());
    let reports = reports();
    for report in &reports {
        assert_eq!(faults(report), Vec::<String>::new());
    }
    assert_eq!(unused_fields(&schema(), &reports), Vec::<String>::new(), "never printed");
}

#[test]
fn a_report_that_differs_is_noticed() {
    let report = &reports()[1];
    for (pointer, wrong) in [
        ("/schema", Value::from("linerate-load/2")),
        ("/totals/responses", Value::from(-1)),
        ("/latency/p50_us", Value::from(1.5)),
        ("/client/busiest_running", Value::from(1.5)),
        ("/errors/status 404", Value::from("3")),
        ("/mismatches/0/wanted", Value::from(256)),
        ("/interrupted", Value::Null),
    ] {
        let mut changed = report.clone();
        *changed.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = wrong;
        assert!(!faults(&changed).is_empty(), "{pointer}");
    }
    let mut changed = report.clone();
    changed["totals"].as_object_mut().unwrap().remove("requests");
    changed["latency"]["p42_us"] = Value::from(1);
    assert_eq!(faults(&changed).len(), 2);
}
