//! A run of streams from its first slice to its last: both ends are started for each, and the client's report is read.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use linerate_suite::CipherSuite;

use super::definition::{StreamDefinition, StreamLoad, Way};
use super::measured::{self, Measured};
use super::program::Sender;
use crate::cores::{Cores, spawn_on};
use crate::error::{Error, Result};
use crate::floor;
use crate::progress::Progress;
use crate::quantity;
use crate::report::number;
use crate::result::{ExperimentRun, Point, Reading, Round, SealAndCopy, ServerUsed, Setup, Variable};
use crate::run::networks::Networks;
use crate::run::{Finished, Options, check_servers};
use crate::secret;
use crate::store::Store;

/// What starting and ending both ends takes beside the time of a slice, in seconds.
const SLICE_OVERHEAD_S: f64 = 0.8;
/// What a slice may take beyond its time.
const GRACE: Duration = Duration::from_secs(60);
/// How long an end that listens may take to say so.
const LISTENING_TIME: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);
/// A port that is free in a namespace of our own.
const PORT: u16 = 5201;
/// Plaintext of a full record.
const RECORD_BYTES: usize = 16_384;

/// A process that is ended with the value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is to be measured: a sender, by its place, and its load.
struct Planned {
    sender: usize,
    load: StreamLoad,
}

pub(super) struct Session<'a> {
    definition: StreamDefinition,
    options: &'a Options,
    interrupted: &'a AtomicBool,
    senders: Vec<Sender>,
    networks: Networks,
    cores: Cores,
    planned: Vec<Planned>,
    /// Senders that this machine does not carry: they are tried once.
    lacking: Vec<bool>,
    folder: PathBuf,
    secret: PathBuf,
    run: ExperimentRun,
    store: Store,
    _alone: File,
}

impl<'a> Session<'a> {
    /// A new run.
    pub(super) fn begin(
        definition: StreamDefinition,
        options: &'a Options,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        Self::prepare(definition, options, interrupted, None)
    }

    /// Goes on with an earlier run, whose servers have to be what they were. What has no round yet is tried again, also where it
    /// could not be had.
    pub(super) fn resume(
        definition: StreamDefinition,
        earlier: ExperimentRun,
        options: &'a Options,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        let store = Store { folder: options.output.clone().unwrap_or_default() };
        let mut session = Self::prepare(definition, options, interrupted, Some(store))?;
        check_servers(&earlier, &session.run)?;
        let points = joined(std::mem::take(&mut session.run.points), earlier.points.clone())?;
        session.run = ExperimentRun { points, skipped: std::mem::take(&mut session.run.skipped), ..earlier };
        Ok(session)
    }

    fn prepare(
        definition: StreamDefinition,
        options: &'a Options,
        interrupted: &'a AtomicBool,
        store: Option<Store>,
    ) -> Result<Self> {
        let (cache, alone) = crate::run::lock_cache(options)?;
        let (_, cores) = crate::run::clients_and_cores(options)?;
        let mut skipped = Vec::new();
        let mut senders = Vec::new();
        for name in &definition.servers {
            match Sender::find(name, &options.program) {
                Ok(sender) => senders.push(sender),
                Err(reason) => skipped.push(reason),
            }
        }
        let mut networks =
            Networks::new(options.address, options.interface.clone(), options.clients.is_empty());
        let (planned, points) = plan(&definition, &senders, &mut networks, &mut skipped);
        if planned.is_empty() {
            let reasons = skipped.join("\n  ");
            return Err(Error::Machine(format!(
                "{}: nothing can be measured here:\n  {reasons}",
                definition.name
            )));
        }
        let folder = cache.join("streams");
        fs::create_dir_all(&folder).map_err(Error::file("cannot create", &folder))?;
        let secret = folder.join("secret");
        write_secret(&secret)?;
        let store = match store {
            Some(store) => store,
            None => Store::create(options.output.as_deref(), &definition.name, SystemTime::now())?,
        };
        let run = empty_run(&definition, options, &cores, &senders, points, skipped);
        let lacking = vec![false; senders.len()];
        Ok(Self {
            definition,
            options,
            interrupted,
            senders,
            networks,
            cores,
            planned,
            lacking,
            folder,
            secret,
            run,
            store,
            _alone: alone,
        })
    }

    /// Every round goes through all points; senders follow each other at each, in an order that rotates.
    pub(super) fn measure(mut self) -> Result<Finished> {
        let rounds = self.definition.time.rounds;
        let done: usize = self.run.points.iter().map(|point| point.rounds.len().min(rounds as usize)).sum();
        let slices = self.planned.len() * rounds as usize - done;
        let slice_s = self.definition.time.measured_s + SLICE_OVERHEAD_S;
        let mut progress = Progress::new(slices, slice_s * slices as f64);
        'all: for round in 0..rounds {
            for group in self.groups() {
                for at in 0..group.len() {
                    let place = group[(at + round as usize) % group.len()];
                    if self.run.points[place].rounds.len() > round as usize {
                        continue;
                    }
                    let Some(outcome) = self.slice(place, round, &mut progress) else { break 'all };
                    progress.slice_done(slice_s);
                    if let Some(outcome) = outcome {
                        self.run.points[place].rounds.push(outcome);
                    }
                }
            }
            self.run.floor = floor::of(&self.run);
            self.store.save(&self.run)?;
        }
        progress.close();
        self.run.points.retain(|point| !point.rounds.is_empty());
        self.run.incomplete = self.run.points.iter().any(|point| point.rounds.len() < rounds as usize);
        if self.run.points.is_empty() {
            return Err(if self.interrupted.load(Ordering::Relaxed) {
                Error::Interrupted
            } else {
                Error::Machine(format!("nothing can be measured here:\n  {}", self.run.skipped.join("\n  ")))
            });
        }
        self.store.save_somewhere(&self.run)?;
        Ok(Finished { folder: self.store.folder, run: self.run })
    }

    /// Points that differ by their sender alone.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (place, planned) in self.planned.iter().enumerate() {
            match groups.iter_mut().find(|group| self.planned[group[0]].load == planned.load) {
                Some(group) => group.push(place),
                None => groups.push(vec![place]),
            }
        }
        groups
    }

    /// One sender at one point, once. The outer `None`: we were told to stop. The inner one: it cannot be had here.
    fn slice(&mut self, place: usize, round: u32, progress: &mut Progress) -> Option<Option<Round>> {
        if self.interrupted.load(Ordering::Relaxed) {
            return None;
        }
        let planned = &self.planned[place];
        let (sender, load) = (self.senders[planned.sender].clone(), planned.load.clone());
        if self.lacking[planned.sender] {
            return Some(None);
        }
        let sender_place = planned.sender;
        progress.slice(&sender.name, round, self.definition.time.rounds);
        let outcome = self.once(place, &sender, &load);
        if self.interrupted.load(Ordering::Relaxed) {
            return None;
        }
        match outcome {
            Ok(measured) => {
                let figures = self.definition.quantities.iter().filter_map(|name| quantity::named(name));
                let figures: Vec<String> = figures
                    .filter_map(|figure| {
                        let value = *(figure.read)(&measured.measurement).value()?;
                        Some(format!("{} {}", number::short(value), figure.unit))
                    })
                    .collect();
                progress.show(&format!("{}: {}", sender.name, figures.join(", ")));
                let mut measurement = measured.measurement;
                if !sender.is_plaintext() {
                    measurement.seal_and_copy = self.seal_and_copy(&load, measured.suite.as_deref());
                }
                Some(Some(Round::Measured(Box::new(measurement))))
            }
            Err(Failure::Lacking(reason)) => {
                let reason = format!("{}: {reason}", sender.name);
                progress.say(&reason);
                self.run.skipped.push(reason);
                self.lacking[sender_place] = true;
                Some(None)
            }
            Err(Failure::Failed(reason)) => {
                progress.say(&format!("{}, round {}: failed: {reason}", sender.name, round + 1));
                Some(Some(Round::Failed { reason, log: Vec::new() }))
            }
        }
    }

    fn once(
        &mut self,
        place: usize,
        sender: &Sender,
        load: &StreamLoad,
    ) -> std::result::Result<Measured, Failure> {
        let failed = |reason: String| Failure::Failed(reason);
        let (network, _) =
            self.networks.of(&load.setting()).ok_or_else(|| failed("the network is gone".to_owned()))?;
        let ip = network.server_address();
        let port = if network.shares_ports() { free_port(ip).map_err(failed)? } else { PORT };
        let address = SocketAddr::new(ip, port);
        let listener = network.at_server(sender.listener(address, &self.secret));
        if let Some(used) = self.run.servers.iter_mut().find(|used| used.name == sender.name) {
            used.command.clone_from(&listener);
        }
        let mut listening = Ended(self.start(&listener, &self.cores.server).map_err(failed)?);
        wait_for_words(&mut listening.0, sender.listening_words()).map_err(failed)?;
        let measured_s = self.definition.time.measured_s;
        let (words, input) = match self.options.clients.first() {
            None => {
                let program = self.options.program.to_string_lossy();
                let secret = self.secret.to_string_lossy();
                (network.at_client(sender.client(load, address, measured_s, &program, &secret)), None)
            }
            // The secret goes by standard input: no file of it is left there.
            Some(host) => {
                let program = &self.options.client_program;
                let line = sender.client(load, address, measured_s, program, "/dev/stdin");
                let line: Vec<String> = line.iter().map(|word| crate::client::shell_quoted(word)).collect();
                let mut words = self.options.ssh.clone();
                words.extend([host.clone(), "--".to_owned(), line.join(" ")]);
                (words, Some(&self.secret))
            }
        };
        if self.run.points[place].client_command.is_empty() {
            self.run.points[place].client_command.clone_from(&words);
        }
        let limit = Duration::from_secs_f64(measured_s) + GRACE;
        let (succeeded, printed, complaint) = self.client_says(&words, input, limit).map_err(failed)?;
        match measured::read(&printed, load.direction) {
            Ok(measured) => Ok(measured),
            Err(reason) if succeeded || !printed.trim().is_empty() => Err(failed(reason)),
            Err(_) => {
                let complaint = complaint.trim().trim_start_matches("error: ").to_owned();
                Err(if complaint.contains(" engine: ") {
                    Failure::Lacking(complaint)
                } else {
                    failed(complaint)
                })
            }
        }
    }

    fn start(&self, words: &[String], cores: &[usize]) -> std::result::Result<Child, String> {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env("STATE_DIRECTORY", &self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        spawn_on(cores, &mut command).map_err(|error| format!("cannot run {}: {error}", words[0]))
    }

    /// Runs the client to its end: whether it succeeded, what it printed, and what it complained of.
    fn client_says(
        &self,
        words: &[String],
        input: Option<&PathBuf>,
        limit: Duration,
    ) -> std::result::Result<(bool, String, String), String> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdout(Stdio::piped()).stderr(Stdio::piped());
        match input {
            None => command.stdin(Stdio::null()),
            Some(file) => command.stdin(File::open(file).map_err(|error| error.to_string())?),
        };
        let child = spawn_on(&self.cores.client, &mut command);
        let mut child = Ended(child.map_err(|error| format!("cannot run {}: {error}", words[0]))?);
        let reader = |pipe: Option<Box<dyn Read + Send>>| {
            thread::spawn(move || {
                let mut text = Vec::new();
                if let Some(mut pipe) = pipe {
                    // What came until an error is what there is.
                    let _ = pipe.read_to_end(&mut text);
                }
                String::from_utf8_lossy(&text).into_owned()
            })
        };
        let printed = reader(child.0.stdout.take().map(|pipe| Box::new(pipe) as _));
        let complaint = reader(child.0.stderr.take().map(|pipe| Box::new(pipe) as _));
        let deadline = Instant::now() + limit;
        let status = loop {
            if let Some(status) = child.0.try_wait().map_err(|error| error.to_string())? {
                break status;
            }
            if Instant::now() > deadline || self.interrupted.load(Ordering::Relaxed) {
                return Err("it did not end in time".to_owned());
            }
            thread::sleep(PAUSE);
        };
        let said = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
        Ok((status.success(), said(printed), said(complaint)))
    }

    /// What the cipher and a copy cost on the cores that send.
    fn seal_and_copy(&self, load: &StreamLoad, suite: Option<&str>) -> Reading<SealAndCopy> {
        let cores = if load.direction == Way::Receive { &self.cores.server } else { &self.cores.client };
        let found = || {
            let suite = suite.and_then(CipherSuite::named).ok_or("the cipher suite is not known")?;
            if cores.is_empty() {
                return Err("the sender is on another machine".to_owned());
            }
            let record_bytes = usize::try_from(load.io_bytes).unwrap_or(RECORD_BYTES).min(RECORD_BYTES);
            let cost = linerate_calibrate::seal_and_copy(suite.cipher(), record_bytes, cores)
                .map_err(|error| format!("sealing and copying could not be measured: {error}"))?;
            Ok(SealAndCopy {
                cipher: suite.cipher().name().to_owned(),
                record_bytes: record_bytes as u32,
                seal_s_per_gb: cost.seal_ns_per_byte,
                copy_s_per_gb: cost.copy_ns_per_byte,
            })
        };
        found().map_or_else(Reading::NotAvailable, Reading::Value)
    }
}

/// The points that are planned, with the rounds that they have had.
fn joined(mut planned: Vec<Point>, earlier: Vec<Point>) -> Result<Vec<Point>> {
    for had in earlier {
        let same = |point: &&mut Point| point.server == had.server && point.variables == had.variables;
        let Some(place) = planned.iter_mut().find(same) else {
            return Err(Error::Asked(
                "cannot go on: what can be measured here is not what it was when the run began".to_owned(),
            ));
        };
        *place = had;
    }
    Ok(planned)
}

/// Why a slice has no measurement.
enum Failure {
    /// This machine does not carry the engine: there is no use in trying again.
    Lacking(String),
    Failed(String),
}

fn wait_for_words(child: &mut Child, words: &str) -> std::result::Result<(), String> {
    let pipe = child.stdout.take().ok_or("no output")?;
    let (to, came) = std::sync::mpsc::channel();
    let words = words.to_owned();
    thread::spawn(move || {
        let mut lines = BufReader::new(pipe).lines().map_while(std::io::Result::ok);
        let _ = to.send(lines.any(|line| line.contains(&words)));
        // Further lines are read, so that nobody waits for room.
        lines.for_each(drop);
    });
    match came.recv_timeout(LISTENING_TIME) {
        Ok(true) => Ok(()),
        _ => Err("the end that listens did not begin".to_owned()),
    }
}

fn free_port(ip: IpAddr) -> std::result::Result<u16, String> {
    let bound = TcpListener::bind((ip, 0)).and_then(|socket| socket.local_addr());
    bound.map(|address| address.port()).map_err(|error| format!("no port on {ip}: {error}"))
}

/// Random bytes that both ends know, for this user alone.
fn write_secret(path: &PathBuf) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let digits = secret::hexadecimal(32)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        std::io::Write::write_all(&mut file, digits.as_bytes())
    };
    write().map_err(Error::file("cannot write", path))
}

/// All points that can be measured here, in the order of the definition; why others cannot goes to `skipped`.
fn plan(
    definition: &StreamDefinition,
    senders: &[Sender],
    networks: &mut Networks,
    skipped: &mut Vec<String>,
) -> (Vec<Planned>, Vec<Point>) {
    let mut skip = |reason: String| {
        if !skipped.contains(&reason) {
            skipped.push(reason);
        }
    };
    let (mut planned, mut points) = (Vec::new(), Vec::new());
    for variables in crate::plan::combinations(&definition.sweep, &definition.axis) {
        let mut load = StreamLoad::default();
        for (name, value) in definition.fixed.iter().chain(&variables) {
            // The definition was checked: every value can be set.
            let _ = load.set(name, value);
        }
        let used = match networks.bring_up(&load.setting()) {
            Ok(used) => used,
            Err(reason) => {
                skip(reason);
                continue;
            }
        };
        for (sender, candidate) in senders.iter().enumerate() {
            if let Some(reason) = candidate.refusal(&load) {
                skip(reason);
                continue;
            }
            let mut variables = variables.clone();
            if candidate.is_plaintext() {
                variables.remove("cipher");
            }
            points.push(Point {
                server: candidate.name.clone(),
                variables,
                client_command: Vec::new(),
                network: used.clone(),
                rounds: Vec::new(),
            });
            planned.push(Planned { sender, load: load.clone() });
        }
    }
    (planned, points)
}

fn empty_run(
    definition: &StreamDefinition,
    options: &Options,
    cores: &Cores,
    senders: &[Sender],
    points: Vec<Point>,
    skipped: Vec<String>,
) -> ExperimentRun {
    let numbers = |cores: &[usize]| cores.iter().filter_map(|core| u32::try_from(*core).ok()).collect();
    let used = senders.iter().map(|sender| ServerUsed {
        name: sender.name.clone(),
        version: sender.version.clone(),
        command: Vec::new(),
        configuration: String::new(),
        plaintext: sender.is_plaintext(),
    });
    let setup = Setup {
        address: options.address.to_string(),
        server_cores: numbers(&cores.server),
        client_cores: numbers(&cores.client),
        client_hosts: options.clients.clone(),
    };
    let run = definition.begin_run(definition.time.rounds, options, setup, used.collect());
    ExperimentRun { environment: linerate_environment::capture(), points, skipped, ..run }
}

/// What the command line changes of an experiment.
pub(super) fn adjust(definition: &mut StreamDefinition, options: &Options) -> Result<()> {
    definition.choose_servers(options)?;
    if let Some(rounds) = options.rounds {
        definition.time.rounds = rounds;
    }
    if options.clients.len() > 1 {
        return Err(Error::Asked("streams have one client: name one machine with --clients".to_owned()));
    }
    for (name, values) in &options.changed {
        match (name.as_str(), values.as_slice()) {
            ("measured_s", [Variable::Number(seconds)]) => definition.time.measured_s = *seconds,
            _ => definition.vary(name, values),
        }
    }
    definition.check().map_err(|reason| Error::Asked(format!("{}: {reason}", definition.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::NetworkUsed;
    use std::collections::BTreeMap;

    fn point(server: &str, rounds: usize) -> Point {
        let failed = Round::Failed { reason: "none".to_owned(), log: Vec::new() };
        Point {
            server: server.to_owned(),
            variables: BTreeMap::from([("direction".to_owned(), Variable::Word("send".to_owned()))]),
            client_command: Vec::new(),
            network: NetworkUsed::default(),
            rounds: vec![failed; rounds],
        }
    }

    #[test]
    fn points_keep_the_rounds_that_they_had_and_those_that_were_dropped_are_tried_again() {
        let planned = vec![point("iperf3 plaintext", 0), point("linerate user", 0)];
        let points = joined(planned.clone(), vec![point("linerate user", 2)]).unwrap();
        let had: Vec<_> = points.iter().map(|point| (point.server.as_str(), point.rounds.len())).collect();
        assert_eq!(had, [("iperf3 plaintext", 0), ("linerate user", 2)]);
        let error = joined(planned, vec![point("linerate nic", 1)]).unwrap_err().to_string();
        assert!(error.contains("is not what it was"), "{error}");
    }
}
