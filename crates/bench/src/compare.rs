//! Two runs of the same experiment, point by point: what has become dearer or slower, cheaper or faster, and what has not.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};
use crate::quantity::{self, APPLICATION, CPU_PER_GB, Quantity, values_by_round};
use crate::report::number;
use crate::result::{ExperimentRun, Point, Round, Variable};
use crate::statistics::{Ratio, Summary, Verdict};

/// All points that both runs have measured.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// One for each measure and point: measure by measure, points in the order of the later run.
    pub changes: Vec<Change>,
    /// Points that only one of the runs has, and what else to keep in mind.
    pub remarks: Vec<String>,
}

/// What is compared: a quantity, or its ratio to another server's in the same round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The field of the measurement: "server_s_per_gb".
    pub quantity: &'static str,
    /// The server that each round was divided by.
    pub relative_to: Option<String>,
}

/// One measure at one point, in both runs.
#[derive(Clone, Debug)]
pub struct Change {
    /// What is compared.
    pub measure: Measure,
    /// The server.
    pub server: String,
    /// The point.
    pub variables: BTreeMap<String, Variable>,
    /// The rounds of the earlier run.
    pub before: Summary,
    /// The rounds of the later run.
    pub after: Summary,
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

/// Compares `after` with `before`: the price of TLS as a multiple of plaintext, where a server speaks it, and every
/// quantity that the experiment is about. With `relative_to`, each round of each quantity counts relative to that
/// server's in the same round: what the machine did differently on both days then cancels out.
///
/// # Errors
/// Where the runs have nothing in common, or there is no such server.
pub fn compare(
    before: &ExperimentRun,
    after: &ExperimentRun,
    relative_to: Option<&str>,
) -> Result<Comparison> {
    let changes: Vec<Change> = measures(after, relative_to)
        .iter()
        .flat_map(|(quantity, relative_to)| changes(before, after, quantity, *relative_to))
        .collect();
    if changes.is_empty() {
        let with = relative_to.map(|name| format!(" relative to {name}")).unwrap_or_default();
        return Err(Error::Asked(format!(
            "the runs ({} and {}) have no measured point in common{with}",
            before.name, after.name
        )));
    }
    Ok(Comparison { changes, remarks: remarks(before, after) })
}

fn measures<'a>(run: &'a ExperimentRun, relative_to: Option<&'a str>) -> Vec<(Quantity, Option<&'a str>)> {
    let named: Vec<Quantity> = run.quantities.iter().filter_map(|key| quantity::named(key)).collect();
    let named = if named.is_empty() { vec![CPU_PER_GB, APPLICATION] } else { named };
    let price = quantity::price(&run.quantities);
    let plaintext = plaintext(run);
    let mut measures: Vec<(Quantity, Option<&str>)> =
        named.into_iter().map(|quantity| (quantity, relative_to)).collect();
    if let (Some(plaintext), None) = (plaintext, relative_to) {
        measures.insert(0, (price, Some(plaintext)));
    }
    measures
}

/// The server that others are held against: the first that speaks plaintext.
fn plaintext(run: &ExperimentRun) -> Option<&str> {
    run.servers.iter().find(|server| server.plaintext).map(|server| server.name.as_str())
}

/// One quantity at all points that both runs have measured.
fn changes(
    before: &ExperimentRun,
    after: &ExperimentRun,
    quantity: &Quantity,
    relative_to: Option<&str>,
) -> Vec<Change> {
    let change = |point: &Point| {
        if relative_to == Some(point.server.as_str()) {
            return None;
        }
        let earlier = before.points.iter().find(|earlier| is_same(earlier, point))?;
        let values = |run, point| values(run, point, quantity, relative_to);
        let measure = Measure { quantity: quantity.key, relative_to: relative_to.map(str::to_owned) };
        Change::of(measure, point, quantity, &values(before, earlier), &values(after, point))
    };
    after.points.iter().filter_map(change).collect()
}

impl Comparison {
    /// Whatever has become worse by more than `percent`.
    pub fn worse_than(&self, percent: f64) -> impl Iterator<Item = &Change> {
        self.changes
            .iter()
            .filter(move |change| change.outcome == Outcome::Worse && change.percent() > percent)
    }
}

impl Measure {
    /// "Server CPU per gigabyte in s/GB", "Throughput, as a multiple of nginx plaintext".
    #[must_use]
    pub fn title(&self) -> String {
        let (title, unit) = quantity::named(self.quantity)
            .map_or((self.quantity, ""), |quantity| (quantity.title, quantity.unit));
        match &self.relative_to {
            Some(server) => format!("{title}, as a multiple of {server}"),
            None => format!("{title} in {unit}"),
        }
    }
}

impl Change {
    fn of(
        measure: Measure,
        point: &Point,
        quantity: &Quantity,
        before: &[f64],
        after: &[f64],
    ) -> Option<Self> {
        let ratio = Ratio::unpaired(after, before)?;
        let outcome = match ratio.verdict() {
            Verdict::TooFewRounds => Outcome::TooFewRounds,
            Verdict::NoDifference => Outcome::NoDifference,
            verdict if (verdict == Verdict::More) == quantity.more_is_better => Outcome::Better,
            _ => Outcome::Worse,
        };
        Some(Self {
            measure,
            server: point.server.clone(),
            variables: point.variables.clone(),
            before: Summary::of(before)?,
            after: Summary::of(after)?,
            ratio,
            outcome,
        })
    }

    /// The point in words: "nginx tls, connections 10, tls 1.3".
    #[must_use]
    pub fn name(&self) -> String {
        name_of(&self.server, &self.variables)
    }

    /// By how much it differs, in percent, without a sign.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * (self.ratio.ratio - 1.0).abs()
    }

    /// "dearer by 10 % (8–12)", "no difference".
    #[must_use]
    pub fn verdict(&self) -> String {
        let is_bandwidth =
            quantity::named(self.measure.quantity).is_some_and(|quantity| quantity.more_is_better);
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
        let (before, after) = (number::short(self.before.median), number::short(self.after.median));
        let (name, verdict, title) = (self.name(), self.verdict(), self.measure.title());
        write!(formatter, "{name}: {verdict}: {title}: {before} → {after}")
    }
}

/// "nginx tls, connections 10, tls 1.3".
pub(crate) fn name_of(server: &str, variables: &BTreeMap<String, Variable>) -> String {
    variables.iter().fold(server.to_owned(), |name, (variable, value)| format!("{name}, {variable} {value}"))
}

fn is_same(one: &Point, other: &Point) -> bool {
    one.server == other.server && one.variables == other.variables
}

/// How far the multiples of plaintext are apart that both runs quote as one figure.
fn agreement(before: &ExperimentRun, after: &ExperimentRun) -> Option<String> {
    let server = plaintext(after)?;
    let quantity = quantity::price(&after.quantities);
    let quoted = |run: &ExperimentRun, point: &Point| {
        let reference = values_by_round(counterpart(run, point, server)?, &quantity);
        Ratio::paired(&values_by_round(point, &quantity), &reference).filter(Ratio::is_settled)
    };
    let apart: Vec<f64> = after
        .points
        .iter()
        .filter(|point| point.server != server)
        .filter_map(|point| {
            let earlier = before.points.iter().find(|earlier| is_same(earlier, point))?;
            let (before, after) = (quoted(before, earlier)?.ratio, quoted(after, point)?.ratio);
            Some(100.0 * (after / before - 1.0).abs())
        })
        .collect();
    let most = apart.iter().copied().fold(0.0, f64::max);
    let count = number::plural(apart.len(), "multiple");
    (!apart.is_empty())
        .then(|| format!("both runs quote {count} of {server} as one figure, at most {most:.1} % apart"))
}

fn is_measured(point: &Point) -> bool {
    point.rounds.iter().any(|round| matches!(round, Round::Measured(_)))
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
    let alone = |run: &ExperimentRun, other: &ExperimentRun, which: &str| {
        let is_there =
            |point: &&Point| other.points.iter().any(|other| is_same(other, point) && is_measured(other));
        let alone = run.points.iter().filter(|point| is_measured(point) && !is_there(point));
        alone
            .map(|point| format!("{}: only in the {which} run", name_of(&point.server, &point.variables)))
            .collect::<Vec<_>>()
    };
    remarks.extend(agreement(before, after));
    remarks.extend(alone(after, before, "later"));
    remarks.extend(alone(before, after, "earlier"));
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
pub(crate) fn counterpart<'a>(run: &'a ExperimentRun, point: &Point, name: &str) -> Option<&'a Point> {
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
            text.starts_with(
                "linerate user, connections 8: dearer by 10 % (9–11): Server CPU per gigabyte in s/GB: 0.200 → 0.220\n"
            ),
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
        let (price, absolute): (Vec<Change>, Vec<Change>) =
            absolute.changes.into_iter().partition(|change| change.measure.relative_to.is_some());
        assert_eq!((price.len(), absolute.len()), (1, 4));
        assert!(absolute.iter().all(|change| change.outcome == Outcome::Worse));
        assert_eq!(price[0].measure.title(), "Server CPU per gigabyte, as a multiple of nginx plaintext");
        assert_eq!(price[0].outcome, Outcome::NoDifference, "{}", price[0]);
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
