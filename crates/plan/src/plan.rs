//! The plan: every engine at every rate of the adapter, and for `auto` which engine carried which part, and why.

use linerate_placement::{Engine, Reason};
use serde::Serialize;

use crate::capacity::{Part, Prediction};
use crate::cost::Costing;
use crate::simulation::{Counts, Simulation};
use crate::{Constants, Machine, Sender, Workload};

/// Rates of adapters that are looked at unless told otherwise.
pub const NIC_GBIT: [f64; 7] = [10.0, 25.0, 50.0, 100.0, 200.0, 400.0, 800.0];

/// A reason of placement, and how often it was given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReasonShare {
    /// Its label, as metrics and logs have it.
    pub reason: &'static str,
    /// The part of responses that had it.
    pub share: f64,
    /// One of them, in words.
    pub example: String,
}

/// What `auto` did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placement {
    /// The part of the bytes that the user engine carried.
    pub user_bytes: f64,
    /// The kernel.
    pub kernel_bytes: f64,
    /// The adapter.
    pub nic_bytes: f64,
    /// Connections that were given to the adapter, a second.
    pub nic_set_ups_per_s: f64,
    /// The most flows that the adapter had at once.
    pub nic_most_flows: f64,
    /// Why, the most frequent first; the shares add up to one.
    pub reasons: Vec<ReasonShare>,
}

/// One engine at one rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The engine.
    pub engine: Sender,
    /// All ports of the adapter.
    pub nic_gbit: f64,
    /// What the machine does.
    #[serde(flatten)]
    pub prediction: Prediction,
    /// What the engine's name does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// For `auto`: which engine carried which part, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
}

/// Steps from a steady state to placement's decisions in it and back. They settle after two or three.
const ROUNDS: usize = 4;

/// All engines at all rates. Engines that the machine cannot have are left out: `nic` without an adapter that encrypts.
#[must_use]
pub fn plan(machine: &Machine, workload: &Workload, nic_gbit: &[f64], seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for &nic_gbit in nic_gbit {
        let machine = Machine { nic_gbit, ..machine.clone() };
        let costing = Costing { machine: &machine, workload, constants: &Constants::PRESENT };
        for engine in Sender::ALL {
            match engine {
                Sender::Nic if !machine.nic_encrypts() => {}
                Sender::Auto => rows.push(auto(costing, seed)),
                _ => {
                    let (prediction, note) = costing.predict_fixed(engine);
                    rows.push(Row { engine, nic_gbit, prediction, note, placement: None });
                }
            }
        }
    }
    rows
}

/// What placement makes of it: its decisions depend on how busy the machine is, and that on its decisions.
fn auto(costing: Costing<'_>, seed: u64) -> Row {
    let mut prediction = costing.predict(&[Part::whole(Sender::User)]);
    let mut counts = Simulation::new(costing, &prediction, seed).run();
    for _ in 1..ROUNDS {
        prediction = costing.predict(&parts(&counts));
        counts = Simulation::new(costing, &prediction, seed).run();
    }
    let prediction = costing.predict(&parts(&counts));
    let placement = placement(&counts, costing, &prediction);
    Row {
        engine: Sender::Auto,
        nic_gbit: costing.machine.nic_gbit,
        prediction,
        note: None,
        placement: Some(placement),
    }
}

fn parts(counts: &Counts) -> Vec<Part> {
    let bytes: f64 = counts.bytes.iter().sum::<f64>().max(1.0);
    let connections = counts.connections.max(1.0);
    let of = |engine: Engine| Part {
        sender: engine.into(),
        bytes: counts.bytes[engine as usize] / bytes,
        moved: (counts.moved[engine as usize] / connections).min(1.0),
        worker_waits: false,
    };
    Engine::ALL.map(of).into_iter().collect()
}

fn placement(counts: &Counts, costing: Costing<'_>, prediction: &Prediction) -> Placement {
    let parts = parts(counts);
    let bytes = |engine: Engine| parts[engine as usize].bytes;
    let responses: u64 = counts.reasons.iter().sum::<u64>().max(1);
    let mut reasons: Vec<ReasonShare> = counts
        .reasons
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(index, &count)| ReasonShare {
            reason: Reason::LABELS[index],
            share: count as f64 / responses as f64,
            example: counts.examples[index].clone().unwrap_or_default(),
        })
        .collect();
    reasons.sort_by(|one, other| other.share.total_cmp(&one.share));
    let connections_per_s = prediction.responses_per_s / costing.workload.requests_per_connection as f64;
    Placement {
        user_bytes: bytes(Engine::User),
        kernel_bytes: bytes(Engine::Kernel),
        nic_bytes: bytes(Engine::Nic),
        nic_set_ups_per_s: connections_per_s * parts[Engine::Nic as usize].moved,
        nic_most_flows: counts.most_flows,
        reasons,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    fn rows(machine: &str, workload: &str, nic_gbit: &[f64]) -> Vec<Row> {
        plan(&presets::machine(machine).unwrap(), &presets::workload(workload).unwrap(), nic_gbit, 1)
    }

    fn row(rows: &[Row], engine: Sender) -> &Row {
        rows.iter().find(|row| row.engine == engine).unwrap()
    }

    #[test]
    fn reasons_and_bytes_add_up() {
        for row in rows("media-server", "mirror", &[100.0, 800.0]) {
            let Some(placement) = row.placement else { continue };
            let shares: f64 = placement.reasons.iter().map(|reason| reason.share).sum();
            assert!((shares - 1.0).abs() < 1e-9);
            let bytes = placement.user_bytes + placement.kernel_bytes + placement.nic_bytes;
            assert!((bytes - 1.0).abs() < 1e-9);
        }
    }

    /// The thread's story: the adapter for everything is a disaster with small files, and `auto` does not take part.
    #[test]
    fn auto_is_no_worse_than_the_best_where_a_fixed_choice_is_a_disaster() {
        let rows = rows("connectx6-thread", "thread-10kb", &[50.0]);
        let (user, nic, auto) = (row(&rows, Sender::User), row(&rows, Sender::Nic), row(&rows, Sender::Auto));
        assert!(auto.prediction.gbit_s > 20.0 * nic.prediction.gbit_s);
        assert!((auto.prediction.gbit_s / user.prediction.gbit_s - 1.0).abs() < 1e-6);
    }

    /// `auto` beside the best fixed engine, wherever presets meet: never 5 % slower, and where it is no faster, never 5 %
    /// dearer than the cheapest of the fastest.
    #[test]
    fn auto_is_near_the_best_everywhere() {
        for (machine, _) in presets::MACHINES {
            for (workload, _) in presets::WORKLOADS {
                let rows = rows(machine, workload, &[100.0]);
                let fixed: Vec<&Prediction> = rows
                    .iter()
                    .filter(|row| matches!(row.engine, Sender::User | Sender::Kernel | Sender::Nic))
                    .map(|row| &row.prediction)
                    .collect();
                let auto = &row(&rows, Sender::Auto).prediction;
                let best = fixed.iter().map(|found| found.gbit_s).fold(0.0, f64::max);
                let words = format!("{machine} {workload}: auto {auto:?}, best {best:.2} Gb/s");
                assert!(auto.gbit_s >= 0.95 * best, "{words}");
                let fastest = fixed.iter().filter(|found| found.gbit_s >= 0.99 * best);
                let cheapest = fastest.map(|found| found.cpu_s_per_gb).fold(f64::INFINITY, f64::min);
                if auto.gbit_s <= 1.01 * best {
                    assert!(auto.cpu_s_per_gb <= 1.05 * cheapest, "{words}, {cheapest} s/GB");
                }
            }
        }
    }

    #[test]
    fn without_an_adapter_that_encrypts_there_is_no_such_row() {
        let rows = rows("homelab", "web", &NIC_GBIT);
        assert!(rows.iter().all(|row| row.engine != Sender::Nic));
        assert_eq!(rows.len(), NIC_GBIT.len() * 5);
    }
}
