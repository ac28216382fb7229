//! Measuring an experiment: from what was asked for to a folder with its result.
//!
//! What may go wrong on the way costs at most the round in which it does: a result is written after every slice, a round
//! that fails is marked as failed, and what was broken off can be gone on with ([`resume`]).

mod adjust;
mod complaint;
mod limits;
pub(crate) mod networks;
mod pool;
mod prepare;
mod quiet;
mod same_servers;
mod seal_and_copy;
mod session;
mod settling;
mod slice;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use linerate_config::CpuList;

use crate::definition::{Definition, catalogue};
use crate::error::Result;
use crate::files::Files;
use crate::plan::ExperimentPlan;
use crate::result::{ExperimentRun, Variable};
use crate::servers::debian13;
use crate::{store, streams};
pub(crate) use prepare::{clients_and_cores, lock_cache};
pub(crate) use same_servers::check_servers;
use session::Session;

/// How an experiment is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// `linerate` itself, which serves and loads.
    pub program: PathBuf,
    /// The whole command line, for the result.
    pub command: Vec<String>,
    /// As the experiments' files say for quick runs.
    pub quick: bool,
    /// The folder of the result; one named after the time and the experiment where there is none.
    pub output: Option<PathBuf>,
    /// Where files and configurations are kept; the user's cache folder where there is none.
    pub cache: Option<PathBuf>,
    /// Of the experiment's servers, only these; all of them where there is none.
    pub servers: Vec<String>,
    /// Of the experiment's servers, not these.
    pub without: Vec<String>,
    /// Rounds, instead of the experiment's.
    pub rounds: Option<u32>,
    /// Variables of the load, swept where they have several values, and times: `warmup_s`, `measured_s`, `most_rounds`.
    pub changed: BTreeMap<String, Vec<Variable>>,
    /// The Debian 13 tree; the one in the cache folder where there is none.
    pub debian13: Option<PathBuf>,
    /// The servers' cores.
    pub server_cpus: Option<CpuList>,
    /// The load client's cores.
    pub client_cpus: Option<CpuList>,
    /// Where servers listen.
    pub address: IpAddr,
    /// The network interface that the load goes through, for its counters; found by the address where there is none.
    pub interface: Option<String>,
    /// The machines that the load comes from; this one where there is none.
    pub clients: Vec<String>,
    /// `linerate` on those machines.
    pub client_program: String,
    /// ssh, with its options.
    pub ssh: Vec<String>,
}

impl Options {
    /// An experiment as its file has it, on loopback, with this program as server and client.
    #[must_use]
    pub fn for_program(program: PathBuf) -> Self {
        Self {
            program,
            command: Vec::new(),
            quick: false,
            output: None,
            cache: None,
            servers: Vec::new(),
            without: Vec::new(),
            rounds: None,
            changed: BTreeMap::new(),
            debian13: None,
            server_cpus: None,
            client_cpus: None,
            address: Ipv4Addr::LOCALHOST.into(),
            interface: None,
            clients: Vec::new(),
            client_program: "linerate".to_owned(),
            ssh: vec!["ssh".to_owned()],
        }
    }
}

/// A run that is over, or was broken off.
#[derive(Debug)]
pub struct Finished {
    /// Its folder.
    pub folder: PathBuf,
    /// What was measured.
    pub run: ExperimentRun,
}

/// Runs an experiment, a built-in one or a file.
///
/// # Errors
/// What keeps it from measuring anything; or where the result could not be written, and where it is instead.
pub fn run(asked: &str, options: &Options, interrupted: &AtomicBool) -> Result<Finished> {
    if let Some(text) = streams::text_of(asked) {
        return streams::run(asked, &text, options, interrupted);
    }
    let mut definition = catalogue::find(asked, options.quick)?;
    adjust::adjust(&mut definition, options)?;
    Session::begin(definition, options, interrupted)?.measure()
}

/// Makes beforehand what runs need: the Debian 13 tree (from `mirror`, or debootstrap's own choice), and the files of the
/// experiments `asked`. Returns the cache folder.
///
/// # Errors
/// What is missing for that, or went wrong.
pub fn set_up(
    asked: &[String],
    options: &Options,
    mirror: Option<&str>,
    interrupted: &AtomicBool,
) -> Result<PathBuf> {
    let (cache, _alone) = prepare::lock_cache(options)?;
    let files = Files::in_cache(&cache)?;
    // Streams take no files.
    for name in asked.iter().filter(|name| streams::text_of(name).is_none()) {
        let definition = catalogue::find(name, options.quick)?;
        for point in &ExperimentPlan::new(&definition, &[true]).points {
            files.make(&point.workload, interrupted)?;
        }
    }
    debian13::make(&prepare::programs(options, &cache).debian13, mirror)?;
    Ok(cache)
}

/// Goes on with the run in `folder`. Of `options` only what concerns programs and folders counts; everything else is as
/// it was.
///
/// # Errors
/// As [`run`]; also where the servers are not the ones that the run began with.
pub fn resume(folder: &Path, options: &Options, interrupted: &AtomicBool) -> Result<Finished> {
    let earlier = store::load(folder)?;
    let options = prepare::as_before(options, folder, &earlier)?;
    if streams::definition::is_of_streams(&earlier.definition) {
        return streams::resume(earlier, &options, interrupted);
    }
    let mut definition = Definition::parse(&earlier.name, &earlier.definition, earlier.quick)?;
    adjust::adjust(&mut definition, &options)?;
    Session::resume(definition, earlier, &options, interrupted)?.measure()
}
