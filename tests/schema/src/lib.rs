//! What linerate prints as JSON, held against the schemas in `docs/schema`: values against a schema, a schema against the
//! values that there are, and a schema against our own rules for them.
//!
//! The part of JSON Schema that ours use is small, and a keyword that is not known here is a fault: a schema must not promise
//! what nobody checks. That a field is never printed no validator tells; so this is no dependency.

#![forbid(unsafe_code)]

use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path};

/// A schema of `docs/schema`: `linerate-load-1`.
///
/// # Panics
/// If there is none, or it is no JSON.
#[must_use]
pub fn published(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    serde_json::from_str(&fs::read_to_string(folder.join(format!("{name}.json"))).unwrap()).unwrap()
}

/// Everything in which `value` is not what `schema` says.
#[must_use]
pub fn schema_faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut walk = Walk::new(schema);
    walk.value(schema, value, Place::TOP);
    walk.faults
}

/// Fields that `schema` has and none of these values: `latency.p50_us`, within a definition `#name.field`.
#[must_use]
pub fn unused_fields(schema: &Value, values: &[Value]) -> Vec<String> {
    let mut walk = Walk::new(schema);
    for value in values {
        walk.value(schema, value, Place::TOP);
    }
    let mut known = BTreeSet::new();
    fields(schema, "", &mut known);
    known.difference(&walk.seen).cloned().collect()
}

/// A way through a value.
struct Walk<'a> {
    root: &'a Value,
    faults: Vec<String>,
    /// Fields of the schema that some value had.
    seen: BTreeSet<String>,
}

/// Where the walk is: in the value, and in the schema.
#[derive(Clone, Copy)]
struct Place<'a> {
    value: &'a str,
    schema: &'a str,
}

impl Place<'_> {
    const TOP: Self = Self { value: "value", schema: "" };
}

impl<'a> Walk<'a> {
    fn new(root: &'a Value) -> Self {
        Self { root, faults: Vec::new(), seen: BTreeSet::new() }
    }

    fn value(&mut self, schema: &Value, value: &Value, place: Place<'_>) {
        for (keyword, says) in schema.as_object().unwrap() {
            match keyword.as_str() {
                "$ref" => {
                    return self.referred(says.as_str().unwrap(), value, place);
                }
                "oneOf" => return self.one_of(says, value, place),
                keyword if !holds(keyword, says, value) => {
                    self.faults.push(format!("{}: {keyword} {says} does not hold for {value}", place.value));
                }
                _ => {}
            }
        }
        let others = schema.get("additionalProperties").filter(|other| other.is_object());
        for (name, member) in value.as_object().into_iter().flatten() {
            let within = format!("{}.{name}", place.value);
            if let Some(known) = schema["properties"].get(name) {
                let field = joined(place.schema, name);
                self.value(known, member, Place { value: &within, schema: &field });
                self.seen.insert(field);
            } else if let Some(other) = others {
                let field = joined(place.schema, "*");
                self.value(other, member, Place { value: &within, schema: &field });
            } else {
                self.faults.push(format!("{within} is not in the schema"));
            }
        }
        let (items, item) = (format!("{}[]", place.value), format!("{}[]", place.schema));
        for member in value.as_array().into_iter().flatten() {
            self.value(&schema["items"], member, Place { value: &items, schema: &item });
        }
    }

    /// A value of which the schema says that it is as another definition has it, or another schema of ours: that one's own
    /// tests say whether all its fields are used.
    fn referred(&mut self, to: &str, value: &Value, place: Place<'_>) {
        if let Some(name) = to.strip_prefix("#/$defs/") {
            let (root, schema) = (self.root, format!("#{name}"));
            return self.value(&root["$defs"][name], value, Place { schema: &schema, ..place });
        }
        let other = published(to.strip_suffix(".json").unwrap());
        let mut walk = Walk::new(&other);
        walk.value(&other, value, place);
        self.faults.extend(walk.faults);
    }

    /// What fits one of several, and no more than one, is what that one says.
    fn one_of(&mut self, says: &Value, value: &Value, place: Place<'_>) {
        let walks = says.as_array().unwrap().iter().map(|one| {
            let mut walk = Walk::new(self.root);
            walk.value(one, value, place);
            walk
        });
        let mut fitting: Vec<Walk<'_>> = walks.filter(|walk| walk.faults.is_empty()).collect();
        match (fitting.pop(), fitting.is_empty()) {
            (Some(walk), true) => self.seen.extend(walk.seen),
            _ => self.faults.push(format!("{}: fits not one of {says}", place.value)),
        }
    }
}

/// Whether a value is what a keyword says, by itself.
fn holds(keyword: &str, says: &Value, value: &Value) -> bool {
    match keyword {
        // These say nothing, or are followed elsewhere.
        "description" | "title" | "$schema" | "$defs" | "items" | "properties" | "additionalProperties" => {
            true
        }
        "const" => value == says,
        "enum" => says.as_array().is_some_and(|any| any.contains(value)),
        "type" => {
            says.as_array().map_or_else(|| is_a(value, says), |any| any.iter().any(|one| is_a(value, one)))
        }
        "minimum" => value.as_f64().is_none_or(|number| number >= says.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= says.as_f64().unwrap()),
        "required" => says.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
        _ => false,
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

fn joined(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// Every field that a schema has. Of alternatives (`oneOf`: a value, or why there is none) no single one is promised.
fn fields(schema: &Value, place: &str, known: &mut BTreeSet<String>) {
    if !schema.is_object() {
        return;
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let field = joined(place, name);
        fields(member, &field, known);
        known.insert(field);
    }
    fields(&schema["items"], &format!("{place}[]"), known);
    fields(&schema["additionalProperties"], &joined(place, "*"), known);
    for (name, member) in schema["$defs"].as_object().into_iter().flatten() {
        fields(member, &format!("#{name}"), known);
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["name", "rows"],
            "properties": {
                "name": { "type": ["string", "null"] },
                "rows": { "type": "array", "items": { "$ref": "#/$defs/row" } },
                "by_name": { "type": "object", "additionalProperties": { "$ref": "#/$defs/row" } },
                "any": { "oneOf": [
                    { "type": "object", "required": ["value"], "properties": { "value": { "type": "number" } } },
                    { "type": "object", "required": ["reason"], "properties": { "reason": { "type": "string" } } },
                ] },
            },
            "$defs": { "row": {
                "type": "object",
                "properties": { "count": { "type": "integer", "minimum": 1, "maximum": 9 }, "kind": { "enum": ["a"] } },
            } },
        })
    }

    #[test]
    fn each_keyword_is_held() {
        let good = json!({ "name": null, "rows": [{ "count": 3 }], "by_name": { "x": { "kind": "a" } } });
        assert_eq!(schema_faults(&schema(), &good), Vec::<String>::new());
        for (pointer, wrong) in [
            ("/name", json!(1)),
            ("/rows", json!({})),
            ("/rows/0", json!({ "other": 1 })),
            ("/rows/0/count", json!(0)),
            ("/rows/0/count", json!(10)),
            ("/rows/0/count", json!(1.5)),
            ("/by_name/x/kind", json!("b")),
        ] {
            let mut value = good.clone();
            *value.pointer_mut(pointer).unwrap() = wrong;
            assert!(!schema_faults(&schema(), &value).is_empty(), "{value}");
        }
        assert_eq!(schema_faults(&schema(), &json!({ "rows": [], "any": {} })).len(), 2);
        assert_eq!(schema_faults(&json!({ "pattern": "x" }), &json!("x")).len(), 1, "who checks that?");
    }

    #[test]
    fn fields_that_no_value_has_are_named() {
        let one = json!({ "name": "n", "rows": [{ "count": 1 }] });
        assert_eq!(unused_fields(&schema(), std::slice::from_ref(&one)), ["#row.kind", "any", "by_name"]);
        let other =
            json!({ "name": "n", "rows": [], "by_name": { "x": { "kind": "a" } }, "any": { "value": 1 } });
        assert_eq!(schema_faults(&schema(), &other), Vec::<String>::new());
        assert_eq!(unused_fields(&schema(), &[one, other]), Vec::<String>::new());
    }
}
