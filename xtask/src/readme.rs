//! README's figures, from the runs of `make readme-figures` (scripts/readme-figures.sh): the part of README.md between two
//! marks is written anew. The words in it say nothing but what the runs bear out.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use linerate_bench::result::{ExperimentRun, Measurement, Point, Reading, Round, Variable};
use linerate_bench::statistics::{Ratio, Summary};

const BEGIN: &str = "<!-- figures -->\n";
const END: &str = "<!-- /figures -->";

/// The experiments whose results are read, each from a folder of its name.
const EXPERIMENTS: [&str; 4] = ["in-step", "keep-alive", "full-handshakes", "idle"];

/// The server that the others are seen beside.
const OURS: &str = "linerate user";

/// README's first sentence promises at most "six tenths of nginx's CPU time" for the first three rows.
const SIX_TENTHS: f64 = 0.6;
const PROMISED_ROWS: usize = 3;

/// What is asked for.
#[derive(Debug, Args)]
pub(crate) struct ReadmeFigures {
    /// The folder with the runs, each in a folder of its experiment's name.
    results: PathBuf,
    /// The file to be changed.
    #[arg(long, default_value = "README.md")]
    readme: PathBuf,
}

impl ReadmeFigures {
    pub(crate) fn run(&self) -> Result<()> {
        let load = |name| linerate_bench::load(&self.results.join(name)).map_err(anyhow::Error::from);
        let runs = EXPERIMENTS.into_iter().map(load).collect::<Result<Vec<_>>>()?;
        let readme = fs::read_to_string(&self.readme)
            .with_context(|| format!("cannot read {}", self.readme.display()))?;
        let changed = replaced(&readme, &figures(&runs)?)?;
        fs::write(&self.readme, changed)
            .with_context(|| format!("cannot write {}", self.readme.display()))?;
        for broken in broken_promises(&runs) {
            eprintln!("README's first sentence says at most \"six tenths of nginx's CPU time\": {broken}");
        }
        Ok(())
    }
}

/// A row of the table: a point of an experiment, and what of it is told.
struct Row {
    work: &'static str,
    experiment: &'static str,
    variable: &'static str,
    value: Variable,
    read: fn(&Measurement) -> Reading<f64>,
    /// Whether the cost of bytes is what is told, so that a floor says something.
    floor: Option<FloorFigure>,
}

/// The figure of a floor's round that belongs to a row.
type FloorFigure = fn(&linerate_bench::result::FloorRound) -> Option<f64>;

fn rows() -> Vec<Row> {
    let per_response: fn(&Measurement) -> Reading<f64> = |round| round.server_us_per_response.clone();
    let kept = |work, bytes| Row {
        work,
        experiment: "keep-alive",
        variable: "file_bytes",
        value: Variable::Number(bytes),
        read: per_response,
        floor: Some(|round| round.us_per_response.value().copied()),
    };
    vec![
        Row {
            work: "2 GB file, 8 connections, s/GB",
            experiment: "in-step",
            variable: "connections",
            value: Variable::Number(8.0),
            read: |round| round.server_s_per_gb.clone(),
            floor: Some(|round| Some(round.s_per_gb)),
        },
        kept("1 MB, 64 keep-alive connections, µs a request", 1e6),
        kept("100 kB, 64 keep-alive connections, µs a request", 1e5),
        kept("10 kB, 64 keep-alive connections, µs a request", 1e4),
        Row {
            work: "10 kB, a full ECDSA handshake each, µs",
            experiment: "full-handshakes",
            variable: "certificate",
            value: Variable::Word("ecdsa".to_owned()),
            read: per_response,
            floor: None,
        },
        Row {
            work: "an idle keep-alive connection, KiB",
            experiment: "idle",
            variable: "connections",
            value: Variable::Number(5_000.0),
            read: |round| round.server_bytes_per_connection.clone().map(|bytes| bytes / 1024.0),
            floor: None,
        },
    ]
}

/// A column of servers, and how it is headed.
struct Column {
    server: &'static str,
    heading: String,
}

/// The servers that took part, ours first.
fn columns(runs: &[ExperimentRun]) -> Vec<Column> {
    let version = |name: &str| {
        let mut servers = runs.iter().flat_map(|run| &run.servers);
        servers.find(|server| server.name == name).map(|server| server.version.clone())
    };
    ["linerate user", "nginx plaintext", "nginx tls", "nginx-13 tls"]
        .into_iter()
        .filter_map(|server| {
            let version = version(server)?;
            let heading = match server {
                OURS => "linerate".to_owned(),
                "nginx plaintext" => "nginx, plaintext `sendfile`".to_owned(),
                _ => format!("nginx, {}", library(&version)),
            };
            Some(Column { server, heading })
        })
        .collect()
}

/// "OpenSSL 3.0" of "nginx/1.22.1, OpenSSL 3.0.22 25 Aug 2026".
fn library(version: &str) -> String {
    let words: Vec<&str> = version.split_whitespace().collect();
    let number = words.iter().position(|word| *word == "OpenSSL").and_then(|at| words.get(at + 1));
    let number = number.map(|number| number.splitn(3, '.').take(2).collect::<Vec<_>>().join("."));
    number.map_or_else(|| version.to_owned(), |number| format!("OpenSSL {number}"))
}

/// How a point's server sent, as the kernel showed it: congestion control, and whether the queue discipline is `fq`.
fn sending(point: &Point) -> (&str, bool) {
    let network = &point.network;
    let control = network.congestion_control.value().map_or("not recorded", String::as_str);
    (control, network.queue_discipline.value().is_some_and(|queue| queue == "fq"))
}

/// What a row has in one round after the other.
fn by_round(point: &Point, row: &Row) -> Vec<Option<f64>> {
    let value = |round: &Round| match round {
        Round::Measured(measured) => (row.read)(measured).value().copied(),
        Round::Failed { .. } => None,
    };
    point.rounds.iter().map(value).collect()
}

/// The runs under one congestion control.
struct Table<'run> {
    runs: &'run [ExperimentRun],
    sending: (&'run str, bool),
}

impl<'run> Table<'run> {
    fn run(&self, row: &Row) -> Option<&'run ExperimentRun> {
        self.runs.iter().find(|run| run.name == row.experiment)
    }

    fn point(&self, row: &Row, server: &str) -> Option<&'run Point> {
        self.run(row)?.points.iter().find(|point| {
            point.server == server
                && sending(point) == self.sending
                && point.variables.get(row.variable) == Some(&row.value)
        })
    }

    fn of_server(&self, row: &Row, server: &str) -> Vec<Option<f64>> {
        self.point(row, server).map(|point| by_round(point, row)).unwrap_or_default()
    }

    fn of_floor(&self, row: &Row) -> Vec<Option<f64>> {
        let found = || {
            let variables = &self.point(row, OURS)?.variables;
            let figure = row.floor?;
            let floor = self.run(row)?.floor.value()?.iter().find(|floor| floor.variables == *variables)?;
            Some(floor.rounds.iter().map(|round| figure(round.as_ref()?)).collect())
        };
        found().unwrap_or_default()
    }

    fn beside(&self, row: &Row, others: &[Option<f64>]) -> Option<f64> {
        Some(Ratio::paired(&self.of_server(row, OURS), others)?.ratio)
    }

    /// The rows that were measured, under the headings of `columns` and of the floor.
    fn markdown(&self, columns: &[Column]) -> String {
        let mut headings: Vec<String> = columns.iter().map(|column| column.heading.clone()).collect();
        headings.insert(1, "the floor".to_owned());
        let mut text =
            format!("| work | {} |\n|---{}|\n", headings.join(" | "), "|---".repeat(headings.len()));
        for row in rows() {
            let mut cells: Vec<String> =
                columns.iter().map(|column| cell(&self.of_server(&row, column.server))).collect();
            if cells.iter().all(String::is_empty) {
                continue;
            }
            cells[0] = format!("**{}**", cells[0]);
            cells.insert(1, cell(&self.of_floor(&row)));
            text.push_str(&format!("| {} | {} |\n", row.work, cells.join(" | ")));
        }
        text
    }

    /// What the rows come to beside each other: the least and the most of all that are about CPU time.
    fn distances(&self, columns: &[Column]) -> String {
        let range = |others: &dyn Fn(&Row) -> Vec<Option<f64>>| {
            let timed = rows().into_iter().filter(|row| row.experiment != "idle");
            let ratios: Vec<f64> = timed.filter_map(|row| self.beside(&row, &others(&row))).collect();
            let least = ratios.iter().copied().reduce(f64::min)?;
            let most = ratios.iter().copied().reduce(f64::max)?;
            Some(format!("{least:.2} to {most:.2} ×"))
        };
        let of_column = |column: &Column| {
            let range = range(&|row| self.of_server(row, column.server))?;
            Some(format!("- {range} {}", column.heading))
        };
        let mut said =
            vec!["linerate's TLS costs, row by row (medians of ratios paired by round):".to_owned()];
        said.extend(range(&|row| self.of_floor(row)).map(|range| format!("- {range} the floor")));
        said.extend(columns.iter().filter(|column| column.server != OURS).filter_map(of_column));
        said.join("\n")
    }
}

/// The median, as a person reads it.
fn cell(rounds: &[Option<f64>]) -> String {
    let values: Vec<f64> = rounds.iter().flatten().copied().collect();
    match Summary::of(&values).map(|summary| summary.median) {
        None => String::new(),
        Some(median) if median >= 10.0 => format!("{median:.0}"),
        Some(median) if median >= 1.0 => format!("{median:.1}"),
        Some(median) => format!("{median:.2}"),
    }
}

/// What stands between the marks.
fn figures(runs: &[ExperimentRun]) -> Result<String> {
    let columns = columns(runs);
    let table = |control, fq| Table { runs, sending: (control, fq) };
    let cubic = table("cubic", false);
    let missing: Vec<&str> = rows()
        .iter()
        .filter(|row| cell(&cubic.of_server(row, OURS)).is_empty())
        .map(|row| row.work)
        .collect();
    ensure!(missing.is_empty(), "not measured under cubic (is it root that runs?): {}", missing.join("; "));
    let mut text = format!(
        "Server CPU, TLS 1.3 with AES-256-GCM, {}, congestion control `cubic`, queue discipline `{}`,\nmedians of {} \
         ({}; smaller is better).\nThe floor is computed, no server runs at it: the cipher alone, one copy of a byte, and \
         linerate's own plaintext\n([MEASURING.md](docs/MEASURING.md#the-floor)).\n\n{}\n{}\n",
        place(runs)?,
        queue(&cubic)?,
        rounds(runs)?,
        machine(runs)?,
        cubic.markdown(&columns),
        cubic.distances(&columns)
    );
    let others = [
        (table("bbr", true), "`bbr` and an `fq` queue, which paces"),
        (table("bbr", false), "`bbr` and no `fq` queue, where sockets pace by timers of their own"),
    ];
    for (table, heading) in others {
        if rows().iter().any(|row| table.point(row, OURS).is_some()) {
            text.push_str(&format!(
                "\nThe same with {heading}\n([why that matters](docs/MEASURING.md#congestion-control-and-queue)):\n\n{}\n{}\n",
                table.markdown(&columns),
                table.distances(&columns)
            ));
        }
    }
    Ok(text)
}

/// What all of these have in common; anything else would need more words than a table's head has.
fn same(what: &str, found: impl Iterator<Item = String>) -> Result<String> {
    let found: BTreeSet<String> = found.collect();
    match found.len() {
        1 => found.into_iter().next().with_context(|| format!("no {what}")),
        _ => bail!("the runs differ in {what}: {found:?}"),
    }
}

fn fact(run: &ExperimentRun, group: &str, name: &str) -> String {
    let fact = run.environment.get(group).and_then(|facts| facts.get(name)).and_then(Reading::value);
    fact.map_or_else(|| format!("{group} {name} not recorded"), String::clone)
}

/// "commit `dac515e`, AMD EPYC, CPUs 0-1, Linux 6.18.44".
fn machine(runs: &[ExperimentRun]) -> Result<String> {
    let common = |group, name| same(name, runs.iter().map(|run| fact(run, group, name)));
    Ok(format!(
        "commit `{}`,\n{}, CPUs {}, Linux {}",
        common("linerate", "commit")?,
        common("cpu", "model")?,
        common("cpu", "cores on line")?,
        common("kernel", "release")?
    ))
}

/// "one core, loopback".
fn place(runs: &[ExperimentRun]) -> Result<String> {
    let cores = same("server cores", runs.iter().map(|run| run.setup.server_cores.len().to_string()))?;
    let points = runs.iter().flat_map(|run| &run.points);
    let path = same("network", points.map(|point| point.network.path.clone()))?;
    Ok(if cores == "1" { format!("one core, {path}") } else { format!("{cores} cores, {path}") })
}

fn queue(table: &Table<'_>) -> Result<String> {
    let points =
        table.runs.iter().flat_map(|run| &run.points).filter(|point| sending(point) == table.sending);
    let queue = |point: &Point| point.network.queue_discipline.value().cloned().unwrap_or_default();
    same("queue discipline", points.map(queue))
}

/// "5 rounds of 1 s", of the runs that measure CPU time.
fn rounds(runs: &[ExperimentRun]) -> Result<String> {
    let timed = || runs.iter().filter(|run| run.name != "idle");
    let rounds = same("rounds", timed().map(|run| run.rounds_planned.to_string()))?;
    let seconds = |run: &ExperimentRun| match run.changed.get("measured_s").map(Vec::as_slice) {
        Some([Variable::Number(seconds)]) => format!("{seconds} s"),
        _ => "the experiment's own time".to_owned(),
    };
    Ok(format!("{rounds} rounds of {}", same("measured time", timed().map(seconds))?))
}

/// Where the run does not bear out README's first sentence.
fn broken_promises(runs: &[ExperimentRun]) -> Vec<String> {
    let cubic = Table { runs, sending: ("cubic", false) };
    let mut broken = Vec::new();
    for row in rows().iter().take(PROMISED_ROWS) {
        for column in columns(runs).iter().filter(|column| column.server.ends_with(" tls")) {
            if let Some(ratio) = cubic.beside(row, &cubic.of_server(row, column.server))
                && ratio > SIX_TENTHS
            {
                broken.push(format!("{ratio:.2} × {} at {}", column.heading, row.work));
            }
        }
    }
    broken
}

/// `readme` with `figures` between the marks.
fn replaced(readme: &str, figures: &str) -> Result<String> {
    let (before, rest) = readme.split_once(BEGIN).with_context(|| format!("there is no {}", BEGIN.trim()))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("there is no {END}"))?;
    Ok(format!("{before}{BEGIN}{figures}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A short run of `make readme-figures`, cut down to what is read of it.
    fn recorded() -> Vec<ExperimentRun> {
        serde_json::from_str(include_str!("readme/recorded.json")).expect("four results")
    }

    #[test]
    fn the_figures_are_those_of_the_runs() {
        let text = figures(&recorded()).unwrap();
        assert_eq!(text, include_str!("readme/recorded.md"));
    }

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let readme = format!("before\n{BEGIN}old\n{END}\nafter\n");
        let changed = replaced(&readme, "new\n").unwrap();
        assert_eq!(changed, format!("before\n{BEGIN}new\n{END}\nafter\n"));
        assert!(replaced("no marks", "new\n").is_err());
        assert!(replaced(BEGIN, "new\n").is_err());
    }

    #[test]
    fn what_was_not_measured_is_no_empty_table() {
        let mut runs = recorded();
        for point in runs.iter_mut().flat_map(|run| &mut run.points) {
            point.network.congestion_control = Reading::Value("reno".to_owned());
        }
        let error = figures(&runs).unwrap_err().to_string();
        assert!(error.starts_with("not measured under cubic (is it root that runs?): 2 GB file"), "{error}");
    }

    #[test]
    fn runs_of_two_commits_make_no_table() {
        let mut runs = recorded();
        let facts = runs[1].environment.get_mut("linerate").unwrap();
        facts.insert("commit".to_owned(), Reading::Value("0000000".to_owned()));
        let error = figures(&runs).unwrap_err().to_string();
        assert!(error.starts_with("the runs differ in commit: "), "{error}");
    }

    #[test]
    fn a_promise_that_is_broken_is_told() {
        let mut runs = recorded();
        // As dear as nginx.
        for point in runs[0].points.iter_mut().filter(|point| point.server == OURS) {
            for round in &mut point.rounds {
                let Round::Measured(round) = round else { continue };
                round.server_s_per_gb = Reading::Value(10.0);
            }
        }
        assert!(broken_promises(&runs).iter().any(|broken| broken.contains("2 GB file")));
    }
}
