//! The published schema of results, `docs/schema/linerate-bench-1.json`, held against a result in both directions.

use linerate_schema::{published, schema_faults, unused_fields};
use serde_json::{Value, json};

use crate::result::{
    FloorPoint, FloorRound, PublishedSeries, PublishedValue, Reading, Round, Target, Variable,
};
use crate::sample::{sample_run, seal_and_copy};

/// A result that has every field.
pub(crate) fn full_result() -> Value {
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
    let at = |name: &str| [(name.to_owned(), Variable::Number(8.0))].into();
    run.targets.push(Target {
        server: "linerate user".to_owned(),
        at: at("connections"),
        quantity: Some("server_s_per_gb".to_owned()),
        beside: Some("nginx tls".to_owned()),
        beside_at: at("connections"),
        beside_version: Some("OpenSSL 3.0".to_owned()),
        most: 0.42,
    });
    run.changed.insert("connections".to_owned(), vec![Variable::Number(8.0)]);
    run.warnings.push("core 0 is busy".to_owned());
    let Round::Measured(round) = &mut run.points[1].rounds[0] else { panic!("it was measured") };
    round.seal_and_copy = Reading::Value(seal_and_copy(0.08, 0.03));
    let floor = FloorRound {
        seal_s_per_gb: 0.08,
        copy_s_per_gb: 0.03,
        plaintext_s_per_gb: 0.12,
        s_per_gb: 0.23,
        us_per_response: Reading::Value(230.0),
    };
    run.floor = Reading::Value(vec![FloorPoint {
        variables: at("connections"),
        plaintext: "linerate plaintext".to_owned(),
        rounds: vec![Some(floor), None],
    }]);
    serde_json::to_value(run).unwrap()
}

#[test]
fn a_result_is_as_the_schema_has_it() {
    let (schema, result) = (published("linerate-bench-1"), full_result());
    assert_eq!(schema_faults(&schema, &result), Vec::<String>::new());
    assert_eq!(unused_fields(&schema, &[result]), Vec::<String>::new(), "never written");
}

#[test]
fn what_is_wrong_is_found() {
    let schema = published("linerate-bench-1");
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
        assert!(!schema_faults(&schema, &result).is_empty(), "{pointer}");
    }
}
