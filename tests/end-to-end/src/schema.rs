//! Holds a JSON value against a published schema, and a schema against our own rules for them.

use serde_json::Value;

/// Everything in which `value` is not what `schema` says.
#[must_use]
pub fn schema_faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, schema, value, "value", &mut faults);
    faults
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
            "enum" if says.as_array().is_some_and(|any| any.contains(value)) => {}
            "oneOf" => {
                let fits = |one: &&Value| {
                    let mut faults = Vec::new();
                    check(root, one, value, place, &mut faults);
                    faults.is_empty()
                };
                if says.as_array().unwrap().iter().filter(fits).count() != 1 {
                    fault(format!("fits not one of {says}"));
                }
                return;
            }
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
///
/// # Panics
/// Where one does not.
pub fn check_schema_is_complete(schema: &Value) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let required: Vec<&str> =
            schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for name in properties.keys() {
            assert!(required.contains(&name.as_str()), "{name}");
        }
        assert_eq!(schema["additionalProperties"], Value::Bool(false));
    }
    let members = schema.as_object().into_iter().flat_map(serde_json::Map::values);
    for member in members.chain(schema.as_array().into_iter().flatten()) {
        if member.is_object() || member.is_array() {
            check_schema_is_complete(member);
        }
    }
}
