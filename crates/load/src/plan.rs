//! What a run is to do, checked for contradictions.

use std::{path::PathBuf, time::Duration};

pub use linerate_os::socket::SocketShape;
pub use linerate_record::Version;
use linerate_tls::TlsPolicy;
pub use linerate_tls::{CertificateFiles, CipherSuite, Group, Trust};

use crate::{LoadError, request::check_header, target::Target};

/// The most connections of one run. The kernel's own limits are met far earlier.
pub const CONNECTIONS_LIMIT: u32 = 1_000_000;
/// The most threads of one run.
pub(crate) const THREADS_LIMIT: u32 = 1024;
/// The highest rate, in requests a second.
pub(crate) const RATE_LIMIT: f64 = 1e8;

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
    /// After so long.
    Time(Duration),
    /// After so many requests.
    Requests(u64),
}

/// Which part of each file is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeChoice {
    /// So many bytes, from somewhere.
    Random {
        /// How many.
        size_bytes: u64,
    },
    /// From `first` to `last`, both included.
    Fixed {
        /// Offset of the first byte.
        first: u64,
        /// Offset of the last byte.
        last: u64,
    },
}

/// What is done with the bodies that arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyUse {
    /// Received, and decrypted where they came encrypted.
    Read,
    /// The same, and each byte is compared with this file, or with the file below this folder that the URL's path names.
    Verify(PathBuf),
    /// Thrown away by the kernel unread.
    Discard,
}

/// What a run is to do.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// What is asked for, in turn.
    pub targets: Vec<Target>,
    /// Connections at a time.
    pub connections: u32,
    /// Threads that share them.
    pub threads: u32,
    /// When it is over.
    pub until: Until,
    /// Requests a second, all connections together; without it each connection asks as soon as it was answered.
    pub rate: Option<f64>,
    /// A connection for each request.
    pub close: bool,
    /// Each connection asks once, and is kept open and idle afterwards.
    pub once: bool,
    /// Threads ask the kernel again and again instead of sleeping until something comes.
    pub spin: bool,
    /// What connections ask of their sockets.
    pub shape: SocketShape,
    /// Resume TLS sessions.
    pub resume: bool,
    /// The one version to offer; both without.
    pub version: Option<Version>,
    /// Suites to offer; all of the version without any.
    pub cipher_suites: Vec<CipherSuite>,
    /// Groups to offer; all without any.
    pub groups: Vec<Group>,
    /// Which certificates are taken.
    pub trust: Trust,
    /// What is shown to servers that ask for a certificate.
    pub identity: Option<CertificateFiles>,
    /// Further headers, name and value.
    pub headers: Vec<(String, String)>,
    /// A part of each file.
    pub range: Option<RangeChoice>,
    /// How long to run before measuring.
    pub warm_up: Duration,
    /// CPUs to pin the threads to, in turn; nowhere without any.
    pub cpus: Vec<usize>,
    /// What is done with the bodies.
    pub body: BodyUse,
    /// How long a connection may wait for anything at all from the server.
    pub timeout: Duration,
    /// The command line, for the report.
    pub command: Vec<String>,
}

impl LoadPlan {
    /// One connection asks for `targets` in turn until `until`, by what is the default elsewhere, too: as soon as it was
    /// answered, whatever is offered, for what the system trusts.
    #[must_use]
    pub fn new(targets: Vec<Target>, until: Until) -> Self {
        Self {
            targets,
            connections: 1,
            threads: 1,
            until,
            rate: None,
            close: false,
            once: false,
            spin: false,
            shape: SocketShape::default(),
            resume: false,
            version: None,
            cipher_suites: Vec::new(),
            groups: Vec::new(),
            trust: Trust::System,
            identity: None,
            headers: Vec::new(),
            range: None,
            warm_up: Duration::ZERO,
            cpus: Vec::new(),
            body: BodyUse::Read,
            timeout: Duration::from_secs(20),
            command: Vec::new(),
        }
    }

    /// What connections offer.
    pub(crate) fn tls_policy(&self) -> TlsPolicy {
        let suites = match self.cipher_suites.as_slice() {
            [] => TlsPolicy::default().cipher_suites,
            chosen => chosen.to_vec(),
        };
        let is_wanted = |suite: &CipherSuite| self.version.is_none_or(|version| version == suite.version());
        TlsPolicy {
            cipher_suites: suites.into_iter().filter(is_wanted).collect(),
            groups: if self.groups.is_empty() { Group::ALL.to_vec() } else { self.groups.clone() },
            session_tickets: self.resume,
            ..TlsPolicy::default()
        }
    }

    /// Looks for contradictions.
    ///
    /// # Errors
    /// [`LoadError::Plan`] with the first one, in words for the command line.
    pub fn check(&self) -> Result<(), LoadError> {
        let wrong = |what: String| Err(LoadError::Plan(what));
        let uses_tls = self.targets.iter().any(|target| target.tls);
        if self.targets.is_empty() {
            return wrong("at least one URL is needed".to_owned());
        }
        if !(1..=CONNECTIONS_LIMIT).contains(&self.connections) {
            return wrong(format!("connections: 1 to {CONNECTIONS_LIMIT} are possible"));
        }
        if !(1..=THREADS_LIMIT).contains(&self.threads) {
            return wrong(format!("threads: 1 to {THREADS_LIMIT} are possible"));
        }
        if self.threads > self.connections {
            return wrong(format!(
                "{} threads share {} connections: give each at least one (-c {}), or use fewer threads",
                self.threads, self.connections, self.threads
            ));
        }
        if self.once && (self.close || self.rate.is_some() || matches!(self.until, Until::Requests(_))) {
            return wrong(
                "--once: connections that ask once and are kept have no rate, no end after each request (--close), and last for \
                 a time, not for a number of requests"
                    .to_owned(),
            );
        }
        if self.until == Until::Requests(0) || self.until == Until::Time(Duration::ZERO) {
            return wrong("a run of no length measures nothing".to_owned());
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= RATE_LIMIT)) {
            return wrong(format!("the rate has to be above 0 and at most {RATE_LIMIT} requests a second"));
        }
        if !uses_tls
            && (self.resume
                || self.version.is_some()
                || !self.cipher_suites.is_empty()
                || !self.groups.is_empty()
                || self.trust != Trust::System
                || self.identity.is_some())
        {
            return wrong("no URL is https, so nothing about TLS can be chosen".to_owned());
        }
        if self.resume && !self.close {
            return wrong(
                "--resume without --close: connections that are kept open have nothing to resume".to_owned(),
            );
        }
        let policy = self.tls_policy();
        if let (Some(version), true) = (self.version, policy.cipher_suites.is_empty()) {
            return wrong(format!("none of the cipher suites is one of {}", version.label()));
        }
        let is_tls12 = policy.cipher_suites.iter().all(|suite| suite.version() == Version::Tls12);
        if is_tls12 && policy.groups == [Group::X25519MlKem768] {
            return wrong("TLS 1.2 has no group X25519MLKEM768: choose another, or TLS 1.3".to_owned());
        }
        if let Some(RangeChoice::Random { size_bytes: 0 }) = self.range {
            return wrong("a range of no bytes cannot be asked for".to_owned());
        }
        if let Some(RangeChoice::Fixed { first, last }) = self.range
            && first > last
        {
            return wrong(format!("the range {first}-{last} ends before it begins"));
        }
        for (name, value) in &self.headers {
            check_header(name, value).map_err(LoadError::Plan)?;
            if self.range.is_some() && name.eq_ignore_ascii_case("range") {
                return wrong("--range and -H 'Range: …' exclude each other".to_owned());
            }
        }
        Ok(())
    }
}
