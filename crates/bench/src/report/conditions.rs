//! What every table and figure has to name, because it changes the figures as much as a server does: congestion control and
//! queue discipline, processor and kernel.

use std::collections::BTreeSet;

use super::panel::Panel;
use crate::result::{ExperimentRun, NetworkUsed, Point, Reading};

/// Of a panel, in a line: "cubic, queue noqueue, loopback · AMD EPYC 7763 · Linux 6.18.44".
pub(super) fn of_panel(run: &ExperimentRun, panel: &Panel<'_>) -> String {
    of_points(run, panel.cells().map(|cell| cell.point))
}

/// Of a whole run.
pub(super) fn of_run(run: &ExperimentRun) -> String {
    of_points(run, run.points.iter())
}

fn of_points<'run>(run: &ExperimentRun, points: impl Iterator<Item = &'run Point>) -> String {
    let networks = networks(run, points);
    let fact = |group, names| fact(run, group, names);
    let cpu = fact("cpu", &["model", "name"]).unwrap_or("processor not recorded");
    let kernel = match fact("kernel", &["release", "version"]) {
        Some(release) => format!("Linux {release}"),
        None => "kernel not recorded".to_owned(),
    };
    [networks.as_str(), cpu, &kernel]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}

/// The networks of these points, each once.
pub(super) fn networks<'run>(run: &ExperimentRun, points: impl Iterator<Item = &'run Point>) -> String {
    let networks: BTreeSet<String> = points.map(|point| network(run, &point.network)).collect();
    networks.into_iter().collect::<Vec<_>>().join(" or ")
}

/// A fact of the environment.
pub(super) fn fact<'run>(run: &'run ExperimentRun, group: &str, names: &[&str]) -> Option<&'run str> {
    let facts = run.environment.get(group)?;
    names.iter().find_map(|name| facts.get(*name)?.value()).map(String::as_str)
}

/// Runs of before this was recorded used the machine's own network.
fn network(run: &ExperimentRun, used: &NetworkUsed) -> String {
    let of_machine = || fact(run, "network", &["net.ipv4.tcp_congestion_control"]);
    let control = match &used.congestion_control {
        Reading::Value(control) => control.as_str(),
        Reading::NotAvailable(_) => of_machine().unwrap_or("congestion control not recorded"),
    };
    let queue = match &used.queue_discipline {
        Reading::Value(queue) => format!("queue {queue}"),
        Reading::NotAvailable(_) => "queue not recorded".to_owned(),
    };
    let path = Some(used.path.as_str()).filter(|path| !path.is_empty());
    [Some(control), Some(&queue), path].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::panel::Sweep;
    use crate::sample::sample_run;

    #[test]
    fn what_differs_is_named_with_its_alternatives() {
        let mut run = sample_run();
        let facts = |name: &str, value: &str| [(name.to_owned(), Reading::Value(value.to_owned()))].into();
        run.environment.insert("cpu".to_owned(), facts("model", "AMD EPYC"));
        run.environment.insert("kernel".to_owned(), facts("release", "6.18.44"));
        let sweep = Sweep::of(&run);
        assert_eq!(
            of_panel(&run, &sweep.panels[0]),
            "cubic, queue not recorded, loopback · AMD EPYC · Linux 6.18.44"
        );
        let mut other = run.clone();
        other.points[0].network.queue_discipline = Reading::Value("fq".to_owned());
        other.points[0].network.congestion_control = Reading::Value("bbr".to_owned());
        assert!(
            of_run(&other)
                .starts_with("bbr, queue fq, loopback or cubic, queue not recorded, loopback · AMD")
        );
    }

    #[test]
    fn older_runs_have_the_machines_own() {
        let mut run = sample_run();
        run.points.iter_mut().for_each(|point| point.network = NetworkUsed::default());
        assert!(of_run(&run).starts_with("congestion control not recorded, queue not recorded · processor"));
        let bbr = ("net.ipv4.tcp_congestion_control".to_owned(), Reading::Value("bbr".to_owned()));
        run.environment.insert("network".to_owned(), [bbr].into());
        assert!(of_run(&run).starts_with("bbr, queue not recorded · processor not recorded"));
    }
}
