//! A run from its first slice to its last: order, progress, saving, failures, interruptions.

use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use super::networks::{NetworkSetting, Networks};
use super::pool::{Pool, Wish};
use super::prepare::{self, Contestant};
use super::slice::{self, Span, is_interrupted};
use super::{Finished, Options, check_servers, limits, quiet, seal_and_copy, settling};
use crate::client::Clients;
use crate::compare::name_of;
use crate::cores::Cores;
use crate::definition::{CacheState, Definition, Workload};
use crate::error::{Error, Result};
use crate::files::Files;
use crate::floor;
use crate::plan::{ExperimentPlan, Slice};
use crate::progress::{Progress, duration_text};
use crate::quantity;
use crate::report::number;
use crate::result::{ExperimentRun, Point, Round, ServerUsed, Setup};
use crate::store::Store;

/// How fast files are taken to be made, in bytes per second.
const FILE_BYTES_PER_S: f64 = 5e8;

/// A quick run adds no round that would make it longer than this, in seconds: with servers and files before it, it stays
/// below two minutes.
const QUICK_LIMIT_S: f64 = 95.0;

/// Starting a server and comparing what it serves, in seconds.
const START_AND_VERIFY_S: f64 = 1.0;

/// A run in progress.
#[derive(Debug)]
pub(super) struct Session<'a> {
    definition: Definition,
    contestants: Vec<Contestant>,
    plan: ExperimentPlan,
    clients: Clients,
    files: Files,
    pool: Pool,
    run: ExperimentRun,
    store: Store,
    interrupted: &'a AtomicBool,
    /// The last result could not be written.
    cannot_write: bool,
    /// Held for as long as it runs.
    _alone: File,
}

impl<'a> Session<'a> {
    /// A new run.
    pub(super) fn begin(
        definition: Definition,
        options: &Options,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        let mut skipped = Vec::new();
        let mut session = Self::prepare(definition, options, interrupted, &mut skipped, None)?;
        session.run.skipped = skipped;
        session.run.warnings = quiet::warnings(&Cores {
            server: session.pool.cores.clone(),
            client: session.clients.cores().to_vec(),
        });
        session.run.environment = linerate_environment::capture();
        session.run.points = session.plan.points.iter().map(|point| session.empty_point(point)).collect();
        Ok(session)
    }

    /// Goes on with an earlier run, whose servers have to be what they were.
    pub(super) fn resume(
        definition: Definition,
        earlier: ExperimentRun,
        options: &Options,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        let mut skipped = Vec::new();
        let folder = options.output.clone().unwrap_or_default();
        let mut session =
            Self::prepare(definition, options, interrupted, &mut skipped, Some(Store { folder }))?;
        check_servers(&earlier, &session.run)?;
        let matches =
            |(point, planned): (&Point, _)| session.empty_point(planned).variables == point.variables;
        if earlier.points.len() != session.plan.points.len()
            || !earlier.points.iter().zip(&session.plan.points).all(matches)
        {
            return Err(Error::Asked(
                "cannot go on: what can be measured here is not what it was when the run began".to_owned(),
            ));
        }
        session.run = earlier;
        Ok(session)
    }

    fn prepare(
        definition: Definition,
        options: &Options,
        interrupted: &'a AtomicBool,
        skipped: &mut Vec<String>,
        store: Option<Store>,
    ) -> Result<Self> {
        limits::raise_file_limit();
        let (cache, alone) = prepare::lock_cache(options)?;
        let (clients, cores) = prepare::clients_and_cores(options)?;
        let files = Files::in_cache(&cache)?;
        let programs = prepare::programs(options, &cache);
        let contestants = prepare::contestants(&definition, &programs, skipped);
        let mut networks =
            Networks::new(options.address, options.interface.clone(), options.clients.is_empty());
        let plan =
            prepare::feasible_plan(&definition, &contestants, &files, &clients, &mut networks, skipped);
        if plan.points.is_empty() {
            let reasons = skipped.join("\n  ");
            return Err(Error::Machine(format!(
                "{}: nothing can be measured here:\n  {reasons}",
                definition.name
            )));
        }
        let most_connections = plan.points.iter().map(|point| point.workload.connections).max().unwrap_or(1);
        let pool = Pool::new(networks, cache.join("run"), cores.server.clone(), most_connections)?;
        let store = match store {
            Some(store) => store,
            None => Store::create(options.output.as_deref(), &definition.name, SystemTime::now())?,
        };
        let numbers = |cores: &[usize]| cores.iter().filter_map(|core| u32::try_from(*core).ok()).collect();
        let setup = Setup {
            address: options.address.to_string(),
            server_cores: numbers(&cores.server),
            client_cores: numbers(&cores.client),
            client_hosts: options.clients.clone(),
        };
        let run = empty_run(&definition, options, setup, &contestants);
        Ok(Self {
            definition,
            contestants,
            plan,
            clients,
            files,
            pool,
            run,
            store,
            interrupted,
            cannot_write: false,
            _alone: alone,
        })
    }

    fn empty_point(&self, planned: &crate::plan::PlannedPoint) -> Point {
        let candidate = &self.contestants[planned.server].candidate;
        let setting = NetworkSetting::of(planned.server, candidate, &planned.workload);
        let network = self.pool.networks.of(&setting).map(|(_, used)| used.clone());
        Point {
            network: network.unwrap_or_default(),
            server: candidate.name.clone(),
            variables: planned.variables.clone(),
            client_command: Vec::new(),
            rounds: Vec::new(),
        }
    }

    /// Measures everything that is missing.
    pub(super) fn measure(mut self) -> Result<Finished> {
        let missing = |slice: &Slice| self.run.points[slice.point].rounds.len() <= slice.round as usize;
        let slices: Vec<Slice> = self.plan.slices().into_iter().filter(missing).collect();
        let expected_s = self.plan.expected_s(&slices);
        let mut progress = Progress::new(slices.len(), expected_s);
        self.announce(&mut progress, slices.len(), expected_s);
        self.run.incomplete = true;
        self.store.save(&self.run)?;
        self.make_files(&mut progress)?;
        let began = Instant::now();
        if self.measure_slices(slices, &mut progress) {
            self.settle(began, &mut progress);
        }
        progress.close();
        let planned = self.plan.rounds() as usize;
        self.run.incomplete = self.run.points.iter().any(|point| point.rounds.len() < planned);
        if self.run.points.iter().all(|point| point.rounds.is_empty()) {
            return Err(Error::Interrupted);
        }
        self.store.save_somewhere(&self.run)?;
        Ok(Finished { folder: self.store.folder, run: self.run })
    }

    /// Measures slices, and saves each; false where we were told to stop.
    fn measure_slices(&mut self, slices: Vec<Slice>, progress: &mut Progress) -> bool {
        for slice in slices {
            if !self.measure_slice(slice, progress) {
                return false;
            }
            match self.store.save(&self.run) {
                Ok(()) => self.cannot_write = false,
                Err(error) => {
                    if !std::mem::replace(&mut self.cannot_write, true) {
                        progress
                            .say(&format!("{error}. The run goes on, what is measured is kept in memory."));
                    }
                }
            }
        }
        true
    }

    /// Adds rounds where it is not settled what a point costs beside plaintext, as long as that may take.
    fn settle(&mut self, began: Instant, progress: &mut Progress) {
        let mut told = false;
        loop {
            let mut added = false;
            for group in self.plan.groups().to_vec() {
                let Some(slices) = settling::next_round(&self.run, &self.plan, &group) else { continue };
                let expected_s = self.plan.expected_s(&slices);
                if self.run.quick && began.elapsed().as_secs_f64() + expected_s > QUICK_LIMIT_S {
                    continue;
                }
                if !std::mem::replace(&mut told, true) {
                    progress
                        .say("rounds are added where they leave open what a server costs beside plaintext");
                }
                progress.add(slices.len(), expected_s);
                if !self.measure_slices(slices, progress) {
                    return;
                }
                added = true;
            }
            if !added {
                return;
            }
        }
    }

    fn announce(&self, progress: &mut Progress, slices: usize, expected_s: f64) {
        for skipped in &self.run.skipped {
            progress.say(&format!("left out: {skipped}"));
        }
        for warning in &self.run.warnings {
            progress.say(&format!("WARNING: {warning}"));
        }
        let missing_bytes: f64 =
            self.file_sets().iter().map(|workload| self.files.missing_bytes(workload) as f64).sum();
        let servers = self.contestants.len();
        let whole_s = expected_s + missing_bytes / FILE_BYTES_PER_S + START_AND_VERIFY_S * servers as f64;
        progress.say(&format!(
            "{}: {servers} servers, {} points, {} rounds: {slices} slices, about {}{}; the result will be in {}",
            self.definition.name,
            self.plan.points.len(),
            self.plan.rounds(),
            duration_text(whole_s),
            self.longest(expected_s),
            self.store.folder.display()
        ));
    }

    /// How long it may take where rounds differ much, in words.
    fn longest(&self, expected_s: f64) -> String {
        let more = f64::from(self.plan.most_rounds()) / f64::from(self.plan.rounds().max(1));
        match more {
            more if more <= 1.0 => String::new(),
            _ if self.run.quick => " (two minutes where rounds differ)".to_owned(),
            more => format!(" (up to {} where rounds differ)", duration_text(expected_s * more)),
        }
    }

    /// One load for each set of files.
    fn file_sets(&self) -> Vec<&Workload> {
        let mut sets: Vec<&Workload> = Vec::new();
        for point in &self.plan.points {
            let workload = &point.workload;
            let is_known =
                |set: &&Workload| set.file_bytes == workload.file_bytes && set.files >= workload.files;
            if !sets.iter().any(is_known) {
                sets.push(workload);
            }
        }
        sets
    }

    fn make_files(&self, progress: &mut Progress) -> Result<()> {
        for workload in self.file_sets() {
            if self.files.missing_bytes(workload) > 0 {
                progress.show(&format!("making {} files of {} bytes", workload.files, workload.file_bytes));
                self.files.make(workload, self.interrupted)?;
            }
            if workload.cache == CacheState::Hot {
                self.files.warm(workload)?;
            }
        }
        Ok(())
    }

    /// Measures one slice; false where we were told to stop.
    fn measure_slice(&mut self, slice: Slice, progress: &mut Progress) -> bool {
        if is_interrupted(self.interrupted) {
            return false;
        }
        let planned = &self.plan.points[slice.point];
        let contestant = &self.contestants[planned.server];
        let name = name_of(&contestant.candidate.name, &planned.variables);
        let is_added = slice.round >= self.plan.rounds();
        let rounds = if is_added { self.plan.most_rounds() } else { self.plan.rounds() };
        progress.slice(&name, slice.round, rounds);
        let is_hot_after_cold = planned.workload.cache == CacheState::Hot && self.has_cold_points();
        if is_hot_after_cold && let Err(error) = self.files.warm(&planned.workload) {
            progress.say(&error.to_string());
        }
        let wish = Wish {
            server: planned.server,
            contestant,
            workload: &planned.workload,
            files: &self.files,
            clients: &self.clients,
            interrupted: self.interrupted,
        };
        let time = self.definition.time;
        let span = Span { warmup_s: time.warmup_s, measured_s: time.measured_s };
        let Some(mut outcome) = slice::measure(&mut self.pool, wish, span) else { return false };
        if let Round::Measured(measured) = &mut outcome.round
            && !contestant.candidate.is_plaintext()
        {
            measured.seal_and_copy =
                seal_and_copy::measure(&self.run, &planned.workload, &measured.load, &self.pool.cores);
        }
        progress.slice_done(self.plan.slice_s(slice.point));
        self.tell(&name, slice.round, &outcome.round, progress);
        let point = &mut self.run.points[slice.point];
        if point.client_command.is_empty() {
            point.client_command = outcome.client_command;
        }
        point.rounds.push(outcome.round);
        self.run.floor = floor::of(&self.run);
        self.note_launch(planned.server);
        true
    }

    fn has_cold_points(&self) -> bool {
        self.plan.points.iter().any(|point| point.workload.cache == CacheState::Cold)
    }

    fn tell(&self, name: &str, round: u32, outcome: &Round, progress: &mut Progress) {
        match outcome {
            Round::Measured(measured) => {
                let figures = self.definition.quantities.iter().filter_map(|name| quantity::named(name));
                let figures: Vec<String> = figures
                    .filter_map(|figure| {
                        Some(format!("{} {}", number::short(*(figure.read)(measured).value()?), figure.unit))
                    })
                    .collect();
                progress.show(&format!("{name}: {}", figures.join(", ")));
            }
            Round::Failed { reason, log } => {
                progress.say(&format!("{name}, round {}: failed: {reason}", round + 1));
                for line in log {
                    progress.say(&format!("    {line}"));
                }
            }
        }
    }

    /// What the server was started with goes into the result.
    fn note_launch(&mut self, server: usize) {
        if let (Some((command, configuration)), Some(used)) =
            (self.pool.launched(server), self.run.servers.get_mut(server))
        {
            used.command = command;
            used.configuration = configuration;
        }
    }
}

fn empty_run(
    definition: &Definition,
    options: &Options,
    setup: Setup,
    contestants: &[Contestant],
) -> ExperimentRun {
    let servers = contestants.iter().map(|Contestant { candidate, version }| ServerUsed {
        name: candidate.name.clone(),
        version: version.clone(),
        command: Vec::new(),
        configuration: String::new(),
        plaintext: candidate.is_plaintext(),
    });
    definition.begin_run(definition.time.rounds, options, setup, servers.collect())
}
