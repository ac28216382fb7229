//! From what guests said to a run of `linerate bench`, whose units are those of a processor that carries out 10⁹
//! instructions in a second.
//!
//! The server's instructions are those of the whole machine without the adapter's and without the client's. The client knows
//! its CPU time, in which there may be some of the adapter's, too: an acknowledgement that comes up in its time lets the
//! next frames go. The module tells how much that was.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use linerate_bench::result::{
    ExperimentRun, Measurement, NetworkUsed, Point as MeasuredPoint, Reading, Round as MeasuredRound, SCHEMA,
    ServerUsed, Setup, Variable,
};

use linerate_bench::network::VETH_SERVER;
use linerate_bench::statistics::Summary;

use super::super::client::counted::{Manner, Spent};
use super::super::counted_guest::{Mark, Said};
use super::inside::{Counters, Line, Round};
use super::plan::{Adapter, Subject};

/// Instructions in a second of the guest's clock.
const PER_S: f64 = 1e9;

/// The run that the guests made together.
pub(super) fn of(found: &[(Option<Adapter>, Said)], rounds: u32, at_a_time: u32) -> Result<ExperimentRun> {
    let mut run = empty(rounds, at_a_time);
    for (adapter, said) in found {
        let mut network = NetworkUsed::default();
        let mut marks = said.marks.chunks_exact(2).map(|pair| pair[1]);
        for line in said.output.lines() {
            match serde_json::from_str(line).with_context(|| format!("the guest said {line:?}"))? {
                Line::Environment(environment) => run.environment = environment,
                Line::Network(used) => network = used,
                Line::Server { subject, version, flags, configuration } => {
                    add_server(&mut run, subject, version, flags, configuration);
                }
                Line::Round(round) => {
                    let mark = marks.next().context("there are fewer marks than rounds")?;
                    if !round.is_warm_up {
                        add_round(&mut run, *adapter, &network, *round, mark)?;
                    }
                }
                Line::Crowd { .. } => {}
            }
        }
        if marks.next().is_some() {
            bail!("there are more marks than rounds");
        }
    }
    // As the experiment of the same name has them, whichever guest was done first.
    let order = |name: &str| Subject::ALL.iter().position(|subject| subject.title() == name);
    run.servers.sort_by_key(|server| order(&server.name));
    run.points.sort_by(|one, other| {
        let key = |point: &MeasuredPoint| (number(point, "set_ups_per_s"), order(&point.server));
        key(one).partial_cmp(&key(other)).unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok(run)
}

fn empty(rounds: u32, at_a_time: u32) -> ExperimentRun {
    ExperimentRun {
        schema: SCHEMA.to_owned(),
        name: "never-lose-adapter".to_owned(),
        definition: String::new(),
        title: match at_a_time {
            1 => "auto beside every fixed engine, behind adapters that encrypt".to_owned(),
            _ => format!("auto beside every fixed engine, behind adapters that encrypt, {at_a_time} requests at a time"),
        },
        source: "linerate's own (cargo xtask guest never-lose). The adapter is the software one, in an emulated guest; a \
                 second is 10⁹ instructions of the server, the adapter's own work not among them. Nothing here says how \
                 fast anything is: it says which engine takes less work, and whether auto finds it"
            .to_owned(),
        axis: "file_bytes".to_owned(),
        axis_is_logarithmic: true,
        quantities: ["server_s_per_gb", "application_gbit_s", "server_us_per_response"].map(str::to_owned).to_vec(),
        rounds_planned: rounds,
        setup: Setup { address: VETH_SERVER.to_string(), server_cores: vec![0], client_cores: vec![0], ..Setup::default() },
        started_unix_s: std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        quick: false,
        command: ["cargo", "xtask", "guest", "never-lose", "--at-a-time", &at_a_time.to_string()]
            .map(str::to_owned)
            .to_vec(),
        floor: Reading::NotAvailable("in guests the cipher and a copy alone are not counted".to_owned()),
        environment: BTreeMap::new(),
        servers: Vec::new(),
        points: Vec::new(),
        skipped: Vec::new(),
        published: Vec::new(),
        targets: Vec::new(),
        changed: BTreeMap::new(),
        warnings: Vec::new(),
        incomplete: false,
    }
}

fn add_server(
    run: &mut ExperimentRun,
    subject: Subject,
    version: String,
    flags: Vec<String>,
    configuration: String,
) {
    if run.servers.iter().any(|server| server.name == subject.title()) {
        return;
    }
    let command = ["linerate", "serve"].map(str::to_owned).into_iter().chain(flags).collect();
    let name = subject.title().to_owned();
    run.servers.push(ServerUsed { name, version, command, configuration, plaintext: false });
}

fn add_round(
    run: &mut ExperimentRun,
    adapter: Option<Adapter>,
    network: &NetworkUsed,
    round: Round,
    mark: Mark,
) -> Result<()> {
    let mut variables =
        BTreeMap::from([("file_bytes".to_owned(), Variable::Number(round.point.file_bytes as f64))]);
    // A single transfer is the same in either manner, and an engine without an adapter behind any.
    let close = match round.point.manner {
        Manner::Kept => Some(false),
        Manner::OneEach => Some(true),
        Manner::Discarded => None,
    };
    if let Some(close) = close {
        variables.insert("close".to_owned(), Variable::Word(close.to_string()));
    }
    if let Some(adapter) = adapter {
        variables.insert("set_ups_per_s".to_owned(), Variable::Number(f64::from(adapter.set_ups_per_s())));
    }
    let server = round.subject.title();
    let measured = MeasuredRound::Measured(Box::new(measurement(&round, mark)?));
    match run.points.iter_mut().find(|point| point.server == server && point.variables == variables) {
        Some(point) => point.rounds.push(measured),
        None => run.points.push(MeasuredPoint {
            server: server.to_owned(),
            variables,
            client_command: Vec::new(),
            network: network.clone(),
            rounds: vec![measured],
        }),
    }
    Ok(())
}

/// Instructions of the server and of the client.
fn divide(mark: Mark, spent: Spent, adapter: Counters) -> Result<(u64, u64)> {
    let whole = mark.user + mark.kernel;
    let client = spent.cpu_ns.saturating_sub(adapter.model_elsewhere_ns);
    let server = whole.checked_sub(client).with_context(|| {
        format!("the client is said to have used {client} of the machine's {whole} instructions")
    })?;
    Ok((server, client))
}

fn measurement(round: &Round, mark: Mark) -> Result<Measurement> {
    let spent = round.outcome.spent;
    let (server, client) = divide(mark, spent, round.adapter)?;
    let (bytes, responses) = (round.outcome.body_bytes as f64, round.outcome.requests as f64);
    let server_s = server as f64 / PER_S;
    // The adapter's work was done on the processor, and would not have been.
    let elapsed_s = spent.elapsed_ns.saturating_sub(round.adapter.model_ns) as f64 / PER_S;
    let mut measured = (*round.measurement).clone();
    measured.elapsed_s = elapsed_s;
    measured.application_gbit_s = 8.0 * bytes / 1e9 / elapsed_s;
    measured.responses_per_s = responses / elapsed_s;
    measured.server.user_s = measured.server.user_s.min(server_s);
    measured.server.system_s = server_s - measured.server.user_s;
    measured.server.instructions_per_byte = Reading::Value(server as f64 / bytes);
    measured.client.instructions_per_byte = Reading::Value(client as f64 / bytes);
    measured.server_s_per_gb = Reading::Value(server_s / (bytes / 1e9));
    measured.server_us_per_response = Reading::Value(1e6 * server_s / responses);
    measured.service_demand_us_per_kb = Reading::Value(1e6 * server_s / (bytes / 1024.0));
    Ok(measured)
}

fn number(point: &MeasuredPoint, name: &str) -> Option<f64> {
    match point.variables.get(name) {
        Some(Variable::Number(number)) => Some(*number),
        _ => None,
    }
}

/// Markdown, as docs/MEASUREMENTS.md has it: what each engine costs, and `auto` beside the best.
pub(super) fn table(run: &ExperimentRun) -> String {
    let mut text = String::from(
        "| set-ups/s | connections | file | user | kernel | nic | auto | auto / best | worst / auto |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for adapter in Adapter::ALL {
        let set_ups_per_s = f64::from(adapter.set_ups_per_s());
        for (close, title) in [("false", "kept"), ("true", "one each")] {
            let mut sizes: Vec<f64> =
                run.points.iter().filter_map(|point| number(point, "file_bytes")).collect();
            sizes.sort_by(f64::total_cmp);
            sizes.dedup();
            for bytes in sizes {
                let cost = |subject: Subject| cost_us(run, subject, bytes, close, set_ups_per_s);
                let costs = Subject::ALL.map(cost);
                let [Some(user), Some(kernel), Some(nic), Some(auto)] = costs else { continue };
                let fixed = [user, kernel, nic];
                let best = fixed.into_iter().fold(f64::INFINITY, f64::min);
                let worst = fixed.into_iter().fold(0.0, f64::max);
                text += &format!(
                    "| {set_ups_per_s} | {title} | {bytes} | {user:.1} | {kernel:.1} | {nic:.1} | {auto:.1} | {:.3} | {:.2} |\n",
                    auto / best,
                    worst / auto
                );
            }
        }
    }
    text
}

/// What crowds saw, as Markdown; empty where there were none.
pub(super) fn crowds(found: &[(Option<Adapter>, Said)]) -> Result<String> {
    let mut rows = Vec::new();
    for line in found.iter().flat_map(|(_, said)| said.output.lines()) {
        if let Line::Crowd { subject, report, adapter } = serde_json::from_str(line)? {
            // The adapter's work was done on the processor, and would not have been.
            let elapsed_s = report.measured_s - adapter.model_ns as f64 / PER_S;
            let rate_per_s = report.totals.responses as f64 / elapsed_s;
            let [handshake, first] = [&report.handshake, &report.first_byte]
                .map(|times| format!("{:.0} / {:.0}", times.p50_us as f64 / 1e3, times.max_us as f64 / 1e3));
            let megabytes_per_s =
                rate_per_s * report.totals.body_bytes as f64 / report.totals.responses.max(1) as f64 / 1e6;
            let row = format!(
                "| {} | {rate_per_s:.0} | {megabytes_per_s:.2} | {handshake} | {first} | {} |\n",
                subject.title(),
                adapter.set_ups
            );
            rows.push((subject, row));
        }
    }
    if rows.is_empty() {
        return Ok(String::new());
    }
    rows.sort_by_key(|(subject, _)| *subject);
    let rows: String = rows.into_iter().map(|(_, row)| row).collect();
    Ok(format!(
        "| 10 kB for each connection, adapter of 850 set-ups/s | responses/s | MB/s | handshake, median / longest ms | \
         first byte, median / longest ms | set-ups |\n|---|---|---|---|---|---|\n{rows}"
    ))
}

/// The median of a point's rounds, in µs for each response.
fn cost_us(
    run: &ExperimentRun,
    subject: Subject,
    bytes: f64,
    close: &str,
    set_ups_per_s: f64,
) -> Option<f64> {
    let admits = |point: &&MeasuredPoint| {
        let is = |name: &str, value: Variable| point.variables.get(name).is_none_or(|own| *own == value);
        point.server == subject.title()
            && is("file_bytes", Variable::Number(bytes))
            && is("close", Variable::Word(close.to_owned()))
            && is("set_ups_per_s", Variable::Number(set_ups_per_s))
    };
    let point = run.points.iter().find(admits)?;
    let measured = point.rounds.iter().filter_map(|round| match round {
        MeasuredRound::Measured(measured) => measured.server_us_per_response.value().copied(),
        MeasuredRound::Failed { .. } => None,
    });
    Some(Summary::of(&measured.collect::<Vec<f64>>())?.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_part_is_what_neither_client_nor_adapter_did() {
        let mark = Mark { user: 700, kernel: 500, adapter: 300, written: None };
        let spent = Spent { cpu_ns: 450, elapsed_ns: 2000 };
        let adapter = Counters { model_ns: 300, model_elsewhere_ns: 50, ..Counters::default() };
        // 50 of the client's 450 were the adapter's, which are in neither of the machine's counts.
        assert_eq!(divide(mark, spent, adapter).unwrap(), (800, 400));
        let impossible = Spent { cpu_ns: 2000, elapsed_ns: 2000 };
        assert!(divide(mark, impossible, Counters::default()).is_err());
    }

    #[test]
    fn a_row_holds_auto_against_the_best_and_the_worst() {
        let mut run = empty(1, 1);
        for (subject, us) in
            [(Subject::User, 10.0), (Subject::Kernel, 20.0), (Subject::Nic, 8.0), (Subject::Auto, 8.4)]
        {
            let mut variables = BTreeMap::from([("file_bytes".to_owned(), Variable::Number(1000.0))]);
            if matches!(subject, Subject::Nic | Subject::Auto) {
                variables.insert("set_ups_per_s".to_owned(), Variable::Number(850.0));
            }
            let mut measured = crate::guest::never_lose::inside::tests::measurement();
            measured.server_us_per_response = Reading::Value(us);
            let rounds = vec![MeasuredRound::Measured(Box::new(measured))];
            let server = subject.title().to_owned();
            run.points.push(MeasuredPoint {
                server,
                variables,
                client_command: Vec::new(),
                network: NetworkUsed::default(),
                rounds,
            });
        }
        let text = table(&run);
        assert!(text.contains("| 850 | kept | 1000 | 10.0 | 20.0 | 8.0 | 8.4 | 1.050 | 2.38 |"), "{text}");
        assert!(!text.contains("| 16500 |"), "{text}");
    }
}
