//! What servers were to come to, held against what was measured.

use std::collections::BTreeMap;

use crate::floor::{self, FLOOR};
use crate::quantity::{self, values_by_round};
use crate::result::{ExperimentRun, Point, Target, Variable};
use crate::statistics::{Ratio, Summary};

/// A target at one point.
#[derive(Debug)]
pub(crate) struct Judged<'run> {
    /// What was asked for.
    pub(crate) target: &'run Target,
    /// Where: the server's point, by its place in the run.
    pub(crate) point: usize,
    /// What it is divided by.
    pub(crate) beside: Option<Beside>,
    /// What was found; nothing where a side has no round.
    pub(crate) found: Option<Found>,
}

/// What a cost is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Another point, by its place in the run.
    Point(usize),
    /// The floor at the same point.
    Floor,
}

/// What is held against a target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// The cost beside another's, paired by round.
    Ratio(Ratio),
    /// A figure by itself.
    Figure(Summary),
}

impl Found {
    /// The ratio, or the median.
    pub(crate) fn value(&self) -> f64 {
        match self {
            Self::Ratio(ratio) => ratio.ratio,
            Self::Figure(summary) => summary.median,
        }
    }

    /// Whether the rounds suffice to quote it as one figure.
    pub(crate) fn is_settled(&self) -> bool {
        match self {
            Self::Ratio(ratio) => ratio.is_settled(),
            Self::Figure(summary) => summary.is_settled(),
        }
    }
}

/// Every target at every point that it is about, as far as both of its servers took part.
pub(crate) fn judged(run: &ExperimentRun) -> Vec<Judged<'_>> {
    let at = |target: &'_ Target, place: usize| -> Option<Option<Beside>> {
        let point = &run.points[place];
        let matches = |(name, value): (&String, &Variable)| point.variables.get(name) == Some(value);
        if point.server != target.server || !target.at.iter().all(matches) {
            return None;
        }
        let Some(beside) = &target.beside else { return Some(None) };
        if beside == FLOOR {
            return floor::at(run, &point.variables).map(|_| Some(Beside::Floor));
        }
        let is_wanted = |wanted: &String| version_of(run, beside).contains(wanted.as_str());
        if !target.beside_version.as_ref().is_none_or(is_wanted) {
            return None;
        }
        partner(run, point, beside, &target.beside_at).map(|partner| Some(Beside::Point(partner)))
    };
    let mut all = Vec::new();
    for target in &run.targets {
        let found = (0..run.points.len()).filter_map(|point| Some((point, at(target, point)?)));
        all.extend(found.map(|(point, beside)| Judged {
            target,
            point,
            beside,
            found: found_at(run, target, point, beside),
        }));
    }
    all
}

/// The point of `server` with the values of `point`, but for those in `differing`. Variables that mean nothing to `server`
/// do not count.
fn partner(
    run: &ExperimentRun,
    point: &Point,
    server: &str,
    differing: &BTreeMap<String, Variable>,
) -> Option<usize> {
    let fits = |other: &Point| {
        other.server == server
            && other
                .variables
                .iter()
                .all(|(name, value)| differing.get(name).or(point.variables.get(name)) == Some(value))
    };
    run.points.iter().position(fits)
}

fn version_of<'run>(run: &'run ExperimentRun, server: &str) -> &'run str {
    run.servers.iter().find(|used| used.name == server).map_or("", |used| used.version.as_str())
}

fn found_at(run: &ExperimentRun, target: &Target, place: usize, beside: Option<Beside>) -> Option<Found> {
    let named = target.quantity.as_ref().and_then(|name| quantity::named(name));
    let quantity = named.unwrap_or_else(|| quantity::price(&run.quantities));
    let values = |place: usize| values_by_round(&run.points[place], &quantity);
    match beside {
        Some(Beside::Point(beside)) => Ratio::paired(&values(place), &values(beside)).map(Found::Ratio),
        Some(Beside::Floor) => {
            let floor = floor::at(run, &run.points[place].variables)?;
            Ratio::paired(&values(place), &floor.values_by_round(&quantity)).map(Found::Ratio)
        }
        None => {
            // Targets are in the unit of the field, tables in that of the reader.
            let scaled: Vec<f64> =
                values(place).into_iter().flatten().map(|value| value / quantity.scale).collect();
            Summary::of(&scaled).map(Found::Figure)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{FloorPoint, FloorRound, Reading};
    use crate::sample::{run_of, target};

    fn connections(number: f64) -> BTreeMap<String, Variable> {
        BTreeMap::from([("connections".to_owned(), Variable::Number(number))])
    }

    fn run_with(target: Target) -> ExperimentRun {
        let mut run = run_of(&[("nginx tls", &[0.4, 0.8, 0.4]), ("linerate user", &[0.2, 0.4, 0.2])]);
        run.targets.push(target);
        run
    }

    #[test]
    fn ratios_are_paired_by_round() {
        // The machine is twice as slow in the second round: the ratio does not notice.
        let run = run_with(target(0.55));
        let judged = judged(&run);
        let [only] = &judged[..] else { panic!("{judged:?}") };
        assert_eq!((only.point, only.beside), (1, Some(Beside::Point(0))));
        assert!((only.found.unwrap().value() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_target_is_for_its_points_servers_and_versions_alone() {
        assert!(judged(&run_with(Target { at: connections(9.0), ..target(1.0) })).is_empty());
        assert_eq!(judged(&run_with(Target { at: connections(8.0), ..target(1.0) })).len(), 1);
        let of = |version: &str| Target { beside_version: Some(version.to_owned()), ..target(1.0) };
        assert_eq!(judged(&run_with(of("1.0"))).len(), 1);
        assert!(judged(&run_with(of("OpenSSL 3.5"))).is_empty());
        let other = Target { beside: Some("nginx-13 tls".to_owned()), ..target(1.0) };
        assert!(judged(&run_with(other)).is_empty());
    }

    #[test]
    fn a_server_can_be_held_against_itself_elsewhere() {
        let mut run = run_of(&[("linerate user", &[0.2, 0.2])]);
        let mut many = run.points[0].clone();
        many.variables = connections(10_000.0);
        run.points.push(many);
        run.targets.push(Target {
            at: connections(10_000.0),
            beside: Some("linerate user".to_owned()),
            beside_at: connections(8.0),
            ..target(1.3)
        });
        let judged = judged(&run);
        assert_eq!(judged.len(), 1);
        assert_eq!((judged[0].point, judged[0].beside), (1, Some(Beside::Point(0))));
        assert!((judged[0].found.unwrap().value() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_floor_is_what_it_was_in_the_same_round() {
        let beside_floor = || Target { beside: Some(FLOOR.to_owned()), ..target(1.08) };
        let mut run = run_with(beside_floor());
        assert!(judged(&run).is_empty(), "without a floor nothing is asked for");
        let round = |s_per_gb: f64| {
            Some(FloorRound {
                seal_s_per_gb: 0.0,
                copy_s_per_gb: 0.0,
                plaintext_s_per_gb: s_per_gb,
                s_per_gb,
                us_per_response: Reading::default(),
            })
        };
        // The machine is twice as slow in the second round, and the third has no floor.
        run.floor = Reading::Value(vec![FloorPoint {
            variables: connections(8.0),
            plaintext: "linerate plaintext".to_owned(),
            rounds: vec![round(0.16), round(0.32), None],
        }]);
        let judged = judged(&run);
        let [only] = &judged[..] else { panic!("{judged:?}") };
        assert_eq!((only.point, only.beside), (1, Some(Beside::Floor)));
        assert!((only.found.unwrap().value() - 1.25).abs() < 1e-9);
    }

    #[test]
    fn a_figure_by_itself_is_in_the_fields_unit() {
        let bytes = Target {
            beside: None,
            quantity: Some("server_resident_bytes".to_owned()),
            ..target(2_000_000.0)
        };
        let run = run_with(bytes);
        let found = judged(&run)[0].found.unwrap();
        assert!((found.value() - f64::from(1 << 20)).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        let mut run = run_with(target(1.0));
        run.points[0].rounds.clear();
        assert!(judged(&run)[0].found.is_none());
    }
}
