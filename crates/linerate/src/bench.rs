//! `linerate bench`: from its flags to experiments, reports and comparisons.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, Subcommand};
use linerate_bench::definition::catalogue::{self, EXPERIMENTS};
use linerate_bench::definition::{Definition, VARIABLES};
use linerate_bench::result::{ExperimentRun, Round, Variable};
use linerate_bench::streams::{self, StreamDefinition};
use linerate_bench::{Finished, Options, Shared, report};
use linerate_config::CpuList;

use crate::FAILED;

pub(crate) const EXAMPLES: &str = "\
Examples:
  linerate bench list
  linerate bench run engines --quick
      What TLS costs on this machine beside plaintext, in under two minutes.
  linerate bench compare linerate-bench/2026-11-20T101500-engines linerate-bench/2026-11-21T101500-engines";

const LIST_EXAMPLES: &str = "\
Examples:
  linerate bench list
  linerate bench list engines > mine.toml
      A copy to be changed, and run by `linerate bench run mine.toml`.
  linerate bench list --variables";

const RUN_EXAMPLES: &str = "\
Examples:
  linerate bench run engines --quick
  linerate bench run file-size handshakes --output results
  linerate bench run mine.toml --server 'nginx tls' --server 'linerate user' --rounds 9
  linerate bench run in-step --set cipher=TLS_AES_128_GCM_SHA256 --set congestion_control=bbr+fq
  linerate bench run --resume linerate-bench/2026-11-21T101500-engines
  linerate bench run t7-connections --address 192.0.2.1 --clients peer1,peer2
      The load comes from two other machines, over ssh; linerate has to be on them.

The first interrupt (Ctrl-C) ends the run and keeps what was measured; --resume goes on with it.

Exit status: 0 if rounds were measured; 1 if none was, the run was interrupted or could not be
written; 2 if the command line is wrong.";

const SET_UP_EXAMPLES: &str = "\
Examples:
  sudo linerate bench setup
  sudo linerate bench setup in-step keep-alive --mirror https://deb.example.org/debian";

const REPORT_EXAMPLES: &str = "\
Examples:
  linerate bench report linerate-bench/2026-11-21T101500-engines
  linerate bench report results/engines results/file-size --output together
  linerate bench report linerate-bench-share.json";

const SHARE_EXAMPLES: &str = "\
All figures stay. Names of machines and users, addresses, hardware addresses, serial numbers and
paths are replaced in every field by what says only that two of them were the same; the ends of
servers' logs are left out. What was removed is printed. The file is JSON: read it before you send
it. What this program cannot know to be a name stays, like a nickname in a title.

Examples:
  linerate bench share linerate-bench/2026-11-21T101500-engines
  linerate bench share linerate-bench --output all.json
      Every run below that folder.
  linerate bench report all.json --output all
      What the other side does with it.";

const COMPARE_EXAMPLES: &str = "\
Each point is compared by the median of all ratios of its rounds, with an interval of 95 %. What
differs less than the rounds among themselves is no difference.

Examples:
  linerate bench compare before after
  linerate bench compare before after --relative-to 'nginx plaintext'
      Each round relative to a server that has not changed: for machines that have good and bad days.
  linerate bench compare before after --fail-on-slower 5
      For CI: exit status 1 if anything has become slower or dearer by more than 5 %.";

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// List the experiments, or print the file of one
    #[command(after_help = LIST_EXAMPLES)]
    List {
        /// Print this experiment's file
        name: Option<String>,
        /// Print every variable that an experiment can fix or sweep
        #[arg(long, exclusive = true)]
        variables: bool,
    },
    /// Make beforehand what runs need: their files, and Debian 13's nginx on OpenSSL 3.5 (as root, by debootstrap)
    #[command(after_help = SET_UP_EXAMPLES)]
    Setup {
        /// Experiments whose files are made
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Where files and configurations are kept [default: ~/.cache/linerate/bench]
        #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        cache: Option<PathBuf>,
        /// Where the Debian 13 tree is made [default: debian-13 in that folder]
        #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        debian13: Option<PathBuf>,
        /// The Debian mirror that it comes from [default: debootstrap's own]
        #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
        mirror: Option<String>,
    },
    /// Run experiments, and write a result and a report for each
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArguments>),
    /// Make one file of runs to send to others, without names, addresses and paths
    #[command(after_help = SHARE_EXAMPLES)]
    Share {
        /// Folders of runs, or folders with such folders below
        #[arg(value_name = "DIR", required = true, value_hint = clap::ValueHint::DirPath)]
        runs: Vec<PathBuf>,
        /// The file to be made; one that exists is not written over
        #[arg(long, value_name = "FILE", default_value = "linerate-bench-share.json", value_hint = clap::ValueHint::FilePath)]
        output: PathBuf,
    },
    /// Write the report of runs anew
    #[command(after_help = REPORT_EXAMPLES)]
    Report {
        /// Folders of runs, or files that `linerate bench share` made
        #[arg(value_name = "DIR", required = true, value_hint = clap::ValueHint::DirPath)]
        runs: Vec<PathBuf>,
        /// Where to write it [default: the first run's folder, or that of the file]
        #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        output: Option<PathBuf>,
    },
    /// Hold two runs of an experiment against each other
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare {
        /// The folder of the earlier run
        #[arg(value_hint = clap::ValueHint::DirPath)]
        before: PathBuf,
        /// The folder of the later run
        #[arg(value_hint = clap::ValueHint::DirPath)]
        after: PathBuf,
        /// Exit with status 1 if anything has become slower or dearer by more than so many percent
        #[arg(long, value_name = "PERCENT", value_parser = percent)]
        fail_on_slower: Option<f64>,
        /// Compare each round relative to this server's
        #[arg(long, value_name = "SERVER")]
        relative_to: Option<String>,
        /// Where to write the page that shows both [default: the later run's folder]
        #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct RunArguments {
    /// Experiments: names of built-in ones, or files that end in .toml
    #[arg(value_name = "NAME", required_unless_present = "resume", value_hint = clap::ValueHint::FilePath)]
    names: Vec<String>,

    /// Shorter and smaller, as the experiment's file says: under two minutes on two cores
    #[arg(long)]
    quick: bool,

    /// Where the result goes [default: linerate-bench/DATE-NAME]; with several experiments, DIR/NAME
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    output: Option<PathBuf>,

    /// Go on with the run in DIR, with the settings that it began with
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath,
          conflicts_with_all = ["names", "quick", "output", "servers", "without", "set", "rounds", "server_cpus", "client_cpus", "clients"])]
    resume: Option<PathBuf>,

    /// Measure only this server of the experiment's; can be repeated
    #[arg(long = "server", value_name = "SERVER")]
    servers: Vec<String>,

    /// Leave this server out; can be repeated
    #[arg(long, value_name = "SERVER", conflicts_with = "servers")]
    without: Vec<String>,

    /// Give a variable of the load another value, or several to be swept: cipher=TLS_AES_128_GCM_SHA256, network=veth,
    /// congestion_control=cubic,bbr+fq; also measured_s, warmup_s and most_rounds; can be repeated
    #[arg(long, value_name = "NAME=VALUES", value_parser = changed)]
    set: Vec<(String, Vec<Variable>)>,

    /// Rounds of each point, instead of the experiment's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Where files and configurations are kept [default: ~/.cache/linerate/bench]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    cache: Option<PathBuf>,

    /// The Debian 13 tree, which `linerate bench setup` makes [default: debian-13 in that folder]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    debian13: Option<PathBuf>,

    /// The servers' cores, as taskset -c writes them [default: the lower half]
    #[arg(long, value_name = "LIST", help_heading = "Machines")]
    server_cpus: Option<CpuList>,

    /// The load client's cores [default: the upper half]
    #[arg(long, value_name = "LIST", help_heading = "Machines")]
    client_cpus: Option<CpuList>,

    /// Where servers listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", help_heading = "Machines")]
    address: IpAddr,

    /// The interface whose counters show the load [default: the one that has the address]
    #[arg(long, value_name = "NAME", help_heading = "Machines")]
    interface: Option<String>,

    /// Machines that the load comes from, separated by commas, as ssh takes them: HOST or USER@HOST
    #[arg(long, value_name = "HOSTS", value_delimiter = ',', value_parser = host, help_heading = "Machines")]
    clients: Vec<String>,

    /// linerate on those machines
    #[arg(long, value_name = "PATH", default_value = "linerate", help_heading = "Machines")]
    client_binary: String,

    /// How to call ssh, like 'ssh -p 2222'
    #[arg(long, value_name = "COMMAND", default_value = "ssh", help_heading = "Machines")]
    ssh: String,
}

/// Does what is asked for.
///
/// # Errors
/// What kept it from being done.
pub(crate) fn bench(arguments: BenchArguments) -> Result<ExitCode, Box<dyn Error>> {
    match arguments.command {
        BenchCommand::List { variables: true, .. } => crate::output::print(variables().as_bytes())?,
        BenchCommand::List { name: Some(name), .. } => {
            crate::output::print(catalogue::text(&name)?.as_bytes())?
        }
        BenchCommand::List { .. } => crate::output::print(list()?.as_bytes())?,
        BenchCommand::Setup { names, cache, debian13, mirror } => {
            let options = Options { cache, debian13, ..Options::for_program(program()?) };
            let interrupted = interrupted_by_signals()?;
            let cache = linerate_bench::set_up(&names, &options, mirror.as_deref(), &interrupted)?;
            crate::output::print(format!("everything is there: {}\n", cache.display()).as_bytes())?;
        }
        BenchCommand::Run(arguments) => return run(&arguments),
        BenchCommand::Report { runs, output } => {
            let mut read: Vec<ExperimentRun> = Vec::new();
            for place in &runs {
                read.extend(linerate_bench::load_all(place)?);
            }
            let folder = output.unwrap_or_else(|| folder_of(&runs));
            let page = report::write(&read, &folder)?;
            crate::output::print(format!("{}\n", page.display()).as_bytes())?;
        }
        BenchCommand::Share { runs, output } => {
            let shared = linerate_bench::share(&runs, &output, &linerate_bench::Names::of_this_machine())?;
            let Shared { runs, .. } = &shared;
            let text =
                format!("{}{}: {runs} runs; read it before you send it\n", shared.text(), output.display());
            crate::output::print(text.as_bytes())?;
        }
        BenchCommand::Compare { before, after, fail_on_slower, relative_to, output } => {
            let folder = output.unwrap_or_else(|| after.clone());
            return compare(&before, &after, relative_to.as_deref(), fail_on_slower, &folder);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the report of these runs goes: the first one's folder.
fn folder_of(runs: &[PathBuf]) -> PathBuf {
    let here = || PathBuf::from(".");
    match runs.first() {
        Some(file) if file.is_file() => {
            file.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or_else(here, Path::to_path_buf)
        }
        first => first.cloned().unwrap_or_else(here),
    }
}

fn list() -> Result<String, Box<dyn Error>> {
    let width = EXPERIMENTS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, file) in EXPERIMENTS {
        let definition = Definition::parse(name, file, false)?;
        writeln!(text, "{name:<width$}  {}", definition.title)?;
    }
    for (name, file) in streams::EXPERIMENTS {
        let definition = StreamDefinition::parse(name, file, false)?;
        writeln!(text, "{name:<width$}  {}", definition.title)?;
    }
    Ok(text)
}

fn variables() -> String {
    let width = VARIABLES.iter().map(|variable| variable.name.len()).max().unwrap_or(0);
    let mut text: String = VARIABLES
        .iter()
        .map(|variable| format!("{:<width$}  {}\n", variable.name, variable.meaning))
        .collect();
    text.push_str("\nOf experiments of streams:\n");
    text.extend(streams::VARIABLES.iter().map(|(name, meaning)| format!("{name:<width$}  {meaning}\n")));
    text
}

fn run(arguments: &RunArguments) -> Result<ExitCode, Box<dyn Error>> {
    let interrupted = interrupted_by_signals()?;
    let options = options(arguments)?;
    if let Some(folder) = &arguments.resume {
        let finished = linerate_bench::resume(folder, &options, &interrupted)?;
        return told(&finished, &interrupted);
    }
    let mut status = ExitCode::SUCCESS;
    for name in &arguments.names {
        let output = match &arguments.output {
            Some(folder) if arguments.names.len() > 1 => {
                let stem = Path::new(name).file_stem().unwrap_or_default();
                Some(folder.join(stem))
            }
            output => output.clone(),
        };
        let finished = linerate_bench::run(name, &Options { output, ..options.clone() }, &interrupted)?;
        let told = told(&finished, &interrupted)?;
        if told != ExitCode::SUCCESS {
            status = told;
        }
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(status)
}

fn program() -> Result<PathBuf, String> {
    std::env::current_exe()
        .map_err(|error| format!("cannot find this program's own file, which serves and loads: {error}"))
}

fn options(arguments: &RunArguments) -> Result<Options, Box<dyn Error>> {
    let ssh: Vec<String> = arguments.ssh.split_whitespace().map(str::to_owned).collect();
    Ok(Options {
        command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        quick: arguments.quick,
        output: arguments.output.clone(),
        cache: arguments.cache.clone(),
        servers: arguments.servers.clone(),
        without: arguments.without.clone(),
        changed: arguments.set.iter().cloned().collect(),
        debian13: arguments.debian13.clone(),
        rounds: arguments.rounds,
        server_cpus: arguments.server_cpus.clone(),
        client_cpus: arguments.client_cpus.clone(),
        address: arguments.address,
        interface: arguments.interface.clone(),
        clients: arguments.clients.clone(),
        client_program: arguments.client_binary.clone(),
        ssh: if ssh.is_empty() { vec!["ssh".to_owned()] } else { ssh },
        ..Options::for_program(program()?)
    })
}

/// Writes the report, and says what was found and where it is.
fn told(finished: &Finished, interrupted: &AtomicBool) -> Result<ExitCode, Box<dyn Error>> {
    let Finished { folder, run } = finished;
    let page = report::write(std::slice::from_ref(run), folder)?;
    crate::output::print(format!("{}\n{}\n", report::text(run), page.display()).as_bytes())?;
    if interrupted.load(Ordering::Relaxed) && run.incomplete {
        let folder = folder.display();
        let _ = writeln!(io::stderr(), "interrupted; to go on: linerate bench run --resume {folder}");
        return Ok(ExitCode::from(FAILED));
    }
    let mut rounds = run.points.iter().flat_map(|point| &point.rounds);
    if !rounds.any(|round| matches!(round, Round::Measured(_))) {
        let _ = writeln!(io::stderr(), "every round failed");
        return Ok(ExitCode::from(FAILED));
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(
    before: &Path,
    after: &Path,
    relative_to: Option<&str>,
    fail_on_slower: Option<f64>,
    folder: &Path,
) -> Result<ExitCode, Box<dyn Error>> {
    let (before, after) = (linerate_bench::load(before)?, linerate_bench::load(after)?);
    let comparison = linerate_bench::compare(&before, &after, relative_to)?;
    let page = report::write_comparison(&before, &after, &comparison, folder)?;
    crate::output::print(format!("{comparison}{}\n", page.display()).as_bytes())?;
    let Some(percent) = fail_on_slower else { return Ok(ExitCode::SUCCESS) };
    let worse = comparison.worse_than(percent).count();
    if worse == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let _ = writeln!(io::stderr(), "{worse} figures have become worse by more than {percent} %");
    Ok(ExitCode::from(FAILED))
}

/// Set by the first INT or TERM. A second one is not needed: whatever goes on is ended at once.
fn interrupted_by_signals() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent),
        _ => Err("a number from 0 to 1000 is needed".to_owned()),
    }
}

/// `NAME=VALUE[,VALUE…]`
fn changed(text: &str) -> Result<(String, Vec<Variable>), String> {
    let (name, values) = text.split_once('=').ok_or("write it as NAME=VALUE or NAME=VALUE,VALUE")?;
    // A value is a number where it can be one, else a word.
    let values: Result<Vec<Variable>, _> = values.split(',').map(str::parse).collect();
    Ok((name.to_owned(), values.unwrap_or_default()))
}

/// What begins with a dash would be an option of ssh's.
fn host(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('-') || text.contains(char::is_whitespace) {
        return Err("HOST or USER@HOST is needed".to_owned());
    }
    Ok(text.to_owned())
}
