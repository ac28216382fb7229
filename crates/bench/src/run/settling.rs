//! Whether enough rounds were measured to quote what servers cost beside plaintext, and which are to be added.
//!
//! Rounds are added until the interval of each ratio is narrow enough ([`Ratio::is_settled`]). Stopping just then favours
//! stretches in which the rounds happened to agree; that two runs quote the same was tested with it all the same.

use crate::plan::{ExperimentPlan, Slice};
use crate::quantity::{self, values_by_round};
use crate::result::{ExperimentRun, Point};
use crate::statistics::Ratio;
use crate::targets::{self, Beside, Found, Judged};

/// The slices of one more round of `group`; nothing where it is settled, cannot be, or has had its most rounds.
pub(super) fn next_round(run: &ExperimentRun, plan: &ExperimentPlan, group: &[usize]) -> Option<Vec<Slice>> {
    let rounds = |point: usize| run.points[point].rounds.len();
    let round = group.iter().map(|point| rounds(*point)).min()?;
    let is_whole = group.iter().all(|point| rounds(*point) == round);
    if round >= plan.most_rounds() as usize || (is_whole && is_settled(run, group)) {
        return None;
    }
    // Of a round that was broken off only the rest.
    let slices = ExperimentPlan::round_of(group, u32::try_from(round).ok()?);
    Some(slices.filter(|slice| rounds(slice.point) == round).collect())
}

/// Whether everything that decides may be quoted: what has a target, or else every ratio to plaintext. Where nobody speaks
/// plaintext, or nothing was measured, there is none.
fn is_settled(run: &ExperimentRun, group: &[usize]) -> bool {
    let is_here = |judged: &Judged<'_>| {
        let is_beside = |beside| matches!(beside, Beside::Point(point) if group.contains(&point));
        group.contains(&judged.point) || judged.beside.is_some_and(is_beside)
    };
    let decisive: Vec<Found> = targets::judged(run)
        .iter()
        .filter(|judged| is_here(judged))
        .filter_map(|judged| judged.found)
        .collect();
    if !decisive.is_empty() {
        return decisive.iter().all(Found::is_settled);
    }
    let quantity = quantity::price(&run.quantities);
    let points = || group.iter().map(|point| &run.points[*point]);
    let is_plaintext =
        |point: &&Point| run.servers.iter().any(|server| server.plaintext && server.name == point.server);
    let Some(plaintext) = points().find(is_plaintext) else { return true };
    let reference = values_by_round(plaintext, &quantity);
    points()
        .filter(|point| point.server != plaintext.server)
        .filter_map(|point| Ratio::paired(&values_by_round(point, &quantity), &reference))
        .all(|ratio| ratio.is_settled())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::definition::Definition;
    use crate::result::Target;
    use crate::sample::run_of;

    const TEXT: &str = r#"
name = "two"
title = "Two servers"
axis = "connections"
quantities = ["server_s_per_gb"]
servers = ["nginx plaintext", "linerate user"]
sweep.connections = [8]
time = { warmup_s = 1, measured_s = 2, rounds = 5, most_rounds = 7 }
"#;

    fn next(plaintext: &[f64], tls: &[f64]) -> Option<Vec<(u32, usize)>> {
        let plan = ExperimentPlan::new(&Definition::parse("two", TEXT, false).unwrap(), &[true, false]);
        let run = run_of(&[("nginx plaintext", plaintext), ("linerate user", tls)]);
        let slices = next_round(&run, &plan, &plan.groups()[0])?;
        Some(slices.iter().map(|slice| (slice.round, slice.point)).collect())
    }

    #[test]
    fn rounds_are_added_until_they_agree_or_were_enough() {
        let calm = [0.2; 7];
        let restless = [0.30, 0.31, 0.29, 0.30, 0.33, 0.30, 0.30];
        // In the order of that round, so that neither server is always the first.
        assert_eq!(next(&calm[..5], &restless[..5]), Some(vec![(5, 1), (5, 0)]));
        assert_eq!(next(&calm[..5], &[0.3; 5]), None);
        assert_eq!(next(&calm, &restless), None, "more than the most");
        assert_eq!(next(&calm[..4], &[0.3; 4]), Some(vec![(4, 0), (4, 1)]), "four rounds decide nothing");
    }

    #[test]
    fn a_round_that_was_broken_off_is_finished_first() {
        assert_eq!(next(&[0.2; 6], &[0.3; 5]), Some(vec![(5, 1)]));
    }

    #[test]
    fn what_has_a_target_decides_alone() {
        let plan = ExperimentPlan::new(&Definition::parse("two", TEXT, false).unwrap(), &[true, false]);
        let restless = [0.30, 0.40, 0.20, 0.30, 0.30];
        let mut run =
            run_of(&[("nginx plaintext", &[0.2; 5]), ("linerate user", &restless), ("nginx tls", &[0.5; 5])]);
        let target = |server: &str| Target {
            server: server.to_owned(),
            at: BTreeMap::new(),
            quantity: None,
            beside: Some("nginx plaintext".to_owned()),
            beside_at: BTreeMap::new(),
            beside_version: None,
            most: 3.0,
        };
        run.targets = vec![target("nginx tls")];
        assert!(next_round(&run, &plan, &[0, 1, 2]).is_none());
        run.targets = vec![target("nginx tls"), target("linerate user")];
        assert!(next_round(&run, &plan, &[0, 1, 2]).is_some());
    }

    #[test]
    fn without_plaintext_there_is_nothing_to_settle() {
        let plan = ExperimentPlan::new(&Definition::parse("two", TEXT, false).unwrap(), &[false, false]);
        let run = run_of(&[("nginx tls", &[0.2; 5]), ("linerate user", &[0.30, 0.40, 0.20, 0.30, 0.30])]);
        assert!(next_round(&run, &plan, &plan.groups()[0]).is_none());
    }
}
