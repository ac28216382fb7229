//! What `--json` prints is what `docs/schema/linerate-plan-1.json` says, field for field, both ways.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use linerate_plan::{Constants, Report, check, plan, presets};
use serde_json::Value;

fn schema() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/linerate-plan-1.json");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Holds values against the schema, as far as that file uses JSON Schema; another keyword is a fault.
struct Check {
    root: Value,
    faults: Vec<String>,
    /// Fields of the schema that some value had.
    seen: BTreeSet<String>,
}

impl Check {
    fn value(&mut self, schema: &Value, value: &Value, place: &str) {
        let says = schema.as_object().unwrap();
        for (keyword, says) in says {
            let holds = match keyword.as_str() {
                "$schema"
                | "title"
                | "description"
                | "properties"
                | "additionalProperties"
                | "items"
                | "$defs" => true,
                "$ref" => {
                    let name = says.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                    let target = self.root["$defs"][name].clone();
                    return self.value(&target, value, &format!("#{name}"));
                }
                "const" => value == says,
                "enum" => says.as_array().unwrap().contains(value),
                "type" => kinds(says).iter().any(|kind| is_a(value, kind)),
                "minimum" => value.as_f64().is_none_or(|number| number >= says.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|number| number <= says.as_f64().unwrap()),
                "required" => {
                    says.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some())
                }
                _ => false,
            };
            if !holds {
                self.faults.push(format!("{place}: {keyword} {says} does not hold for {value}"));
            }
        }
        for (name, member) in value.as_object().into_iter().flatten() {
            let place = format!("{place}.{name}");
            match says.get("properties").and_then(|known| known.get(name)) {
                Some(known) => {
                    self.seen.insert(place.clone());
                    self.value(&known.clone(), member, &place);
                }
                None => self.faults.push(format!("{place} is not in the schema")),
            }
        }
        for item in value.as_array().into_iter().flatten() {
            self.value(&schema["items"].clone(), item, &format!("{place}[]"));
        }
    }

    /// Every field that the schema has.
    fn known(&self, schema: &Value, place: &str, known: &mut BTreeSet<String>) {
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let place = format!("{place}.{name}");
            self.known(member, &place, known);
            known.insert(place);
        }
        if schema["items"].is_object() {
            self.known(&schema["items"], &format!("{place}[]"), known);
        }
        for (name, member) in schema["$defs"].as_object().into_iter().flatten() {
            self.known(member, &format!("#{name}"), known);
        }
    }
}

fn kinds(says: &Value) -> Vec<&str> {
    says.as_array()
        .map_or_else(|| vec![says.as_str().unwrap()], |all| all.iter().filter_map(Value::as_str).collect())
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
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

#[test]
fn plans_and_checks_are_as_the_schema_says_and_use_all_of_it() {
    let schema = schema();
    let mut held = Check { root: schema.clone(), faults: Vec::new(), seen: BTreeSet::new() };
    let mut add = |report: Report<'_>| {
        let value = serde_json::from_str(&report.to_json()).unwrap();
        held.value(&schema, &value, "");
    };
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
    assert_eq!(held.faults, Vec::<String>::new());
    let mut known = BTreeSet::new();
    held.known(&schema, "", &mut known);
    let never: Vec<_> = known.difference(&held.seen).collect();
    assert!(never.is_empty(), "in the schema, and never printed: {never:?}");
}

#[test]
fn a_missing_and_an_unknown_field_are_told() {
    let schema = schema();
    let mut value: Value = serde_json::from_str(&Report::check(&[]).to_json()).unwrap();
    value.as_object_mut().unwrap().remove("constants");
    value["more"] = Value::Null;
    let mut held = Check { root: schema.clone(), faults: Vec::new(), seen: BTreeSet::new() };
    held.value(&schema, &value, "");
    assert_eq!(held.faults.len(), 2, "{:?}", held.faults);
}
