//! The rounds of a work: every entry once a round, in an order that rotates, until the ratios have settled.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use serde::Serialize;

use super::slices::{Bench, Plan, Slice, Target};
use super::statistics::Summary;
use super::works::{Comparison, Unit, Work};

/// A ratio has settled when its median's confidence interval is narrower than this share of the median.
pub(crate) const SETTLED_SPREAD: f64 = 0.05;

/// Everything measured for a work.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Measured {
    /// What was measured.
    pub(crate) work: Work,
    /// The entries' names, as the report has them.
    pub(crate) labels: Vec<String>,
    /// The slices of each entry, by round.
    pub(crate) slices: Vec<Vec<Slice>>,
    /// The comparisons' ratios.
    pub(crate) ratios: Vec<Ratio>,
}

/// A comparison summed up over the rounds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ratio {
    /// What is compared.
    pub(crate) comparison: Comparison,
    /// By the serving processes' CPU time: the result.
    pub(crate) by_process: Summary,
    /// By the server core's busy time: includes soft interrupts that no process is charged with.
    pub(crate) by_core: Summary,
}

/// How many rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// At least.
    pub(crate) fewest: usize,
    /// At most.
    pub(crate) most: usize,
}

/// Measures `work`, whose entries are at `targets`.
pub(crate) fn measure(
    bench: &Bench<'_>,
    work: &Work,
    targets: &[Target<'_>],
    labels: Vec<String>,
    limits: Limits,
    interrupted: &AtomicBool,
) -> Result<Measured> {
    let mut plans: Vec<Plan> = Vec::new();
    for (entry, &target) in work.entries.iter().zip(targets) {
        stop_if(interrupted)?;
        let plan = bench.plan(target, entry.load, plans.first())?;
        plans.push(plan);
    }
    let count = work.entries.len();
    let mut slices: Vec<Vec<Slice>> = vec![Vec::new(); count];
    for round in 0..limits.most {
        for position in 0..count {
            stop_if(interrupted)?;
            let at = (position + round) % count;
            slices[at].push(bench.slice(targets[at], &plans[at], round)?);
        }
        let ratios = ratios(work, &slices);
        eprintln!("  round {}: {}", round + 1, progress(&ratios));
        if round + 1 >= limits.fewest && settled(&ratios) {
            break;
        }
    }
    let ratios = ratios(work, &slices);
    Ok(Measured { work: work.clone(), labels, slices, ratios })
}

fn stop_if(interrupted: &AtomicBool) -> Result<()> {
    if interrupted.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}

fn ratios(work: &Work, slices: &[Vec<Slice>]) -> Vec<Ratio> {
    let ratio = |comparison: &Comparison| {
        let paired = |cost: fn(&Slice, Unit) -> f64| {
            let pairs = slices[comparison.ours].iter().zip(&slices[comparison.against]);
            let by_round: Vec<f64> =
                pairs.map(|(ours, against)| cost(ours, work.unit) / cost(against, work.unit)).collect();
            Summary::of(&by_round)
        };
        let (by_process, by_core) = (paired(Slice::cost_s)?, paired(Slice::core_cost_s)?);
        Some(Ratio { comparison: *comparison, by_process, by_core })
    };
    work.comparisons.iter().filter_map(ratio).collect()
}

/// Ratios with a target decide; without any, all of them do.
fn settled(ratios: &[Ratio]) -> bool {
    let with_target = ratios.iter().any(|ratio| ratio.comparison.target.is_some());
    ratios
        .iter()
        .filter(|ratio| !with_target || ratio.comparison.target.is_some())
        .all(|ratio| ratio.by_process.spread() < SETTLED_SPREAD)
}

fn progress(ratios: &[Ratio]) -> String {
    let ratios: Vec<String> = ratios
        .iter()
        .map(|ratio| format!("{:.3} ±{:.1} %", ratio.by_process.median, ratio.by_process.spread() * 50.0))
        .collect();
    if ratios.is_empty() { "nothing to compare with".to_string() } else { ratios.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::accounting::Usage;
    use crate::peers::works;

    fn slice(round: usize, server_cpu_s: f64, body_bytes: u64) -> Slice {
        let usage = Usage {
            wall_s: 1.0,
            server_cpu_s,
            server_core_busy_s: server_cpu_s * 2.0,
            server_core_busy: 1.0,
            client_core_busy: 0.5,
            client_cpu_s: 0.5,
            steal: 0.0,
        };
        Slice { round, requests: 1, body_bytes, received_bytes: 0, usage, client_limited: false }
    }

    fn slow_of_linerate() -> Work {
        let works = works::all(10_000, 65_536);
        let slow = works.iter().find(|work| work.name == "slow").unwrap();
        slow.restricted_to(|role| role == works::Role::Linerate).unwrap()
    }

    #[test]
    fn ratios_are_paired_by_round_and_per_byte() {
        // The machine is twice as slow in the second round: the ratio does not notice.
        let slices = [
            vec![slice(0, 0.3, 1_000_000_000), slice(1, 0.6, 1_000_000_000)],
            vec![slice(0, 0.4, 2_000_000_000), slice(1, 0.8, 2_000_000_000)],
        ];
        let ratios = ratios(&slow_of_linerate(), &slices);
        assert_eq!(ratios.len(), 1);
        assert!((ratios[0].by_process.median - 1.5).abs() < 1e-9);
        assert!(ratios[0].by_process.spread() < 1e-9);
        assert!((ratios[0].by_core.median - 1.5).abs() < 1e-9);
        assert!(settled(&ratios));
    }

    #[test]
    fn a_wide_ratio_is_not_settled() {
        let slices = [
            vec![slice(0, 0.3, 1_000), slice(1, 0.4, 1_000)],
            vec![slice(0, 0.3, 1_000), slice(1, 0.3, 1_000)],
        ];
        assert!(!settled(&ratios(&slow_of_linerate(), &slices)));
    }
}
