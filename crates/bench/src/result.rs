//! What a run of an experiment found out, and the form of its `result.json`.
//!
//! Field names are stable within one [`SCHEMA`]; a field may be added, never change its meaning. Units stand in the
//! names; GB is 1e9 bytes, KB (in service demand alone, as netperf has it) is 1024.

use std::collections::BTreeMap;

pub use linerate_environment::Reading;
use linerate_load::report::LoadReport;
use serde::{Deserialize, Serialize};

/// The name and version of this form.
pub const SCHEMA: &str = "linerate-bench/1";

/// One run of one experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExperimentRun {
    /// [`SCHEMA`].
    pub schema: String,
    /// The experiment's name.
    pub name: String,
    /// The experiment's file as it was run, in TOML.
    pub definition: String,
    /// What the experiment is about, in a sentence.
    pub title: String,
    /// The paper, and what of it is reproduced.
    pub source: String,
    /// The swept variable that is the plot's horizontal axis: "connections", "file_bytes".
    pub axis: String,
    /// The axis is to be drawn with a logarithmic scale.
    #[serde(default)]
    pub axis_is_logarithmic: bool,
    /// The fields of a [`Measurement`] that the experiment is about, the most important first: what a plot shows and
    /// what two runs are compared by. "application_gbit_s", "server_s_per_gb".
    #[serde(default)]
    pub quantities: Vec<String>,
    /// How many rounds each point was to have.
    #[serde(default)]
    pub rounds_planned: u32,
    /// Which machines and cores took which part.
    #[serde(default)]
    pub setup: Setup,
    /// When it began, in seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// Shortened by `--quick`.
    pub quick: bool,
    /// The command line of the whole run.
    pub command: Vec<String>,
    /// What no server that seals in software goes below, where servers encrypt; why there is none, otherwise.
    #[serde(default)]
    pub floor: Reading<Vec<FloorPoint>>,
    /// What it ran on: group ("kernel", "cpu", "network", …), then fact, then value.
    pub environment: BTreeMap<String, BTreeMap<String, Reading<String>>>,
    /// What was measured, in the order of the definition.
    pub servers: Vec<ServerUsed>,
    /// One for each server and value of the sweep.
    pub points: Vec<Point>,
    /// Servers or points left out, with the reason.
    pub skipped: Vec<String>,
    /// What the paper says.
    pub published: Vec<PublishedSeries>,
    /// What it should come to.
    #[serde(default)]
    pub targets: Vec<Target>,
    /// What the command line set otherwise than the experiment's file: variables of the load and of `[time]`.
    #[serde(default)]
    pub changed: BTreeMap<String, Vec<Variable>>,
    /// What was wrong with the machine before anything was measured.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// It was interrupted: points are missing.
    pub incomplete: bool,
}

/// Which machines and cores took which part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The address that servers listened on.
    pub address: String,
    /// The cores that servers were pinned to.
    pub server_cores: Vec<u32>,
    /// The cores of this machine that the load client was pinned to; none where it ran elsewhere.
    pub client_cores: Vec<u32>,
    /// The machines that the load came from, by ssh; none where it came from this one.
    pub client_hosts: Vec<String>,
}

/// One server as it was run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerUsed {
    /// The name in the plots: "linerate user", "nginx plaintext".
    pub name: String,
    /// What it calls itself, with the version.
    pub version: String,
    /// How it was started.
    pub command: Vec<String>,
    /// Its configuration file, as written out.
    pub configuration: String,
    /// Speaks plaintext: what others are held against.
    pub plaintext: bool,
}

/// The network that a point's bytes went over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkUsed {
    /// "loopback", "veth pair between namespaces, MTU 1500", "192.0.2.7 on eth0".
    pub path: String,
    /// TCP's congestion control, as new sockets of the server had it: "cubic".
    pub congestion_control: Reading<String>,
    /// The queue disciplines of the interface that the server sent by: "noqueue", "mq, fq_codel".
    pub queue_discipline: Reading<String>,
}

/// One server at one value of the sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// [`ServerUsed::name`].
    pub server: String,
    /// Every variable of the sweep that means something to this server: "connections" → 10, "file_bytes" → 1e6,
    /// "cipher" → "TLS_AES_256_GCM_SHA384" (which a plaintext server's point does not have).
    pub variables: BTreeMap<String, Variable>,
    /// How the load client was called.
    pub client_command: Vec<String>,
    /// The network between them.
    #[serde(default)]
    pub network: NetworkUsed,
    /// In the order in which they were run. Round n of one server is beside round n of the others in time.
    pub rounds: Vec<Round>,
}

/// A value of a swept variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "WrittenVariable")]
pub enum Variable {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

/// As files have it: true and false are words here.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenVariable {
    Boolean(bool),
    Number(f64),
    Word(String),
}

impl From<WrittenVariable> for Variable {
    fn from(written: WrittenVariable) -> Self {
        match written {
            WrittenVariable::Boolean(value) => Self::Word(value.to_string()),
            WrittenVariable::Number(number) => Self::Number(number),
            WrittenVariable::Word(word) => Self::Word(word),
        }
    }
}

impl std::fmt::Display for Variable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Word(word) => formatter.write_str(word),
        }
    }
}

/// One round of a point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Round {
    /// It was measured.
    Measured(Box<Measurement>),
    /// It failed: why, and the last lines of the server's log.
    Failed {
        /// What happened.
        reason: String,
        /// The end of what the server wrote.
        log: Vec<String>,
    },
}

/// What one round found out. All costs are of the same span of time, the load client's measured time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// What the load clients saw, one entry for each client machine.
    pub load: Vec<LoadReport>,
    /// The span in which costs were read, in seconds.
    pub elapsed_s: f64,
    /// Bytes of response bodies per second, as bits: application bandwidth.
    pub application_gbit_s: f64,
    /// Bits on the wire per second, with records, heads, TCP, IP and Ethernet; said how it is known in `wire_source`.
    pub wire_gbit_s: Reading<f64>,
    /// "interface counters of veth0" or "computed for MSS 1448".
    pub wire_source: String,
    /// The server's process(es).
    pub server: ProcessCost,
    /// The load client's process(es), on the machine that runs the experiment.
    pub client: ProcessCost,
    /// The machine that the server is on.
    pub machine: MachineCost,
    /// Responses that came whole, per second.
    #[serde(default)]
    pub responses_per_s: f64,
    /// TLS handshakes for each second of the server's CPU: what one core does in a second.
    #[serde(default)]
    pub handshakes_per_core_s: Reading<f64>,
    /// Server CPU per body byte, in seconds per GB (1e9).
    pub server_s_per_gb: Reading<f64>,
    /// Server CPU per response, in µs.
    pub server_us_per_response: Reading<f64>,
    /// Service demand of the server's process, µs per KB (1024 bytes) of body.
    pub service_demand_us_per_kb: Reading<f64>,
    /// Service demand of the whole machine, as netperf defines it: all cores' busy time, µs per KB (1024 bytes) of body.
    pub machine_service_demand_us_per_kb: Reading<f64>,
    /// Resident memory of the server at the end of the round, in bytes.
    pub server_resident_bytes: Reading<u64>,
    /// What each connection adds to the server's resident memory, held against the same server before the load, in bytes.
    #[serde(default)]
    pub server_bytes_per_connection: Reading<f64>,
    /// What the server's processes had read from disk (`/proc/PID/io`): none of it where all files were cached.
    #[serde(default)]
    pub server_disk_read_bytes: Reading<u64>,
    /// Energy of the processor package(s), in joules per GB.
    pub energy_j_per_gb: Reading<f64>,
    /// Memory bandwidth, bytes moved per body byte.
    pub memory_bytes_per_byte: Reading<f64>,
    /// TCP segments sent again.
    pub retransmitted_segments: Reading<u64>,
    /// What changed in `/proc/net/tls_stat`: which engine really ran.
    pub tls_stat: Reading<BTreeMap<String, u64>>,
    /// What sealing and copying a byte cost on the servers' cores, right after the round of a server that encrypts.
    #[serde(default)]
    pub seal_and_copy: Reading<SealAndCopy>,
}

/// What sealing and copying a byte costs a core, without any server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SealAndCopy {
    /// "AES-256-GCM".
    pub cipher: String,
    /// Plaintext of a record.
    pub record_bytes: u32,
    /// CPU time of sealing, in seconds per GB (1e9) of plaintext.
    pub seal_s_per_gb: f64,
    /// CPU time of one copy, in seconds per GB (1e9) of plaintext.
    pub copy_s_per_gb: f64,
}

/// The floor of servers that encrypt, at one value of the sweep. It is computed: no server has run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloorPoint {
    /// [`Point::variables`] of the servers that it is the floor of.
    pub variables: BTreeMap<String, Variable>,
    /// The server without TLS whose cost is a part of it.
    pub plaintext: String,
    /// Beside the rounds of the servers; nothing where plaintext or sealing was not measured.
    pub rounds: Vec<Option<FloorRound>>,
}

/// The floor in one round: a sum, and what it is the sum of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloorRound {
    /// The cipher alone, in seconds of CPU time per GB (1e9).
    pub seal_s_per_gb: f64,
    /// One copy of a byte.
    pub copy_s_per_gb: f64,
    /// The server without TLS.
    pub plaintext_s_per_gb: f64,
    /// All of them.
    pub s_per_gb: f64,
    /// The same for a response, in µs.
    pub us_per_response: Reading<f64>,
}

/// What a group of processes used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessCost {
    /// CPU seconds in user mode.
    pub user_s: f64,
    /// CPU seconds in the kernel.
    pub system_s: f64,
    /// Times it gave the core up by itself.
    pub voluntary_switches: Reading<u64>,
    /// Times the core was taken from it.
    pub involuntary_switches: Reading<u64>,
    /// Cycles per body byte.
    pub cycles_per_byte: Reading<f64>,
    /// Instructions per body byte.
    pub instructions_per_byte: Reading<f64>,
}

/// What a machine's cores did, in core seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MachineCost {
    /// All cores together.
    pub total: CoreTimes,
    /// Each core by its number.
    pub cores: BTreeMap<u32, CoreTimes>,
}

/// Times of one core, or of several together, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreTimes {
    /// User mode, nice included.
    pub user_s: f64,
    /// The kernel for processes.
    pub system_s: f64,
    /// Hard interrupts.
    pub interrupt_s: f64,
    /// Soft interrupts.
    pub softirq_s: f64,
    /// Taken by the hypervisor for others.
    pub steal_s: f64,
    /// Idle, waiting for disks included.
    pub idle_s: f64,
}

/// What a server should come to: the cost of its bytes or responses beside another's, or a figure by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The server.
    pub server: String,
    /// At which points: those that have these values. All of them, where nothing is said.
    pub at: BTreeMap<String, Variable>,
    /// The field of a measurement; what the price of TLS is measured by where there is none.
    pub quantity: Option<String>,
    /// The server that it is divided by, round by round; the figure by itself where there is none.
    pub beside: Option<String>,
    /// Where that server is at another point than the first: the values in which the two differ.
    pub beside_at: BTreeMap<String, Variable>,
    /// It is only asked for where that server's version contains this.
    pub beside_version: Option<String>,
    /// The ratio or figure should not be above it.
    pub most: f64,
}

/// One series of a paper.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PublishedSeries {
    /// Its name in the plot: "T7, NIC TLS".
    pub name: String,
    /// The paper and the place in it.
    pub source: String,
    /// Which field of a measurement it is to be seen beside: "application_gbit_s", "machine_service_demand_us_per_kb".
    pub quantity: String,
    /// What it says at which value of the axis.
    pub values: Vec<PublishedValue>,
}

/// One value of a paper. Where it gives no range, `low` and `high` are the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedValue {
    /// The value of the axis.
    pub at: Variable,
    /// The least that is given.
    pub low: f64,
    /// The most that is given.
    pub high: f64,
}
