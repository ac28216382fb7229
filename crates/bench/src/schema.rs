//! The published schema of results, `docs/schema/linerate-bench-1.json`, held against a result in both directions.

use serde_json::{Value, json};

use crate::result::{PublishedSeries, PublishedValue, Reading, Round, Variable};
use crate::sample::sample_run;

const SCHEMA: &str = include_str!("../../../docs/schema/linerate-bench-1.json");

/// What of `value` is not as `schema` has it. Of JSON Schema as much as that file uses.
fn faults(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        return match reference.strip_prefix("#/$defs/") {
            Some(name) => faults(root, &root["$defs"][name], value, path),
            // The load client's own schema, which its own tests hold against its reports.
            None if value.is_object() => Vec::new(),
            None => vec![format!("{path} is no object")],
        };
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| faults(root, choice, value, path).is_empty()).count();
        return if fitting == 1 {
            Vec::new()
        } else {
            vec![format!("{path} fits {fitting} choices: {value}")]
        };
    }
    if let Some(constant) = schema.get("const") {
        return if constant == value { Vec::new() } else { vec![format!("{path} is not {constant}")] };
    }
    let fits = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64(),
        Some("array") => {
            let items = value.as_array().into_iter().flatten().enumerate();
            let below =
                items.flat_map(|(at, item)| faults(root, &schema["items"], item, &format!("{path}[{at}]")));
            return if value.is_array() { below.collect() } else { vec![format!("{path} is no list")] };
        }
        Some("object") => return object_faults(root, schema, value, path),
        other => {
            return vec![format!("{path}: the schema has a type that this test does not know: {other:?}")];
        }
    };
    if fits { Vec::new() } else { vec![format!("{path} is no {}: {value}", schema["type"])] }
}

fn object_faults(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let Some(entries) = value.as_object() else { return vec![format!("{path} is no object: {value}")] };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut found: Vec<String> = required
        .filter(|name| !entries.contains_key(*name))
        .map(|name| format!("{path}.{name} is missing"))
        .collect();
    for (name, entry) in entries {
        let path = format!("{path}.{name}");
        match schema["properties"].get(name) {
            Some(schema) => found.extend(faults(root, schema, entry, &path)),
            None if schema["additionalProperties"].is_object() => {
                found.extend(faults(root, &schema["additionalProperties"], entry, &path));
            }
            None => found.push(format!("{path} is not in the schema")),
        }
    }
    // Everything that the schema promises is there: the sample has all fields.
    let promised = schema["properties"].as_object().into_iter().flatten();
    found.extend(
        promised
            .filter(|(name, _)| !entries.contains_key(*name))
            .map(|(name, _)| format!("{path} has no {name}")),
    );
    found
}

fn full_result() -> Value {
    let mut run = sample_run();
    run.points[0]
        .rounds
        .push(Round::Failed { reason: "it died".to_owned(), log: vec!["last words".to_owned()] });
    run.points[0].variables.insert("cache".to_owned(), Variable::Word("hot".to_owned()));
    run.environment.entry("kernel".to_owned()).or_default().insert("release".to_owned(), Reading::default());
    let values = vec![PublishedValue { at: Variable::Word("hot".to_owned()), low: 1.0, high: 2.0 }];
    run.published.push(PublishedSeries {
        name: "They".to_owned(),
        source: "a paper".to_owned(),
        quantity: "application_gbit_s".to_owned(),
        values,
    });
    serde_json::to_value(run).unwrap()
}

#[test]
fn a_result_is_as_the_schema_has_it() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let found = faults(&schema, &schema, &full_result(), "result");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_is_wrong_is_found() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for (pointer, wrong) in [
        ("/schema", json!("linerate-bench/2")),
        ("/quick", json!("yes")),
        ("/points/0/rounds/0", json!({ "lost": {} })),
        ("/points/0/rounds/0/measured/wire_gbit_s", json!(3.0)),
        ("/points/0/rounds/0/measured/server/user_s", json!("1")),
        ("/environment/kernel/release", json!("6.1")),
        ("/published/0/values/0/at", json!(true)),
    ] {
        let mut result = full_result();
        *result.pointer_mut(pointer).unwrap() = wrong;
        assert!(!faults(&schema, &schema, &result, "result").is_empty(), "{pointer}");
    }
}
