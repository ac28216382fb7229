//! What is to be measured in which order, and how long it will take.
//!
//! Points are in groups: all servers at the same values of the variables that plaintext has too, with every value of those
//! that only TLS has. A round goes through the groups; within a group the servers follow each other closely, in an order
//! that rotates from round to round. So rounds of a group can be held against each other, whatever the machine did in
//! between, and a run that is broken off has fewer rounds of all points rather than none of some.

use std::collections::BTreeMap;

use crate::definition::{CacheState, Definition, Workload, is_of_tls};
use crate::result::Variable;

/// What a slice takes beside warm-up and measured time, in seconds: starting the client, settling, reading counters, and what a
/// byte costs without a server.
const SLICE_OVERHEAD_S: f64 = 0.42;

/// Opening a connection and shaking hands, in seconds: so much longer is the warm-up for each.
const CONNECTION_S: f64 = 0.000_3;

/// The same where every connection has to have asked before the round is over, or it is none: with room to spare.
const IDLE_CONNECTION_S: f64 = 0.002;

/// Starting a server, in seconds.
pub(crate) const SERVER_START_S: f64 = 0.4;

/// Dropping the files from the page cache, in seconds.
const DROP_S: f64 = 0.3;

/// A point to be measured.
#[derive(Clone, Debug)]
pub(crate) struct PlannedPoint {
    /// Which of the servers, by its place in the list that the plan was made for.
    pub(crate) server: usize,
    /// Its variables, as the result has them.
    pub(crate) variables: BTreeMap<String, Variable>,
    /// Its load.
    pub(crate) workload: Workload,
}

/// One server at one point in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The round, from 0.
    pub(crate) round: u32,
    /// The point, by its place in [`ExperimentPlan::points`].
    pub(crate) point: usize,
}

/// Everything that is to be measured.
#[derive(Debug)]
pub(crate) struct ExperimentPlan {
    /// In the order of the definition.
    pub(crate) points: Vec<PlannedPoint>,
    /// Places in `points` that follow each other within a round.
    groups: Vec<Vec<usize>>,
    rounds: u32,
    most_rounds: u32,
    warmup_s: f64,
    measured_s: f64,
}

impl ExperimentPlan {
    /// Plans `definition` for servers of which `is_plaintext` tells, in the order in which they are to be in the result.
    /// Servers that cannot do a point are left out by the caller, by [`ExperimentPlan::without`].
    pub(crate) fn new(definition: &Definition, is_plaintext: &[bool]) -> Self {
        let mut points: Vec<PlannedPoint> = Vec::new();
        let mut groups: Vec<(BTreeMap<String, Variable>, Vec<usize>)> = Vec::new();
        for variables in combinations(&definition.sweep, &definition.axis) {
            let common: BTreeMap<_, _> =
                variables.iter().filter(|(name, _)| !is_of_tls(name)).map(clone_pair).collect();
            for (server, plaintext) in is_plaintext.iter().enumerate() {
                let variables = if *plaintext { common.clone() } else { variables.clone() };
                if points.iter().any(|point| point.server == server && point.variables == variables) {
                    continue;
                }
                match groups.iter_mut().find(|(of, _)| *of == common) {
                    Some((_, group)) => group.push(points.len()),
                    None => groups.push((common.clone(), vec![points.len()])),
                }
                let workload = workload(definition, &variables);
                points.push(PlannedPoint { server, variables, workload });
            }
        }
        Self {
            points,
            groups: groups.into_iter().map(|(_, group)| group).collect(),
            rounds: definition.time.rounds,
            most_rounds: definition.time.most_rounds.unwrap_or(definition.time.rounds),
            warmup_s: definition.time.warmup_s,
            measured_s: definition.time.measured_s,
        }
    }

    /// Leaves out the points for which `reason` gives one, and returns these reasons.
    pub(crate) fn without<E>(&mut self, mut reason: impl FnMut(&PlannedPoint) -> Option<E>) -> Vec<E> {
        let reasons: Vec<Option<E>> = self.points.iter().map(&mut reason).collect();
        let mut place = vec![None; self.points.len()];
        let mut kept = 0;
        for (at, reason) in reasons.iter().enumerate() {
            if reason.is_none() {
                place[at] = Some(kept);
                kept += 1;
            }
        }
        for group in &mut self.groups {
            *group = group.iter().filter_map(|at| place[*at]).collect();
        }
        let mut left_out = reasons.iter().map(Option::is_some);
        self.points.retain(|_| !left_out.next().unwrap_or(false));
        reasons.into_iter().flatten().collect()
    }

    /// Every slice, in the order in which they are measured.
    pub(crate) fn slices(&self) -> Vec<Slice> {
        let mut slices = Vec::with_capacity(self.points.len() * self.rounds as usize);
        for round in 0..self.rounds {
            for group in &self.groups {
                slices.extend(Self::round_of(group, round));
            }
        }
        slices
    }

    /// Points that are held against each other: all servers at the same values of what plaintext has, too.
    pub(crate) fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    /// One round of one group, in the order of this round.
    pub(crate) fn round_of(group: &[usize], round: u32) -> impl Iterator<Item = Slice> {
        (0..group.len()).map(move |at| Slice { round, point: group[(at + round as usize) % group.len()] })
    }

    /// How many rounds a point may have, where fewer do not settle what it costs beside plaintext.
    pub(crate) fn most_rounds(&self) -> u32 {
        self.most_rounds
    }

    /// How many rounds each point has at least.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// How long a slice of this point is expected to take, in seconds.
    pub(crate) fn slice_s(&self, point: usize) -> f64 {
        let workload = &self.points[point].workload;
        let mut expected_s = self.warmup_s + self.measured_s + SLICE_OVERHEAD_S;
        expected_s += workload.opening_s();
        if workload.is_fresh() {
            expected_s += SERVER_START_S;
        }
        if workload.cache == CacheState::Cold {
            expected_s += DROP_S;
        }
        expected_s
    }

    /// How long all of `slices` are expected to take, in seconds.
    pub(crate) fn expected_s(&self, slices: &[Slice]) -> f64 {
        slices.iter().map(|slice| self.slice_s(slice.point)).sum()
    }
}

impl Workload {
    /// How long opening its connections may take, in seconds.
    pub(crate) fn opening_s(&self) -> f64 {
        f64::from(self.connections) * if self.idle { IDLE_CONNECTION_S } else { CONNECTION_S }
    }

    /// Whether each round needs a server that was started for it.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh_server || self.cache == CacheState::Cold
    }
}

/// The definition was checked: every value can be set.
fn workload(definition: &Definition, variables: &BTreeMap<String, Variable>) -> Workload {
    let mut workload = Workload::default();
    for (name, value) in definition.fixed.iter().chain(variables) {
        debug_assert_eq!(workload.clone().set(name, value), Ok(()));
        let _ = workload.set(name, value);
    }
    workload
}

/// Every combination of the swept values. The axis varies slowest, so that a group's points are near each other.
pub(crate) fn combinations(
    sweep: &BTreeMap<String, Vec<Variable>>,
    axis: &str,
) -> Vec<BTreeMap<String, Variable>> {
    let mut combinations = vec![BTreeMap::new()];
    let first = sweep.iter().filter(|(name, _)| *name == axis);
    for (name, values) in first.chain(sweep.iter().filter(|(name, _)| *name != axis)) {
        combinations = combinations
            .into_iter()
            .flat_map(|combination| {
                values.iter().map(move |value| {
                    let mut extended = combination.clone();
                    extended.insert(name.clone(), value.clone());
                    extended
                })
            })
            .collect();
    }
    combinations
}

fn clone_pair(pair: (&String, &Variable)) -> (String, Variable) {
    (pair.0.clone(), pair.1.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::catalogue::EXPERIMENTS;

    const TEXT: &str = r#"
name = "two"
title = "Two variables"
axis = "connections"
quantities = ["server_s_per_gb"]
servers = ["nginx plaintext", "nginx tls", "linerate user"]
load.file_bytes = 1000
sweep = { connections = [1, 2], tls = ["1.2", "1.3"] }
time = { warmup_s = 1, measured_s = 2, rounds = 3 }
"#;

    fn plan() -> ExperimentPlan {
        ExperimentPlan::new(&Definition::parse("two", TEXT, false).unwrap(), &[true, false, false])
    }

    #[test]
    fn plaintext_is_measured_once_for_all_that_only_tls_has() {
        let plan = plan();
        assert_eq!(plan.points.len(), 2 * (1 + 2 + 2));
        let plaintext: Vec<_> = plan.points.iter().filter(|point| point.server == 0).collect();
        assert_eq!(plaintext.len(), 2);
        assert!(plaintext.iter().all(|point| !point.variables.contains_key("tls")));
        assert_eq!(plaintext[1].workload.connections, 2);
    }

    #[test]
    fn groups_are_whole_within_a_round_and_rotate() {
        let plan = plan();
        let slices = plan.slices();
        assert_eq!(slices.len(), 30);
        for (round, slices) in slices.chunks(10).enumerate() {
            assert!(slices.iter().all(|slice| slice.round as usize == round));
            let connections = |slice: &Slice| plan.points[slice.point].workload.connections;
            assert!(slices[..5].iter().all(|slice| connections(slice) == 1));
            assert!(slices[5..].iter().all(|slice| connections(slice) == 2));
        }
        let first = |round: usize| slices[round * 10].point;
        assert!(first(0) != first(1) && first(1) != first(2));
        let mut once: Vec<usize> = slices[..10].iter().map(|slice| slice.point).collect();
        once.sort_unstable();
        assert_eq!(once, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_left_out_leaves_the_rest_in_order() {
        let mut plan = plan();
        let reasons = plan.without(|point| (point.server == 1).then_some("no nginx"));
        assert_eq!(reasons.len(), 4);
        assert_eq!(plan.points.len(), 6);
        let slices = plan.slices();
        assert_eq!(slices.len(), 18);
        assert!(slices.iter().all(|slice| plan.points[slice.point].server != 1));
        let all = plan.without(|_| Some(()));
        assert_eq!((all.len(), plan.slices().len()), (6, 0));
    }

    #[test]
    fn the_time_is_that_of_all_slices() {
        let plan = plan();
        let slices = plan.slices();
        let each_s = plan.expected_s(&slices) / 30.0;
        assert!((3.3..3.5).contains(&each_s), "{each_s}");
        assert!(plan.expected_s(&slices[..15]) < plan.expected_s(&slices));
    }

    #[test]
    fn every_quick_run_fits_into_two_minutes() {
        for (name, text) in EXPERIMENTS {
            let quick = Definition::parse(name, text, true).unwrap();
            let is_plaintext: Vec<bool> =
                quick.servers.iter().map(|server| server.ends_with("plaintext")).collect();
            let plan = ExperimentPlan::new(&quick, &is_plaintext);
            // Files of 2 GB at 500 MB/s at the first time, starting and verifying every server.
            let before_s = 4.0 + 1.5 * quick.servers.len() as f64;
            let expected_s = before_s + plan.expected_s(&plan.slices());
            assert!(expected_s < 115.0, "{name}: {expected_s} s");
        }
    }
}
