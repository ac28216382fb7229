//! Two runs of the same experiment, point by point: what has become dearer or slower, cheaper or faster, and what has not.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};
use crate::report::quantity::{self, Quantity};
use crate::report::{number, values_by_round};
use crate::result::{ExperimentRun, Point, Variable};
use crate::statistics::{Ratio, Summary, Verdict};

/// All points that both runs have.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// One for each point and quantity, in the order of the later run.
    pub changes: Vec<Change>,
    /// Points that only one of the runs has, and what else to keep in mind.
    pub remarks: Vec<String>,
}

/// One quantity at one point, in both runs.
#[derive(Clone, Debug)]
pub struct Change {
    /// The server.
    pub server: String,
    /// The point.
    pub variables: BTreeMap<String, Variable>,
    /// The field of the measurement: "server_s_per_gb".
    pub quantity: &'static str,
    /// Its median in the earlier run.
    pub before: f64,
    /// Its median in the later run.
    pub after: f64,
    /// The later run's to the earlier's, with its interval.
    pub ratio: Ratio,
    /// What may be said about it.
    pub outcome: Outcome,
}

/// What may be said about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Too few rounds to say anything.
    TooFewRounds,
    /// The difference is within what the rounds differ among themselves.
    NoDifference,
    /// More bandwidth, less CPU.
    Better,
    /// Less bandwidth, more CPU.
    Worse,
}

/// Compares `after` with `before`. With `relative_to`, each round counts relative to that server's in the same round: what
/// the machine did differently on both days then cancels out.
///
/// # Errors
/// Where the runs have nothing in common, or there is no such server.
pub fn compare(
    before: &ExperimentRun,
    after: &ExperimentRun,
    relative_to: Option<&str>,
) -> Result<Comparison> {
    let mut remarks = remarks(before, after);
    let mut changes = Vec::new();
    for point in &after.points {
        let Some(earlier) = before.points.iter().find(|earlier| is_same(earlier, point)) else {
            remarks.push(format!("{}: only in the later run", name_of(&point.server, &point.variables)));
            continue;
        };
        if relative_to == Some(point.server.as_str()) {
            continue;
        }
        for quantity in after.quantities.iter().filter_map(|name| quantity::named(name)) {
            let values = |run, point| values(run, point, &quantity, relative_to);
            changes.extend(Change::of(point, &quantity, &values(before, earlier), &values(after, point)));
        }
    }
    for point in &before.points {
        if !after.points.iter().any(|later| is_same(later, point)) {
            remarks.push(format!("{}: only in the earlier run", name_of(&point.server, &point.variables)));
        }
    }
    if changes.is_empty() {
        let with = relative_to.map(|name| format!(" relative to {name}")).unwrap_or_default();
        return Err(Error::Asked(format!(
            "the runs ({} and {}) have no measured point in common{with}",
            before.name, after.name
        )));
    }
    Ok(Comparison { changes, remarks })
}

impl Comparison {
    /// Whatever has become worse by more than `percent`.
    pub fn worse_than(&self, percent: f64) -> impl Iterator<Item = &Change> {
        self.changes
            .iter()
            .filter(move |change| change.outcome == Outcome::Worse && change.percent() > percent)
    }
}

impl Change {
    fn of(point: &Point, quantity: &Quantity, before: &[f64], after: &[f64]) -> Option<Self> {
        let ratio = Ratio::unpaired(after, before)?;
        let outcome = match ratio.verdict() {
            Verdict::TooFewRounds => Outcome::TooFewRounds,
            Verdict::NoDifference => Outcome::NoDifference,
            verdict if (verdict == Verdict::More) == quantity.more_is_better => Outcome::Better,
            _ => Outcome::Worse,
        };
        Some(Self {
            server: point.server.clone(),
            variables: point.variables.clone(),
            quantity: quantity.key,
            before: Summary::of(before)?.median,
            after: Summary::of(after)?.median,
            ratio,
            outcome,
        })
    }

    /// By how much it differs, in percent, without a sign.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * (self.ratio.ratio - 1.0).abs()
    }

    /// "dearer by 10 % (8–12)", "no difference".
    #[must_use]
    pub fn verdict(&self) -> String {
        let is_bandwidth = quantity::named(self.quantity).is_some_and(|quantity| quantity.more_is_better);
        let word = match (self.outcome, is_bandwidth) {
            (Outcome::TooFewRounds, _) => return "too few rounds to tell".to_owned(),
            (Outcome::NoDifference, _) => return "no difference".to_owned(),
            (Outcome::Better, true) => "faster",
            (Outcome::Better, false) => "cheaper",
            (Outcome::Worse, true) => "slower",
            (Outcome::Worse, false) => "dearer",
        };
        let mut ends = [self.ratio.low, self.ratio.high].map(|end| 100.0 * (end - 1.0).abs());
        ends.sort_by(f64::total_cmp);
        format!("{word} by {:.0} % ({:.0}–{:.0})", self.percent(), ends[0], ends[1])
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in &self.changes {
            writeln!(formatter, "{change}")?;
        }
        for remark in &self.remarks {
            writeln!(formatter, "note: {remark}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (title, unit) = quantity::named(self.quantity)
            .map_or((self.quantity, ""), |quantity| (quantity.title, quantity.unit));
        let name = name_of(&self.server, &self.variables);
        let (before, after) = (number::short(self.before), number::short(self.after));
        write!(formatter, "{name}: {}: {title} {before} → {after} {unit}", self.verdict())
    }
}

/// "nginx tls, connections 10, tls 1.3".
pub(crate) fn name_of(server: &str, variables: &BTreeMap<String, Variable>) -> String {
    variables.iter().fold(server.to_owned(), |name, (variable, value)| format!("{name}, {variable} {value}"))
}

fn is_same(one: &Point, other: &Point) -> bool {
    one.server == other.server && one.variables == other.variables
}

fn remarks(before: &ExperimentRun, after: &ExperimentRun) -> Vec<String> {
    let mut remarks = Vec::new();
    if before.name != after.name {
        remarks.push(format!("these are different experiments: {} and {}", before.name, after.name));
    } else if before.definition != after.definition || before.quick != after.quick {
        remarks.push("the experiment's file, or --quick, is not the same in both".to_owned());
    }
    if before.setup != after.setup {
        remarks.push("machines or cores are not the same in both".to_owned());
    }
    for (group, facts) in &after.environment {
        for (fact, value) in facts {
            let earlier = before.environment.get(group).and_then(|facts| facts.get(fact));
            if ["cpu", "kernel"].contains(&group.as_str()) && earlier.is_some_and(|earlier| earlier != value)
            {
                remarks.push(format!("{group}, {fact}: not the same in both"));
            }
        }
    }
    remarks
}

/// A point's values in its measured rounds, relative to another server's where that is asked for.
fn values(run: &ExperimentRun, point: &Point, quantity: &Quantity, relative_to: Option<&str>) -> Vec<f64> {
    let own = values_by_round(point, quantity);
    let Some(name) = relative_to else { return own.into_iter().flatten().collect() };
    let Some(reference) = counterpart(run, point, name) else { return Vec::new() };
    let reference = values_by_round(reference, quantity);
    own.into_iter().zip(reference).filter_map(|(own, reference)| Some(own? / reference?)).collect()
}

/// The point of the server `name` that a point is to be held against: the same but for variables that mean nothing to it.
fn counterpart<'a>(run: &'a ExperimentRun, point: &Point, name: &str) -> Option<&'a Point> {
    run.points.iter().find(|other| {
        let is_alike = |(variable, value)| point.variables.get(variable) == Some(value);
        other.server == name && other.variables.iter().all(is_alike)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Round;
    use crate::sample::run_of;

    const CALM: [f64; 5] = [0.200, 0.202, 0.199, 0.201, 0.200];

    fn comparison(before: &[f64], after: &[f64]) -> Comparison {
        compare(&run_of(&[("linerate user", before)]), &run_of(&[("linerate user", after)]), None).unwrap()
    }

    #[test]
    fn a_tenth_more_cpu_is_found_in_both_quantities() {
        let comparison = comparison(&CALM, &CALM.map(|cost| 1.1 * cost));
        let verdicts: Vec<String> = comparison.changes.iter().map(Change::verdict).collect();
        assert_eq!(verdicts, ["dearer by 10 % (9–11)", "slower by 9 % (8–10)"]);
        assert_eq!(comparison.worse_than(5.0).count(), 2);
        assert_eq!(comparison.worse_than(15.0).count(), 0);
        let text = comparison.to_string();
        assert!(
            text.starts_with("linerate user, connections 8: dearer by 10 % (9–11): Server CPU per gigabyte 0.200 → 0.220 s/GB\n"),
            "{text}"
        );
    }

    #[test]
    fn the_same_again_is_no_difference() {
        let again = [0.201, 0.199, 0.200, 0.203, 0.200];
        for change in comparison(&CALM, &again).changes {
            assert_eq!(change.outcome, Outcome::NoDifference, "{change}");
        }
        assert_eq!(comparison(&CALM, &again).worse_than(0.0).count(), 0);
    }

    #[test]
    fn better_is_not_worse() {
        let comparison = comparison(&CALM, &CALM.map(|cost| 0.8 * cost));
        assert_eq!(comparison.changes[0].verdict(), "cheaper by 20 % (19–21)");
        assert_eq!(comparison.changes[1].verdict(), "faster by 25 % (24–26)");
        assert_eq!(comparison.worse_than(0.0).count(), 0);
    }

    #[test]
    fn one_round_tells_nothing() {
        assert_eq!(comparison(&[0.2], &[0.4]).changes[0].verdict(), "too few rounds to tell");
    }

    #[test]
    fn relative_to_a_reference_the_machines_state_cancels_out() {
        let run = |factor: f64| {
            let plain = CALM.map(|cost| cost * factor);
            let tls = CALM.map(|cost| 1.5 * cost * factor);
            run_of(&[("nginx plaintext", &plain), ("linerate user", &tls)])
        };
        let absolute = compare(&run(1.0), &run(1.3), None).unwrap();
        assert!(absolute.changes.iter().all(|change| change.outcome == Outcome::Worse));
        let relative = compare(&run(1.0), &run(1.3), Some("nginx plaintext")).unwrap();
        assert_eq!(relative.changes.len(), 2);
        assert!(relative.changes.iter().all(|change| change.outcome == Outcome::NoDifference));
        let error = compare(&run(1.0), &run(1.3), Some("apache")).unwrap_err().to_string();
        assert!(error.ends_with("have no measured point in common relative to apache"), "{error}");
    }

    #[test]
    fn failed_rounds_and_missing_points_are_left_out_and_said() {
        let before = run_of(&[("linerate user", &CALM), ("nginx tls", &CALM)]);
        let mut after = run_of(&[("linerate user", &CALM)]);
        after.points[0].rounds[2] = Round::Failed { reason: "it died".to_owned(), log: Vec::new() };
        after.name = "other".to_owned();
        let comparison = compare(&before, &after, None).unwrap();
        assert_eq!(comparison.changes[0].ratio.rounds, 4);
        let remarks = [
            "these are different experiments: sample and other",
            "nginx tls, connections 8: only in the earlier run",
        ];
        assert_eq!(comparison.remarks, remarks);
        after.points.clear();
        assert!(compare(&before, &after, None).is_err());
    }
}
