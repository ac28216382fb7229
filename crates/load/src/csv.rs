//! A report as one line of comma-separated values below a line of names, for spreadsheets.

use std::fmt::Write;

use serde_json::Value;

use crate::report::LoadReport;

/// The names and the values of `report`, one line each. Names are those of the JSON, joined by dots: `latency.p99_us`.
/// Lists and what has keys of its own (errors by kind, statuses) become their sum or number.
#[must_use]
pub fn lines(report: &LoadReport) -> String {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    // A report is plain data: it always has a JSON form.
    let report = serde_json::to_value(report).unwrap_or_default();
    flatten(&report, &mut String::new(), &mut names, &mut values);
    format!("{}\n{}\n", names.join(","), values.join(","))
}

fn flatten(value: &Value, name: &mut String, names: &mut Vec<String>, values: &mut Vec<String>) {
    let plain = match value {
        Value::Object(members) if ["errors", "statuses", "negotiated"].contains(&name.as_str()) => {
            members.values().filter_map(Value::as_u64).sum::<u64>().to_string()
        }
        Value::Object(_) if name == "environment" => return,
        Value::Object(members) => {
            for (key, member) in members {
                let length = name.len();
                let _ = write!(name, "{}{key}", if length == 0 { "" } else { "." });
                flatten(member, name, names, values);
                name.truncate(length);
            }
            return;
        }
        Value::Array(items) if name == "command" => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        Value::Array(items) => items.len().to_string(),
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    names.push(name.clone());
    values.push(quoted(&plain));
}

/// RFC 4180: what has a comma, a quote or a line break in it stands in quotes.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_two_lines_of_as_many_fields() {
        let mut report = crate::report::tests::example();
        report.command = vec!["linerate".to_owned(), "a,\"b\"".to_owned()];
        report.errors.insert("one".to_owned(), 2);
        report.errors.insert("two".to_owned(), 3);
        let text = lines(&report);
        let (names, values) = text.trim_end().split_once('\n').unwrap();
        assert!(values.contains("\"linerate a,\"\"b\"\"\""));
        let plain = values.replace("\"linerate a,\"\"b\"\"\"", "");
        let of = |name: &str| {
            let at = names.split(',').position(|known| known == name).unwrap();
            plain.split(',').nth(at).unwrap()
        };
        assert_eq!(names.split(',').count(), plain.split(',').count());
        assert_eq!((of("errors"), of("latency.p99_us"), of("rate_per_s")), ("5", "0", ""));
    }
}
