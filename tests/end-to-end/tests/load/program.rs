//! The program under test, and its report.

use linerate_end_to_end::{Finished, Program, linerate_binary};
use serde_json::Value;

/// `linerate load` with these words, and its report as JSON.
pub(crate) fn load(words: &[&str]) -> Program {
    let program = linerate_binary().to_str().expect("a path of a test is text");
    Program::new(program, [&["load", "--json"], words].concat())
}

/// What a finished run reported. Its exit status has to agree with that.
#[track_caller]
pub(crate) fn report(finished: &Finished) -> Value {
    let report: Value = serde_json::from_slice(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", finished.text(), finished.stderr));
    let failed = report["errors"].as_object().is_some_and(|errors| !errors.is_empty());
    assert_eq!(finished.status.code(), Some(i32::from(failed)), "{report:#}");
    report
}

/// The report of a run in which nothing failed.
#[track_caller]
pub(crate) fn flawless(words: &[&str]) -> Value {
    let report = report(&load(words).run());
    assert_eq!(report["errors"], serde_json::json!({}), "{words:?}: {report:#}");
    report
}

/// A number of the report, by its place.
#[track_caller]
pub(crate) fn number(report: &Value, pointer: &str) -> f64 {
    report.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {report:#}"))
}
