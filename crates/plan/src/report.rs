//! A plan or a check as JSON: the form `linerate-plan/1`, docs/schema/linerate-plan-1.json.

use serde::Serialize;

use crate::{Constant, Constants, Machine, Outcome, Published, Quantity, Role, Row, Sender, Workload};

/// The name and version of the form.
pub const SCHEMA: &str = "linerate-plan/1";

/// What is printed with `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The machine as it was described, defaults filled in; of a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<&'a Machine>,
    /// The workload, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<&'a Workload>,
    /// What the draws of the simulation began with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<&'a [Row]>,
    /// The published points, of a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<Vec<CheckedPoint<'a>>>,
    /// What the model stands on.
    pub constants: Vec<Constant>,
}

/// A published point beside the prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedPoint<'a> {
    name: &'a str,
    source: &'a str,
    machine: &'a str,
    workload: &'a str,
    engine: Sender,
    quantity: Quantity,
    role: Role,
    published: Published,
    predicted: f64,
    error: f64,
    bottleneck: &'a str,
}

impl<'a> Report<'a> {
    /// Of a plan.
    #[must_use]
    pub fn plan(machine: &'a Machine, workload: &'a Workload, seed: u64, rows: &'a [Row]) -> Self {
        Self {
            machine: Some(machine),
            workload: Some(workload),
            seed: Some(seed),
            rows: Some(rows),
            ..Self::empty()
        }
    }

    /// Of a check.
    #[must_use]
    pub fn check(outcomes: &'a [Outcome]) -> Self {
        let points = outcomes.iter().map(|outcome| CheckedPoint {
            name: &outcome.point.name,
            source: &outcome.point.source,
            machine: &outcome.point.machine,
            workload: &outcome.point.workload,
            engine: outcome.point.engine,
            quantity: outcome.point.quantity,
            role: outcome.point.role,
            published: outcome.point.published,
            predicted: outcome.predicted,
            error: outcome.error,
            bottleneck: outcome.bottleneck,
        });
        Self { points: Some(points.collect()), ..Self::empty() }
    }

    fn empty() -> Self {
        let constants = Constants::PRESENT.table();
        Self {
            schema: SCHEMA,
            machine: None,
            workload: None,
            seed: None,
            rows: None,
            points: None,
            constants,
        }
    }

    /// As text, with a line break at its end.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Numbers, texts and lists: there is nothing in it that JSON cannot say.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }
}
