//! `linerate plan`: from its flags to a machine, a workload and their plan.

mod this_machine;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use linerate_plan::{Constants, Machine, NIC_GBIT, Report, Workload, presets, text};

use crate::usage_error::UsageError;

pub(crate) const EXAMPLES: &str = "\
Without --machine it is this machine, as far as it tells; --print-machine shows what was assumed.

Examples:
  linerate plan --machine media-server --workload mirror
      Gb/s, CPU, memory bandwidth and bottleneck of every engine, at 10 to 800 Gb/s.
  linerate plan --print-machine > mine.toml
  linerate plan --machine mine.toml --workload web --nic-gbit 25,100
      A description of this machine, to be corrected by hand, and a plan of it.
  linerate plan --list
  linerate plan --check
      The model beside published measurements, those that it was fitted to apart from the others.

Exit status: 0 if there is a plan; 1 if a description is wrong or missing; 2 if the command line is
wrong.";

/// The largest file that is taken for a description.
const MOST_BYTES: u64 = 1 << 20;
/// The most rates of a plan.
const MOST_RATES: usize = 100;

#[derive(Args, Debug)]
pub(crate) struct PlanArguments {
    /// The machine: a preset, a file of yours that ends in .toml, or this one
    #[arg(long, value_name = "NAME|FILE", default_value = "this", value_hint = clap::ValueHint::FilePath)]
    machine: String,

    /// The workload: a preset, or a file of yours that ends in .toml
    #[arg(long, value_name = "NAME|FILE", default_value = "web", value_hint = clap::ValueHint::FilePath)]
    workload: String,

    /// Rates of the adapter to look at, all its ports together, in Gb/s
    /// [default: 10,25,50,100,200,400,800]
    #[arg(long, value_name = "RATE,…", value_delimiter = ',')]
    nic_gbit: Vec<f64>,

    /// What the simulation's draws begin with; the same seed gives the same plan
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print the plan, or the check, as JSON (docs/schema/linerate-plan-1.json)
    #[arg(long)]
    json: bool,

    /// List the machines and workloads that there are
    #[arg(long, exclusive = true)]
    list: bool,

    /// Hold the model against published measurements, and print its constants with their sources
    #[arg(long, conflicts_with_all = ["machine", "workload", "nic_gbit", "seed", "print_machine", "print_workload"])]
    check: bool,

    /// Print the machine's description, for a file of your own
    #[arg(long, conflicts_with_all = ["json", "print_workload"])]
    print_machine: bool,

    /// Print the workload's description, for a file of your own
    #[arg(long, conflicts_with = "json")]
    print_workload: bool,
}

/// Makes the plan and prints it.
///
/// # Errors
/// A description is wrong or missing, or the plan cannot be written.
pub(crate) fn plan(arguments: &PlanArguments) -> Result<ExitCode, Box<dyn Error>> {
    let printed = match arguments {
        PlanArguments { list: true, .. } => list()?,
        PlanArguments { check: true, json, .. } => check(*json)?,
        PlanArguments { print_machine: true, .. } => machine_text(&arguments.machine)?,
        PlanArguments { print_workload: true, .. } => workload_text(&arguments.workload)?,
        _ => planned(arguments)?,
    };
    crate::output::print(printed.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn planned(arguments: &PlanArguments) -> Result<String, Box<dyn Error>> {
    let rates = if arguments.nic_gbit.is_empty() { &NIC_GBIT[..] } else { &arguments.nic_gbit };
    if rates.len() > MOST_RATES || rates.iter().any(|rate| !(0.001..=100_000.0).contains(rate)) {
        let message = format!("--nic-gbit takes up to {MOST_RATES} rates from 0.001 to 100000");
        return Err(UsageError::new("plan", message).into());
    }
    let machine = Machine::parse(&arguments.machine, &machine_text(&arguments.machine)?)?;
    let workload = Workload::parse(&arguments.workload, &workload_text(&arguments.workload)?)?;
    let rows = linerate_plan::plan(&machine, &workload, rates, arguments.seed);
    Ok(if arguments.json {
        Report::plan(&machine, &workload, arguments.seed, &rows).to_json()
    } else {
        text::plan(&machine, &workload, &rows)
    })
}

fn check(json: bool) -> Result<String, Box<dyn Error>> {
    let outcomes = linerate_plan::check(&Constants::PRESENT)?;
    if json {
        return Ok(Report::check(&outcomes).to_json());
    }
    Ok(format!(
        "{}\n{}\n{}",
        text::check(&outcomes),
        text::sensitivities(&linerate_plan::sensitivities()?),
        text::constants(&Constants::PRESENT.table())
    ))
}

fn list() -> Result<String, Box<dyn Error>> {
    let mut printed = String::from("Machines (--machine):\n");
    let line = |name: &str, title: &str| format!("  {name:<19} {title}\n");
    printed += &line("this", "This machine, as far as /proc and /sys tell");
    for (name, _) in presets::MACHINES {
        printed += &line(name, &presets::machine(name)?.title);
    }
    printed += "\nWorkloads (--workload):\n";
    for (name, _) in presets::WORKLOADS {
        printed += &line(name, &presets::workload(name)?.title);
    }
    Ok(printed)
}

fn machine_text(asked: &str) -> Result<String, Box<dyn Error>> {
    match asked {
        "this" => Ok(this_machine::describe()),
        _ => file_text(asked)?.map_or_else(|| Ok(presets::machine_text(asked)?.to_owned()), Ok),
    }
}

fn workload_text(asked: &str) -> Result<String, Box<dyn Error>> {
    file_text(asked)?.map_or_else(|| Ok(presets::workload_text(asked)?.to_owned()), Ok)
}

/// The text of a file whose name ends in `.toml`; `None` for other names, which are presets'.
fn file_text(asked: &str) -> Result<Option<String>, String> {
    let path = Path::new(asked);
    if path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(None);
    }
    let fault = |reason: std::io::Error| format!("cannot read the description {asked}: {reason}");
    let bytes = std::fs::metadata(path).map_err(fault)?.len();
    if bytes > MOST_BYTES {
        return Err(format!("{asked}: {bytes} bytes are too many for a description"));
    }
    std::fs::read_to_string(path).map(Some).map_err(fault)
}
