//! What limits a run's figures, said before anybody quotes them.

use std::collections::BTreeMap;

use crate::quantity::CPU_PER_GB;
use crate::report::{
    number,
    panel::{self, Cell, Panel, Sweep},
};
use crate::result::Reading;

/// Rounds that differ by more than this share among themselves deserve a word.
const RESTLESS: f64 = 0.2;
/// The share of CPU that a hypervisor may take without a word.
const STEAL: f64 = 0.01;
/// The share of the servers' cores that may be nobody's, and of the client's: interrupts that wake an idle core are charged
/// to nobody, 15 to 20 % where large files are thrown away.
const SERVER_UNEXPLAINED: f64 = 0.05;
const CLIENT_UNEXPLAINED: f64 = 0.30;
/// As many points are named one by one.
const NAMED: usize = 3;

/// The limits of a run.
pub(in crate::report) fn cautions(sweep: &Sweep<'_>) -> Vec<String> {
    let run = sweep.run;
    let mut said = Vec::new();
    if run.incomplete {
        said.push("The run was interrupted: points are missing.".to_owned());
    }
    said.extend(run.warnings.iter().cloned());
    said.extend(failed(sweep));
    said.extend(run.skipped.iter().map(|skipped| format!("Left out: {skipped}")));
    if run.quick {
        said.push("Shortened by --quick: fewer and shorter rounds than the experiment asks for.".to_owned());
    }
    if sweep.baseline().is_none() && !run.points.is_empty() {
        said.push("No server spoke plaintext, so nothing is said about the price of TLS.".to_owned());
    }
    if let Reading::NotAvailable(reason) = &run.floor {
        said.push(format!("No floor is computed: {reason}."));
    }
    said.extend(rounds(sweep));
    said.extend(client_limits(sweep));
    said.extend(discarded(sweep));
    said.extend(disturbed(sweep));
    said.extend(stolen(sweep));
    said.extend(errors(sweep));
    said
}

fn all<'sweep>(sweep: &'sweep Sweep<'_>) -> impl Iterator<Item = (&'sweep Panel<'sweep>, Cell<'sweep>)> {
    sweep.panels.iter().flat_map(|panel| panel.cells().map(move |cell| (panel, cell)))
}

/// Names of points, the first few, and how many more.
fn some(names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut names: Vec<String> = names.into_iter().take(NAMED).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    number::list(&names)
}

fn failed(sweep: &Sweep<'_>) -> Vec<String> {
    let mut points = Vec::new();
    let mut rounds = 0;
    for (panel, cell) in all(sweep) {
        let failures: Vec<_> = panel::failures(cell.point).collect();
        if let Some((reason, _)) = failures.first()
            && panel::measured(cell.point).next().is_none()
        {
            points.push(format!("{}: {reason}", panel.name_of(sweep, cell)));
        } else {
            rounds += failures.len();
        }
    }
    let mut said: Vec<String> = points.iter().take(NAMED).map(|point| format!("Failed: {point}")).collect();
    if points.len() > NAMED {
        said.push(format!(
            "{} failed as well; their reasons are below.",
            number::plural(points.len() - NAMED, "other point")
        ));
    }
    if rounds > 0 {
        said.push(format!(
            "{} failed at points that other rounds measured.",
            number::plural(rounds, "round")
        ));
    }
    said
}

fn rounds(sweep: &Sweep<'_>) -> Option<String> {
    let most = all(sweep).map(|(_, cell)| panel::measured(cell.point).count()).max().unwrap_or(0);
    if most == 1 {
        return Some(
            "One round for each point: nothing is known about the spread, and no difference is claimed."
                .into(),
        );
    }
    let restless: Vec<String> = all(sweep)
        .filter(|(_, cell)| {
            panel::summary(cell.point, &CPU_PER_GB).is_some_and(|summary| summary.spread() > RESTLESS)
        })
        .map(|(panel, cell)| panel.name_of(sweep, cell))
        .collect();
    (!restless.is_empty())
        .then(|| format!("Rounds differ by more than a fifth in CPU per byte: {}.", some(restless)))
}

fn client_limits(sweep: &Sweep<'_>) -> Option<String> {
    let points = all(sweep).filter(|(_, cell)| panel::measured(cell.point).next().is_some()).count();
    let limited = all(sweep).filter(|(_, cell)| panel::client_limited(cell.point).is_some()).count();
    (limited > 0).then(|| {
        format!(
            "At {limited} of {} the load client was the limit (hollow marks): the server could have given more.",
            number::plural(points, "point")
        )
    })
}

fn discarded(sweep: &Sweep<'_>) -> Option<String> {
    all(sweep).any(|(_, cell)| panel::discarded(cell.point)).then(|| {
        "The client threw bodies away unread: the sender is what was measured, and a client that reads costs more."
            .to_owned()
    })
}

/// Rounds in which others used the cores: time that neither server nor client account for.
fn disturbed(sweep: &Sweep<'_>) -> Option<String> {
    let setup = &sweep.run.setup;
    let rounds = || all(sweep).flat_map(|(_, cell)| panel::measured(cell.point));
    let strange = rounds()
        .filter(|round| {
            let unexplained = |cores: &[u32], cpu_s: f64| {
                let times = cores.iter().filter_map(|core| round.machine.cores.get(core));
                let busy_s: f64 = times.map(|times| round.elapsed_s - times.idle_s - times.steal_s).sum();
                (busy_s - cpu_s) / (round.elapsed_s * cores.len().max(1) as f64)
            };
            let used_s = |cost: &crate::result::ProcessCost| cost.user_s + cost.system_s;
            unexplained(&setup.server_cores, used_s(&round.server)) > SERVER_UNEXPLAINED
                || unexplained(&setup.client_cores, used_s(&round.client)) > CLIENT_UNEXPLAINED
        })
        .count();
    (strange > 0).then(|| {
        format!(
            "In {strange} of {} the cores were busy with more than server and client account for.",
            number::plural(rounds().count(), "round")
        )
    })
}

fn stolen(sweep: &Sweep<'_>) -> Option<String> {
    let share = |round: &crate::result::Measurement| {
        let times = round.machine.total;
        let busy = times.user_s + times.system_s + times.interrupt_s + times.softirq_s;
        let all = busy + times.idle_s + times.steal_s;
        if all > 0.0 { times.steal_s / all } else { 0.0 }
    };
    let most = all(sweep).flat_map(|(_, cell)| panel::measured(cell.point)).map(share).fold(0.0, f64::max);
    (most > STEAL).then(|| {
        format!(
            "The hypervisor took up to {} % of the machine's CPU for others while it was measured.",
            number::short(100.0 * most)
        )
    })
}

fn errors(sweep: &Sweep<'_>) -> Option<String> {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, cell) in all(sweep) {
        for load in panel::measured(cell.point).flat_map(|round| &round.load) {
            for (kind, count) in load.errors.iter().filter(|(_, count)| **count > 0) {
                *kinds.entry(kind).or_default() += count;
            }
        }
    }
    let kinds: Vec<String> =
        kinds.iter().map(|(kind, count)| format!("{} × {kind}", linerate_figures::count(*count))).collect();
    (!kinds.is_empty()).then(|| format!("The load client saw errors: {}.", some(kinds)))
}
