//! What `--json` prints is what `docs/schema/linerate-plan-1.json` says, field for field, both ways.

use linerate_plan::{Constants, Report, check, plan, presets};
use linerate_schema::{published, schema_faults, unused_fields};
use serde_json::Value;

#[test]
fn plans_and_checks_are_as_the_schema_says_and_use_all_of_it() {
    let schema = published("linerate-plan-1");
    let mut values = Vec::new();
    let mut add = |report: Report<'_>| values.push(serde_json::from_str(&report.to_json()).unwrap());
    // One with the adapter, one whose adapter lacks the version (a note), and one with every optional key.
    for (machine, workload) in
        [("media-server", "mirror"), ("xeon-8380-one-core", "web"), ("chelsio-t7", "bulk")]
    {
        let machine = presets::machine(machine).unwrap();
        let mut workload = presets::workload(workload).unwrap();
        workload.arrivals_per_s = Some(5.0);
        let rows = plan(&machine, &workload, &[100.0], 1);
        add(Report::plan(&machine, &workload, 1, &rows));
    }
    add(Report::check(&check(&Constants::PRESENT).unwrap()));
    for value in &values {
        assert_eq!(schema_faults(&schema, value), Vec::<String>::new());
    }
    assert_eq!(unused_fields(&schema, &values), Vec::<String>::new(), "in the schema, and never printed");
}

#[test]
fn a_missing_and_an_unknown_field_are_told() {
    let mut value: Value = serde_json::from_str(&Report::check(&[]).to_json()).unwrap();
    value.as_object_mut().unwrap().remove("constants");
    value["more"] = Value::Null;
    let faults = schema_faults(&published("linerate-plan-1"), &value);
    assert_eq!(faults.len(), 2, "{faults:?}");
}
