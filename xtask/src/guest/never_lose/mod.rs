//! `cargo xtask guest never-lose`: is `auto` ever dearer than the best of the engines?
//!
//! The question needs an adapter that encrypts, and what the answer is made of, differences of a few percent, needs better
//! than seconds of a busy machine. Here the adapter is the software one (nic/README.md), set to 850, 16,500 and 100,000
//! set-ups a second, and what is measured are instructions, in guests whose clock counts them: a second is 10⁹.
//!
//! [`plan`] has what is measured, [`inside`] measures in the guest, [`calibration`] has `linerate calibrate` find the costs
//! by which `auto` decides there, [`outcome`] makes a run of `linerate bench` of it, whose report is then drawn.

mod calibration;
mod inside;
mod outcome;
mod plan;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};
use linerate_bench::{RESULT_FILE, report};

use super::counted_guest::{CountedGuests, Limits, Said};
use crate::linerate::{self, workspace};
pub(super) use inside::Counters;
pub(crate) use inside::{Options as InsideOptions, run as run_inside};
use plan::{Adapter, SIZES_BYTES, Subject};

/// Files of 1 GB stay in memory, and emulated bytes are slow.
const LIMITS: Limits = Limits { seconds: 4 * 3600, memory_mib: 3072 };

/// Flags of `cargo xtask guest never-lose`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// The guest's kernel.
    #[arg(long, value_name = "LABEL", default_value = "6.12")]
    kernel: String,
    /// Lengths of files, in bytes; may be repeated. 1 kB, 10 kB, … 1 GB, if not said.
    #[arg(long, value_name = "BYTES")]
    size: Vec<u64>,
    /// Rounds of each point up to 100 kB; of 1 and 10 MB, which scatter, there are three times as many, of longer ones half.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Requests that are under way at a time, each on a connection of its own.
    #[arg(long, value_name = "REQUESTS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    at_a_time: u32,
    /// Clients that come at the same time with a connection for each request, as a question of its own: does anybody wait
    /// for the adapter of 850 set-ups a second? 0 leaves it out.
    #[arg(long, value_name = "CLIENTS", default_value_t = 500)]
    crowd: u32,
    /// Only the adapter of so many set-ups a second, beside none; may be repeated. All three, if not said.
    #[arg(long, value_name = "NUMBER", value_parser = ["850", "16500", "100000"])]
    set_ups: Vec<String>,
    /// Guests at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    guests: u8,
    /// The linerate binary; without it, `cargo build --release --package linerate` makes one.
    #[arg(long, value_name = "FILE")]
    linerate: Option<PathBuf>,
    /// Where the result and its report go.
    #[arg(long, value_name = "FOLDER", default_value = "target/guest/never-lose")]
    output: PathBuf,
}

impl Options {
    /// Whether this adapter is one of those that are asked for.
    fn names(&self, adapter: Adapter) -> bool {
        self.set_ups.is_empty() || self.set_ups.contains(&adapter.set_ups_per_s().to_string())
    }
}

/// Measures all, two guests at a time; writes result and report, and prints what was found.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = workspace();
    let guests = CountedGuests::prepare(&workspace)?;
    if !guests.kernels()?.contains(&options.kernel) {
        bail!("there is no kernel {} (guest/run --kernels says which there are)", options.kernel);
    }
    let program = linerate::find(options.linerate.as_deref(), &workspace)?;
    let sizes = if options.size.is_empty() { SIZES_BYTES.to_vec() } else { options.size.clone() };
    // The engines that need no adapter are measured once, with its encryption switched off.
    let adapters = Adapter::ALL.into_iter().filter(|adapter| options.names(*adapter));
    let parts: Vec<Option<Adapter>> = std::iter::once(None).chain(adapters.map(Some)).collect();
    let measure = |part: Option<Adapter>| -> Result<Said> {
        let name = part.map_or("no".to_owned(), |adapter| adapter.set_ups_per_s().to_string());
        let mut arguments: Vec<OsString> = vec!["never-lose-inside".into(), "--linerate".into()];
        arguments.push(program.clone().into());
        for subject in Subject::behind(part) {
            arguments.extend(["--subject".into(), subject.name().into()]);
        }
        for parameter in part.map_or(&[][..], Adapter::parameters) {
            arguments.extend(["--adapter".into(), parameter.into()]);
        }
        for size in &sizes {
            arguments.extend(["--size".into(), size.to_string().into()]);
        }
        arguments.extend(["--rounds".into(), options.rounds.to_string().into()]);
        arguments.extend(["--at-a-time".into(), options.at_a_time.to_string().into()]);
        if part.is_none_or(|adapter| adapter == Adapter::SetUps850) {
            arguments.extend(["--crowd".into(), options.crowd.to_string().into()]);
        }
        let said = guests.run(&options.kernel, &format!("never-lose-{name}"), LIMITS, &arguments)?;
        eprintln!("measured: {name} set-ups a second");
        Ok(said)
    };
    // On a busy machine a guest may not come up in its time.
    let measure = |part: Option<Adapter>| {
        measure(part).or_else(|error| {
            eprintln!("once more, because: {error:#}");
            measure(part)
        })
    };
    let waiting = Mutex::new(parts.into_iter());
    let next = || waiting.lock().ok().and_then(|mut parts| parts.next());
    let tried: Vec<(Option<Adapter>, Result<Said>)> = std::thread::scope(|scope| {
        let work = || std::iter::from_fn(next).map(|part| (part, measure(part))).collect::<Vec<_>>();
        let threads: Vec<_> = (0..options.guests).map(|_| scope.spawn(work)).collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a thread panicked")));
        joined.collect::<Result<Vec<_>>>()
    })?
    .into_iter()
    .flatten()
    .collect();
    // A guest that failed costs its own points alone.
    let (found, failures) = apart(tried);
    let mut run = outcome::of(&found, options.rounds, options.at_a_time)?;
    run.incomplete = !failures.is_empty();
    run.warnings.extend(failures.iter().cloned());
    fs::create_dir_all(&options.output)
        .with_context(|| format!("cannot create {}", options.output.display()))?;
    let result = options.output.join(RESULT_FILE);
    fs::write(&result, serde_json::to_vec_pretty(&run)?)
        .with_context(|| format!("cannot write {}", result.display()))?;
    let page = report::write(std::slice::from_ref(&run), &options.output)?;
    println!("{}\n{}\n{}", report::text(&run), outcome::table(&run), outcome::crowds(&found)?);
    println!("{}", page.display());
    if !failures.is_empty() {
        bail!("what the other guests measured is written; {}", failures.join("; "));
    }
    Ok(())
}

/// What guests found, and in words what became of those that failed.
fn apart(tried: Vec<(Option<Adapter>, Result<Said>)>) -> (Vec<(Option<Adapter>, Said)>, Vec<String>) {
    let mut found = Vec::new();
    let mut failures = Vec::new();
    for (part, result) in tried {
        match (part, result) {
            (_, Ok(said)) => found.push((part, said)),
            (None, Err(error)) => failures.push(format!("nothing without an adapter: {error:#}")),
            (Some(adapter), Err(error)) => {
                failures.push(format!("nothing behind {} set-ups/s: {error:#}", adapter.set_ups_per_s()));
            }
        }
    }
    (found, failures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn each_adapter_can_be_asked_for_by_its_set_ups() {
        let asked = |flags: &[&str]| -> Vec<Adapter> {
            let line = Line::try_parse_from(["never-lose"].iter().chain(flags)).unwrap();
            Adapter::ALL.into_iter().filter(|adapter| line.options.names(*adapter)).collect()
        };
        assert_eq!(asked(&[]), Adapter::ALL);
        for adapter in Adapter::ALL {
            assert_eq!(asked(&["--set-ups", &adapter.set_ups_per_s().to_string()]), [adapter]);
        }
        assert_eq!(asked(&["--set-ups", "16500", "--set-ups", "100000"]), Adapter::ALL[1..]);
        assert!(Line::try_parse_from(["never-lose", "--set-ups", "17000"]).is_err());
    }

    #[test]
    fn a_guest_that_fails_takes_no_others_results_with_it() {
        let said = |output: &str| Said { output: output.to_owned(), marks: Vec::new() };
        let tried = vec![
            (None, Ok(said("engines"))),
            (Some(Adapter::SetUps16500), Err(anyhow!("it did not come up"))),
            (Some(Adapter::SetUps100000), Ok(said("fast"))),
        ];
        let (found, failures) = apart(tried);
        let outputs: Vec<_> = found.iter().map(|(_, said)| said.output.as_str()).collect();
        assert_eq!(outputs, ["engines", "fast"]);
        assert_eq!(failures, ["nothing behind 16500 set-ups/s: it did not come up"]);
    }
}
