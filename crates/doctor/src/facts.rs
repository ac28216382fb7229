//! What was found out about the machine, before anybody judges it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use linerate_engine::kernel::{Carried as KernelCarried, Objection};
use linerate_environment::{Group, Reading};
use linerate_os::adapter::{Beneath, Channels, Driver, FeatureState};
use linerate_placement::Release;
use linerate_record::{Cipher, Combination, Version};
use linerate_tls::Inspection;

/// All of it.
#[derive(Clone, Debug)]
pub struct Facts {
    /// What a measurement would be kept with: kernel, cpu, memory, network, limits, software, adapters.
    pub environment: BTreeMap<String, Group>,
    /// The `tls` module.
    pub module: Module,
    /// `/proc/net/tls_stat` of this process' network namespace.
    pub statistics: Reading<BTreeMap<String, u64>>,
    /// What this process is kept in.
    pub confinement: Confinement,
    /// Which versions and ciphers kernel TLS carries, found out by doing it.
    pub kernel_engine: Vec<KernelEngine>,
    /// Network adapters.
    pub adapters: Vec<Adapter>,
    /// Where the workers would run.
    pub cores: Cores,
    /// What would be served.
    pub content: Content,
    /// What encryption costs.
    pub rates: Vec<Rate>,
    /// The certificate that was asked about.
    pub certificate: Option<CertificateFile>,
    /// The server that was asked about.
    pub server: Option<Server>,
}

impl Facts {
    /// A fact of the environment, or why it is not there.
    pub(crate) fn told(&self, group: &str, fact: &str) -> Result<&str, String> {
        match self.environment.get(group).and_then(|facts| facts.get(fact)) {
            Some(Reading::Value(value)) => Ok(value),
            Some(Reading::NotAvailable(reason)) => Err(reason.clone()),
            None => Err("nobody asked".to_owned()),
        }
    }

    /// The kernel's release, as far as it decides what the kernel can do.
    pub(crate) fn release(&self) -> Option<Release> {
        Release::parse(self.told("kernel", "release").ok()?)
    }
}

/// The `tls` module of Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Module {
    /// It is loaded, or part of the kernel.
    Loaded,
    /// It is installed, and not loaded.
    Installed,
    /// This kernel's modules are installed, and it is not among them.
    NotInKernel,
    /// It is not loaded, and none of this kernel's modules are here to be loaded.
    NoModules,
    /// It cannot be told: why.
    NotKnown(String),
}

/// What this process is kept in.
#[derive(Clone, Debug)]
pub struct Confinement {
    /// Whether this network namespace is one of its own, not the machine's first.
    pub own_network: Reading<bool>,
    /// Whether this user namespace is the machine's first: capabilities hold for all of the machine only there.
    pub first_user: Reading<bool>,
    /// What calls itself the container: `docker`, `podman`, `lxc`, …
    pub container: Option<String>,
    /// The capabilities in effect, as the kernel's bits.
    pub capabilities: Reading<u64>,
    /// What seccomp does: nothing, filters, or strict mode.
    pub seccomp: Reading<String>,
    /// The first port that needs no capability to listen on.
    pub first_open_port: Reading<u32>,
    /// Whether io_uring may be used, or why not.
    pub io_uring: Result<(), String>,
}

/// `CAP_NET_BIND_SERVICE`
pub(crate) const NET_BIND_SERVICE: u32 = 10;
/// `CAP_NET_ADMIN`
pub(crate) const NET_ADMIN: u32 = 12;

impl Confinement {
    /// Whether a capability is in effect; `None` where it cannot be told.
    pub(crate) fn has(&self, capability: u32) -> Option<bool> {
        self.capabilities.value().map(|bits| bits >> capability & 1 == 1)
    }
}

/// Whether kernel TLS carries a version and cipher.
#[derive(Clone, Debug)]
pub struct KernelEngine {
    /// The version and the cipher.
    pub combination: Combination,
    /// How it does, or why not.
    pub verdict: Result<KernelCarried, Objection>,
}

/// A network interface.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// Its name.
    pub name: String,
    /// Whether it is up, or does not say.
    pub up: bool,
    /// Whether there is a device behind it: veth, bridges, bonds and loopback have none.
    pub is_device: bool,
    /// The interfaces that this one is made of: a bond's ports, a VLAN's parent.
    pub lower: Vec<String>,
    /// What carries what it sends, and whether Linux hands connections down to that.
    pub beneath: Beneath,
    /// Its driver.
    pub driver: Reading<Driver>,
    /// Its features.
    pub features: Reading<BTreeMap<String, FeatureState>>,
    /// Its queues, and how many it could have.
    pub channels: Reading<Channels>,
    /// Bytes of a packet.
    pub mtu_bytes: Reading<u32>,
    /// The NUMA node it is plugged into.
    pub node: Reading<usize>,
    /// Its interrupts, each with the CPUs that get it.
    pub interrupts: Reading<Vec<Interrupt>>,
    /// What its driver counts of TLS, by the driver's names.
    pub tls_counters: Reading<BTreeMap<String, u64>>,
    /// The counters of errors and drops that are not zero.
    pub errors: BTreeMap<String, u64>,
}

/// An interrupt of an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// The CPUs that get it.
    pub cpus: Vec<usize>,
}

/// Where workers would run: one on each CPU that this process may use.
#[derive(Clone, Debug)]
pub struct Cores {
    /// The CPUs, with the node of each, where the kernel tells.
    pub usable: Reading<Vec<(usize, Option<usize>)>>,
}

/// What would be served from.
#[derive(Clone, Debug)]
pub struct Content {
    /// Memory that programs and the page cache can still take, in bytes.
    pub available_bytes: Reading<u64>,
    /// The page cache as it is, in bytes.
    pub cached_bytes: Reading<u64>,
    /// The folder that was asked about.
    pub root: Option<Root>,
}

/// A folder that would be served.
#[derive(Clone, Debug)]
pub struct Root {
    /// As it was named.
    pub path: String,
    /// What was found there, or why it could not be looked at.
    pub found: Result<RootFacts, String>,
}

/// What is known of a folder.
#[derive(Clone, Debug)]
pub struct RootFacts {
    /// The kind of file system: `ext4`.
    pub file_system: Reading<String>,
    /// How it is mounted: `rw,relatime`.
    pub mount_options: Reading<String>,
    /// Whether the disk turns.
    pub rotational: Reading<bool>,
    /// What the kernel reads ahead, in KiB.
    pub read_ahead_kib: Reading<u64>,
    /// The files in it and below, and their bytes: those that were looked at.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether there are more than were looked at.
    pub more: bool,
    /// Whether the file system says what is in memory (`preadv2` with `RWF_NOWAIT`); not available where there is no
    /// file to ask about.
    pub tells_what_is_in_memory: Reading<bool>,
    /// Whether the file system says when a file was made (`STATX_BTIME`).
    pub tells_time_of_birth: Reading<bool>,
    /// Where other file systems are mounted below it.
    pub mounts_below: Reading<Vec<PathBuf>>,
    /// Precompressed siblings among the files.
    pub siblings: u64,
    /// Those that are older than their file, and so are not served.
    pub stale_siblings: u64,
    /// The first of those, relative to the folder.
    pub stale_names: Vec<PathBuf>,
}

/// What encryption costs with a library and a cipher.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// The library: `aws-lc`, `OpenSSL 3.5.1`.
    pub library: String,
    /// The cipher.
    pub cipher: Cipher,
    /// Bytes that one core seals in a second, in records of 16 KiB.
    pub bytes_per_s: Reading<f64>,
}

/// A certificate file that was asked about.
#[derive(Clone, Debug)]
pub struct CertificateFile {
    /// The file.
    pub file: String,
    /// What it holds, or why it could not be read.
    pub inspection: Result<Inspection, String>,
    /// How long it is still valid; `None` if it is not.
    pub left: Option<Duration>,
}

/// A server that was asked about.
#[derive(Clone, Debug)]
pub struct Server {
    /// As it was named.
    pub address: String,
    /// What it said, or why it could not be asked.
    pub answer: Result<Answer, String>,
}

/// What a server said.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The version, cipher suite and group agreed on.
    pub version: Version,
    /// The suite's name.
    pub cipher_suite: String,
    /// The cipher.
    pub cipher: Cipher,
    /// The group's name; `None` where no keys were exchanged.
    pub group: Option<String>,
    /// Whether it speaks TLS 1.2, and 1.3; or why that is not known.
    pub speaks: [(Version, Result<(), String>); 2],
    /// The certificate it showed.
    pub certificate: Result<Inspection, String>,
    /// How long that is still valid; `None` if it is not.
    pub left: Option<Duration>,
    /// Why this system would not trust it for that name, if so.
    pub distrust: Option<String>,
    /// The response's status, and what the server calls itself.
    pub response: Reading<ResponseFacts>,
    /// What its counters say that carried the response: engines, and reasons.
    pub engine: Reading<Vec<String>>,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseFacts {
    /// `200`
    pub status: u16,
    /// The header Server.
    pub server: Option<String>,
}
