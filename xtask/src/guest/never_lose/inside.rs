//! The part in the guest: puts the software adapter between server and client, and measures point by point.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use linerate_bench::accounting::Meter;
use linerate_bench::definition::OwnServer;
use linerate_bench::network::{ADAPTER, Network};
use linerate_bench::result::{Measurement, NetworkUsed, Reading};
use linerate_bench::servers::process::RunningServer;
use linerate_load::report::LoadReport;
use serde::{Deserialize, Serialize};

use super::super::client::counted::{Counted, Manner};
use super::super::client::{Client, Order, Outcome, TlsOrder, Version};
use super::super::in_memory::in_memory;
use super::super::server::Setting;
use super::super::{say, served_file};
use super::calibration;
use super::plan::{Point, Subject};
use crate::linerate;

/// Bytes without a pattern at the beginning of every file: more than any that is compared has.
const PATTERNLESS_BYTES: u64 = 12_000_000;

/// Flags of the part in the guest.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// The server's binary.
    #[arg(long)]
    linerate: PathBuf,
    /// What is measured.
    #[arg(long, value_enum)]
    subject: Vec<Subject>,
    /// Parameters of the adapter. With none its encryption is switched off.
    #[arg(long)]
    adapter: Vec<String>,
    /// Lengths of files.
    #[arg(long)]
    size: Vec<u64>,
    /// Rounds of each short point.
    #[arg(long)]
    rounds: u32,
    /// Requests under way at a time.
    #[arg(long, default_value_t = 1)]
    at_a_time: u32,
    /// Clients that come at the same time, with a connection for each of their requests; none where it is 0.
    #[arg(long, default_value_t = 0)]
    crowd: u32,
}

/// A line of what this part says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Line {
    /// What the guest is.
    Environment(BTreeMap<String, linerate_environment::Group>),
    /// By what the guest sends.
    Network(NetworkUsed),
    /// A server, before its rounds.
    Server {
        /// What encrypts.
        subject: Subject,
        /// What it calls itself.
        version: String,
        /// What follows `linerate serve`.
        flags: Vec<String>,
        /// Its configuration, and for `auto` the calibration.
        configuration: String,
    },
    /// A round, in the order of the marks.
    Round(Box<Round>),
    /// What a crowd of clients saw. No marks.
    Crowd {
        /// What encrypted.
        subject: Subject,
        /// What the clients say.
        report: Box<LoadReport>,
        /// What the adapter says.
        adapter: Counters,
    },
}

/// One round, without what the plugin counts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Round {
    /// What encrypted.
    pub(super) subject: Subject,
    /// What was asked for.
    pub(super) point: Point,
    /// It does not count.
    pub(super) is_warm_up: bool,
    /// What came.
    pub(super) outcome: Outcome,
    /// What the adapter says.
    pub(super) adapter: Counters,
    /// What the guest's kernel says. Its clock is the count of instructions, the model's own among them.
    pub(super) measurement: Box<Measurement>,
}

/// What the module has counted (`ethtool -S`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::guest) struct Counters {
    /// Connections that were set up.
    pub(super) set_ups: u64,
    /// Of TCP's stream, encrypted by the adapter.
    pub(super) encrypted_bytes: u64,
    /// Time of the processor that the model took.
    pub(super) model_ns: u64,
    /// The part of it for which the client's process was charged.
    pub(in crate::guest) model_elsewhere_ns: u64,
}

impl Counters {
    pub(in crate::guest) fn read() -> Result<Self> {
        let output = Command::new("ethtool").args(["-S", ADAPTER]).output().context("cannot run ethtool")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
            let value = line.and_then(|value| value.parse().ok());
            value.with_context(|| format!("{ADAPTER} has no counter {name}"))
        };
        Ok(Self {
            set_ups: value("tx_tls_ctx")?,
            encrypted_bytes: value("tx_tls_encrypted_bytes")?,
            model_ns: value("tx_model_ns")?,
            model_elsewhere_ns: value("tx_model_ns_elsewhere")?,
        })
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            set_ups: self.set_ups - before.set_ups,
            encrypted_bytes: self.encrypted_bytes - before.encrypted_bytes,
            model_ns: self.model_ns - before.model_ns,
            model_elsewhere_ns: self.model_elsewhere_ns - before.model_elsewhere_ns,
        }
    }
}

/// Measures all subjects.
pub(crate) fn run(options: &Options) -> Result<()> {
    let here = in_memory(&std::env::current_exe().context("cannot find this program")?)?;
    if let Some(here) = here {
        return Err(Command::new(here).args(std::env::args_os().skip(1)).exec().into());
    }
    let linerate = in_memory(&options.linerate)?.unwrap_or_else(|| options.linerate.clone());
    let options = &Options { linerate, ..options.clone() };
    let module =
        std::env::var_os("GUEST_NIC").context("GUEST_NIC is not set: make nic builds the adapter")?;
    let network = Network::through_adapter(Path::new(&module), &options.adapter)?;
    if options.adapter.is_empty() {
        let off = Command::new("ethtool").args(["-K", ADAPTER, "tls-hw-tx-offload", "off"]).status();
        if !off.context("cannot run ethtool")?.success() {
            bail!("the adapter's encryption cannot be switched off");
        }
    }
    let folder = std::env::temp_dir().join("never-lose");
    let setting = Setting::make(network, folder, options.linerate.clone())?;
    for &bytes in options.size.iter().chain((options.crowd > 0).then_some(&CROWD_BYTES)) {
        write_file(&setting.root.join(file_name(bytes)), bytes).context("cannot write the files to serve")?;
    }
    let bench = Bench { options, setting };
    say(&Line::Environment(linerate_environment::capture()))?;
    say(&Line::Network(bench.setting.network.used()))?;
    for &subject in &options.subject {
        bench.measure_subject(subject)?;
    }
    Ok(())
}

/// The file that a crowd asks for, and how often each of them does.
const CROWD_BYTES: u64 = 10_000;
const CROWD_RESPONSES: u32 = 4;

struct Bench<'a> {
    options: &'a Options,
    setting: Setting,
}

impl Bench<'_> {
    fn measure_subject(&self, subject: Subject) -> Result<()> {
        let server = self.start(subject)?;
        self.measure_with(subject, &server)
            .map_err(|error| error.context(format!("the server says:\n{}", server.log_end().join("\n"))))
    }

    fn measure_with(&self, subject: Subject, server: &RunningServer) -> Result<()> {
        for &size in &self.options.size {
            for point in Point::of(size, self.options.at_a_time) {
                self.measure(subject, server, point)
                    .with_context(|| format!("{}, {size} bytes, {:?}", subject.title(), point.manner))?;
            }
        }
        if self.options.crowd > 0 {
            self.measure_crowd(subject, server, self.options.crowd).context("a crowd of clients")?;
        }
        Ok(())
    }

    /// As an operator would start it, with one worker.
    fn start(&self, subject: Subject) -> Result<RunningServer> {
        let mut configuration = subject.configuration();
        let mut flags = vec!["--engine".to_owned(), subject.name().to_owned()];
        flags.extend(["--config", "{configuration}"].map(str::to_owned));
        if subject == Subject::Auto {
            let Setting { network, folder, .. } = &self.setting;
            let calibration = calibration::measure(&self.options.linerate, network, folder)?;
            flags.extend(["--calibration".to_owned(), calibration.display().to_string()]);
        }
        let own = OwnServer {
            name: subject.title().to_owned(),
            command: [
                "{linerate}",
                "serve",
                "{root}",
                "--listen",
                "{address}:{port}",
                "--cert",
                "{cert}",
                "--key",
            ]
            .into_iter()
            .chain(["{key}", "--workers", "{cores}", "--cpus", "{cpus}"])
            .map(str::to_owned)
            .chain(flags.iter().cloned())
            .collect(),
            configuration: Some(configuration.clone()),
            ..OwnServer::default()
        };
        let server = self.setting.start(subject.title(), Some(own))?;
        if let Some(calibration) = flags.last().filter(|_| subject == Subject::Auto) {
            configuration += "\n# The calibration:\n";
            configuration += &fs::read_to_string(calibration)?;
        }
        let version = linerate::version(&self.options.linerate)?;
        say(&Line::Server { subject, version, flags, configuration })?;
        Ok(server)
    }

    /// Every byte is compared, but for the longest. A first round, which warms whatever can be warmed, does not count.
    fn measure(&self, subject: Subject, server: &RunningServer, point: Point) -> Result<()> {
        let name = file_name(point.file_bytes);
        let (path, file) = (format!("/{name}"), self.setting.root.join(&name));
        let Point { manner, connections, responses, at_a_time, .. } = point;
        let warm_ups = if manner == Manner::Discarded { 0 } else { 1 };
        let rounds = point.rounds(self.options.rounds) + warm_ups;
        let counted = Counted { path, file, connections, responses, at_a_time, rounds, manner };
        let mut client = Client::prepare(&self.setting.network, &self.order(server, counted))?;
        for round in 0..rounds {
            if round > 0 {
                client.wait_until_ready()?;
            }
            let before = Counters::read()?;
            let meter = Meter::begin(&[server.pid()], &[client.pid()], Some(ADAPTER))?;
            let outcome = client.go()?;
            let measurement = meter.end()?.measurement(Vec::new());
            let adapter = Counters::read()?.since(&before);
            check(subject, &measurement, adapter)?;
            let (measurement, is_warm_up) = (Box::new(measurement), round < warm_ups);
            say(&Line::Round(Box::new(Round { subject, point, is_warm_up, outcome, adapter, measurement })))?;
        }
        Ok(())
    }

    /// Handshakes are resumed: full ones cost the client, whose processor is the server's, so much that no adapter would be
    /// kept busy.
    fn measure_crowd(&self, subject: Subject, server: &RunningServer, connections: u32) -> Result<()> {
        let before = Counters::read()?;
        let output = self
            .setting
            .network
            .client_command(&self.options.linerate)
            .arg("load")
            .arg(format!("https://{}/{}", server.address, file_name(CROWD_BYTES)))
            .args(["--connections", &connections.to_string()])
            .args(["--requests", &(connections * CROWD_RESPONSES).to_string()])
            .args(["--close", "--resume", "--tls", "1.2", "--cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"])
            .args(["--json", "--quiet", "--timeout", "60s", "--ca"])
            .arg(&self.setting.certificate.chain)
            .arg("--verify")
            .arg(&self.setting.root)
            .output()
            .context("cannot run linerate load")?;
        if !output.status.success() {
            bail!("linerate load: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let report = Box::new(serde_json::from_slice(&output.stdout).context("linerate load's report")?);
        say(&Line::Crowd { subject, report, adapter: Counters::read()?.since(&before) })
    }

    fn order(&self, server: &RunningServer, job: Counted) -> Order {
        let tls = TlsOrder { certificate: self.setting.certificate.chain.clone(), version: Version::Tls12 };
        Order { server: server.address, tls, job }
    }
}

/// A round in which another engine ran than was asked for is none.
fn check(subject: Subject, measurement: &Measurement, adapter: Counters) -> Result<()> {
    let Reading::Value(statistics) = &measurement.tls_stat else { bail!("there is no /proc/net/tls_stat") };
    let software = statistics.get("TlsTxSw").copied().unwrap_or(0);
    let is_right = match subject {
        Subject::User => software == 0 && adapter.set_ups == 0,
        Subject::Kernel => software > 0 && adapter.set_ups == 0,
        Subject::Nic => software == 0 && adapter.set_ups > 0,
        Subject::Auto => true,
    };
    if !is_right {
        bail!("{software} connections were set up in software, {} in the adapter", adapter.set_ups);
    }
    Ok(())
}

fn file_name(bytes: u64) -> String {
    format!("{bytes}.bin")
}

/// All of it is in memory then; otherwise the first subject would pay for reading it.
fn write_file(path: &Path, bytes: u64) -> Result<()> {
    served_file::write(path, bytes, PATTERNLESS_BYTES)?;
    std::io::copy(&mut File::open(path)?, &mut std::io::sink())?;
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What the meter says of a moment of this process.
    pub(crate) fn measurement() -> Measurement {
        let meter = Meter::begin(&[std::process::id()], &[], None).unwrap();
        meter.end().unwrap().measurement(Vec::new())
    }

    #[test]
    fn a_round_in_which_another_engine_ran_is_refused() {
        let mut measured = measurement();
        measured.tls_stat = Reading::Value(BTreeMap::from([("TlsTxSw".to_owned(), 2)]));
        let none = Counters::default();
        let some = Counters { set_ups: 1, ..none };
        assert!(check(Subject::User, &measured, none).is_err());
        assert!(check(Subject::Kernel, &measured, none).is_ok());
        assert!(check(Subject::Kernel, &measured, some).is_err());
        assert!(check(Subject::Nic, &measured, some).is_err());
        assert!(check(Subject::Auto, &measured, some).is_ok());
        measured.tls_stat = Reading::Value(BTreeMap::new());
        assert!(check(Subject::User, &measured, none).is_ok());
        assert!(check(Subject::Nic, &measured, none).is_err());
        assert!(check(Subject::Nic, &measured, some).is_ok());
    }
}
