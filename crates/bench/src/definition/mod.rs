//! An experiment's file: what is measured, what is swept, how long, and what the paper reported.
//!
//! The files of the built-in experiments are in `experiments/`, and a user's own have the same form: copy one
//! (`linerate bench list NAME > my.toml`), change it, run it. [`Workload`] has every variable with its meaning.

pub mod catalogue;
mod parse;
mod workload;
pub(crate) mod written;

use std::collections::BTreeMap;

use serde::Deserialize;

pub(crate) use workload::is_of_tls;
pub use workload::{
    CacheState, CertificateKind, Handshake, LoadProgram, ReadOrder, VARIABLES, VariableDocument, Workload,
};

use crate::result::{PublishedSeries, Target, Variable};

/// An experiment as its file says it; `T` is its `[time]`.
#[derive(Clone, Debug)]
pub struct ExperimentFile<T> {
    /// The file itself.
    pub text: String,
    /// Its name.
    pub name: String,
    /// What it is about, in a sentence.
    pub title: String,
    /// The paper, and what of it is reproduced.
    pub source: String,
    /// The swept variable that is the plot's horizontal axis.
    pub axis: String,
    /// The axis is to be drawn with a logarithmic scale.
    pub axis_is_logarithmic: bool,
    /// The fields of a measurement that it is about, the most important first.
    pub quantities: Vec<String>,
    /// The servers to be measured, by name: built-in ones, and those of `own_servers`.
    pub servers: Vec<String>,
    /// Variables that are the same for all points.
    pub fixed: BTreeMap<String, Variable>,
    /// Variables that are swept: every combination of their values is measured.
    pub sweep: BTreeMap<String, Vec<Variable>>,
    /// How long, and how often.
    pub time: T,
    /// Servers that the file itself brings.
    pub own_servers: Vec<OwnServer>,
    /// What the paper says.
    pub published: Vec<PublishedSeries>,
    /// What it should come to.
    pub targets: Vec<Target>,
}

/// An experiment of servers.
pub type Definition = ExperimentFile<Time>;

/// How long, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    /// Load before the measured time, in seconds.
    pub warmup_s: f64,
    /// The measured time of each round, in seconds.
    pub measured_s: f64,
    /// Rounds of each point.
    pub rounds: u32,
    /// The most rounds of a point whose cost beside plaintext is not known to within 5 % after `rounds`: as many as it
    /// takes are added, up to this. `rounds` where it is not given.
    #[serde(default)]
    pub most_rounds: Option<u32>,
}

/// A server that an experiment's file describes: a built-in one, changed, or any command.
///
/// `command`, `arguments`, `configuration` and `version` may contain `{address}`, `{port}`, `{root}`, `{cert}`, `{key}`,
/// `{cpus}` ("0-3"), `{cores}` (their number), `{folder}` (of its own, for anything), `{configuration}` (the file that the
/// configuration was written to) and `{linerate}` (this program).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnServer {
    /// Its name in results.
    pub name: String,
    /// The built-in server that it is but for what follows: "nginx tls".
    #[serde(default)]
    pub like: Option<String>,
    /// With `like`: the program in place of the built-in one's, and arguments that come before all others.
    #[serde(default)]
    pub program: Vec<String>,
    /// With `like`: arguments that come after all others.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Without `like`: the whole command line.
    #[serde(default)]
    pub command: Vec<String>,
    /// Without `like`: its configuration file. With `like`: what is added to the end of linerate's, or
    /// among what nginx does for all that it serves (`http`).
    #[serde(default)]
    pub configuration: Option<String>,
    /// Without `like`: it speaks plaintext.
    #[serde(default)]
    pub plaintext: bool,
    /// A command whose first line of output says its version.
    #[serde(default)]
    pub version: Vec<String>,
    /// The port that it listens on, where it cannot be told; otherwise a free one is chosen each time.
    #[serde(default)]
    pub port: Option<u16>,
    /// A PEM file with the certificate that the client is to trust, where the server brings its own.
    #[serde(default)]
    pub ca: Option<String>,
}
