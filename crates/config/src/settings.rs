//! The validated settings of a server.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use linerate_http::{DEFAULT_RANGES_LIMIT, RequestLimits};
use linerate_suite::Version;

use crate::{
    CipherSuites, CpuList, EngineChoice, Error, Export, ExportTls, Groups, Listener, ListenerKind, LogFormat,
    Network, Nfs, Origin, Site,
};

/// Everything the operator said, or the default where nothing was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The sockets to listen on. Never empty; no address is there twice.
    pub listeners: Vec<Listener>,
    /// Where `/healthz` and `/metrics` are served, in the clear.
    pub admin: Option<SocketAddr>,
    /// How many workers to run; `None` is one for each CPU.
    pub workers: Option<NonZeroUsize>,
    /// The CPUs to pin workers to; `None` is all that the process may use. At least as many as `workers`.
    pub cpus: Option<CpuList>,
    /// Where `cpus` was said.
    pub cpus_origin: Origin,
    /// What encrypts the bulk of each connection.
    pub engine: EngineChoice,
    /// How TLS is spoken.
    pub tls: Tls,
    /// What is served over HTTP; at most one has no names; no name is there twice. Empty only where there are exports.
    pub sites: Vec<Site>,
    /// What all exports share.
    pub nfs: Nfs,
    /// What is served over NFS; no name is there twice. Empty only where there are sites.
    pub exports: Vec<Export>,
    /// Bounds on what clients can take.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Where requests are logged; `None` is nowhere.
    pub access_log: Option<AccessLog>,
    /// How the user engine works.
    pub user_engine: UserEngine,
    /// When connections move to the kernel engine, if `engine` asks for it.
    pub kernel_engine: KernelEngine,
    /// By what is decided where `engine` leaves it to the server.
    pub placement: Placement,
}

impl Settings {
    /// Whether something is to be served with the development certificate: sites or exports.
    #[must_use]
    pub fn needs_development_certificate(&self) -> bool {
        self.sites_need_development_certificate() || self.exports_need_development_certificate()
    }

    /// Whether sites are: there is a TLS listener and no site brings certificates.
    #[must_use]
    pub fn sites_need_development_certificate(&self) -> bool {
        self.https_port().is_some() && self.sites.iter().all(|site| site.certificates.is_empty())
    }

    /// Whether exports are: one has TLS, and no certificates are named for NFS.
    #[must_use]
    pub fn exports_need_development_certificate(&self) -> bool {
        self.serves_nfs_over_tls() && self.nfs.certificates.is_empty()
    }

    /// Whether an export has TLS.
    #[must_use]
    pub fn serves_nfs_over_tls(&self) -> bool {
        self.exports.iter().any(|export| export.policy.tls != ExportTls::Off)
    }

    /// The port that redirects lead to: the first TLS listener's. `Some` wherever there is a redirect listener.
    #[must_use]
    pub fn https_port(&self) -> Option<u16> {
        self.listeners
            .iter()
            .find(|listener| listener.kind == ListenerKind::Tls)
            .map(|tls| tls.address.port())
    }
}

/// How TLS is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The oldest version spoken.
    pub minimum_version: Version,
    /// The suites spoken, most preferred first; `None` leaves the choice to the TLS library. At least one can be used
    /// with `minimum_version`.
    pub cipher_suites: Option<CipherSuites>,
    /// The key exchange groups spoken, most preferred first; `None` leaves the choice to the TLS library.
    pub groups: Option<Groups>,
    /// Whether sessions are resumed by ticket.
    pub session_tickets: bool,
    /// How many handshakes may be under way in the whole server.
    pub handshakes_in_flight_limit: usize,
    /// How many of them may be one address's; 0 is no limit of its own.
    pub handshakes_per_address_limit: usize,
    /// Records sealed under one key before a KeyUpdate, or a close in TLS 1.2; `None` is the AEAD's own limit, which
    /// also bounds any larger number.
    pub records_per_key_limit: Option<u64>,
    /// KeyUpdates taken from one peer in a second; one that sends more is cut.
    pub key_updates_per_second_limit: u32,
}

impl Default for Tls {
    fn default() -> Self {
        Tls {
            minimum_version: Version::Tls12,
            cipher_suites: None,
            groups: None,
            session_tickets: true,
            handshakes_in_flight_limit: 4096,
            handshakes_per_address_limit: 0,
            records_per_key_limit: None,
            key_updates_per_second_limit: 100,
        }
    }
}

/// Bounds on what clients can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at once in the whole server.
    pub connections: usize,
    /// How many of them may be one address's; 0 is no limit of its own.
    pub connections_per_address: usize,
    /// Addresses and networks that limits by address do not apply to.
    pub exempt_addresses: Vec<Network>,
    /// A request's head: request line and headers.
    pub head_bytes: usize,
    /// The request line alone; at most `head_bytes`.
    pub request_line_bytes: usize,
    /// Headers of a request.
    pub header_count: usize,
    /// Ranges that one request may ask for; more are answered with the whole file.
    pub ranges_per_request: usize,
    /// Entries shown of a folder.
    pub listing_entries: usize,
    /// Open files that a worker keeps for the next request.
    pub open_files_cached: usize,
    /// Bytes of files that a worker keeps mapped; 0 maps none.
    pub mapped_bytes: u64,
    /// What a client must take of a response, in the mean over each [`Timeouts::write_progress_ms`]; 0 asks for nothing.
    pub least_rate_bytes_per_s: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let request = RequestLimits::default();
        Limits {
            connections: 65_536,
            head_bytes: request.head_bytes,
            request_line_bytes: request.request_line_bytes,
            header_count: request.header_count,
            ranges_per_request: DEFAULT_RANGES_LIMIT,
            connections_per_address: 0,
            exempt_addresses: Vec::new(),
            listing_entries: 10_000,
            open_files_cached: 1024,
            mapped_bytes: 4 << 30,
            least_rate_bytes_per_s: 1 << 10,
        }
    }
}

/// How long things may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A connection waits for its next request.
    pub idle_ms: u64,
    /// A request's head arrives, from its first byte to its last.
    pub header_ms: u64,
    /// A response makes no progress because the client takes nothing.
    pub write_progress_ms: u64,
    /// A handshake, from accept to its end.
    pub handshake_ms: u64,
    /// Open responses are finished after QUIT, or after the listener went away.
    pub drain_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            idle_ms: 75_000,
            header_ms: 15_000,
            write_progress_ms: 30_000,
            handshake_ms: 10_000,
            drain_ms: 30_000,
        }
    }
}

/// How the user engine works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserEngine {
    /// Plaintext sealed for one `send`.
    pub batch_bytes: usize,
    /// Files of this size and more are sealed from mappings, smaller ones are read.
    pub map_threshold_bytes: u64,
    /// The most that one connection sends in one turn; at least `batch_bytes`.
    pub quantum_bytes: usize,
    /// `TCP_NOTSENT_LOWAT`: unsent bytes in the socket above which it counts as full.
    pub not_sent_low_water_bytes: u32,
}

impl Default for UserEngine {
    fn default() -> Self {
        UserEngine {
            batch_bytes: 256 << 10,
            map_threshold_bytes: 64 << 10,
            quantum_bytes: 1 << 20,
            not_sent_low_water_bytes: 16 << 10,
        }
    }
}

/// When a connection's sending side moves into the kernel, for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelEngine {
    /// The first response of at least this size, head included, takes its connection there.
    pub from_bytes: u64,
    /// Bytes that the connection has to have sent by the user engine first.
    pub after_bytes: u64,
}

impl Default for KernelEngine {
    fn default() -> Self {
        KernelEngine { from_bytes: 64 << 10, after_bytes: 0 }
    }
}

/// What the server decides by which engine carries a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// What each engine costs on this machine; `None` takes published figures.
    pub calibration: Option<CalibrationFile>,
    /// Connections that an adapter is asked to set up in a second at most, by all workers together; `None` is all that it
    /// can do.
    pub nic_set_ups_per_second: Option<u64>,
    /// A connection of whose bytes more were sent again stays off the adapter.
    pub max_retransmitted_percent: u32,
    /// Whether what transfers cost corrects what was calibrated.
    pub learning: bool,
    /// One of so many large responses is moved only to learn what it costs; 0 is none.
    pub trial_every: u32,
}

impl Default for Placement {
    fn default() -> Self {
        Placement {
            calibration: None,
            nic_set_ups_per_second: None,
            max_retransmitted_percent: 1,
            learning: true,
            trial_every: 0,
        }
    }
}

/// A file that `linerate calibrate` wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalibrationFile {
    /// Its path.
    pub path: PathBuf,
    /// Where it was named.
    pub origin: Origin,
}

/// How requests are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where the lines go.
    pub target: LogTarget,
    /// What a line looks like.
    pub format: LogFormat,
    /// Where the target was named.
    pub origin: Origin,
}

/// Where log lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output, written `-`.
    Stdout,
    /// Appended to this file, which USR1 opens anew.
    File(PathBuf),
}

impl FromStr for LogTarget {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "" => Err(Error::value("the log's file has no name: write FILE, or - for standard output")),
            "-" => Ok(LogTarget::Stdout),
            file => Ok(LogTarget::File(file.into())),
        }
    }
}

impl fmt::Display for LogTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogTarget::Stdout => formatter.write_str("standard output"),
            LogTarget::File(file) => file.display().fmt(formatter),
        }
    }
}
