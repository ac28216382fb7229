//! What `--json` prints is what `docs/schema/linerate-load-1.json` says, field for field, both ways.

mod support;

use std::fs;
use std::path::Path;

use linerate_load::plan::{BodyUse, Until};
use serde_json::Value;

fn schema() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/linerate-load-1.json");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The part of JSON Schema that ours uses; a keyword that it does not know is a fault, too.
fn check(root: &Value, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    let mut fault = |what: String| faults.push(format!("{place}: {what}"));
    for (keyword, says) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "description"
            | "title"
            | "$schema"
            | "$defs"
            | "items"
            | "properties"
            | "additionalProperties" => {}
            "$ref" => {
                let name = says.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                check(root, &root["$defs"][name], value, place, faults);
                return;
            }
            "const" if value == says => {}
            "type"
                if says
                    .as_array()
                    .map_or_else(|| is_a(value, says), |any| any.iter().any(|one| is_a(value, one))) => {}
            "minimum" if value.as_f64().is_none_or(|number| number >= says.as_f64().unwrap()) => {}
            "maximum" if value.as_f64().is_none_or(|number| number <= says.as_f64().unwrap()) => {}
            "required" => {
                for name in says.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        fault(format!("{name} is missing"));
                    }
                }
            }
            keyword => fault(format!("{keyword} {says} does not hold for {value}")),
        }
    }
    let others = schema.get("additionalProperties");
    for (name, member) in value.as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        match (schema["properties"].get(name), others) {
            (Some(known), _) => check(root, known, member, &place, faults),
            (None, Some(other @ Value::Object(_))) => check(root, other, member, &place, faults),
            (None, _) => faults.push(format!("{place} is not in the schema")),
        }
    }
    for item in value.as_array().into_iter().flatten() {
        check(root, &schema["items"], item, &format!("{place}[]"), faults);
    }
}

fn is_a(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other}"),
    }
}

/// Every object of our own in the schema requires all that it knows: a report never leaves a field out.
fn check_complete(schema: &Value) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let required: Vec<&str> =
            schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for name in properties.keys() {
            assert!(required.contains(&name.as_str()), "{name}");
        }
        assert_eq!(schema["additionalProperties"], Value::Bool(false));
    }
    for member in schema.as_object().into_iter().flat_map(serde_json::Map::values) {
        if member.is_object() {
            check_complete(member);
        }
    }
}

fn faults(report: &Value) -> Vec<String> {
    let schema = schema();
    let mut faults = Vec::new();
    check(&schema, &schema, report, "report", &mut faults);
    faults
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
    check_complete(&schema());
    for report in reports() {
        assert_eq!(faults(&report), Vec::<String>::new());
    }
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
