//! What a run is to do, and the run itself.

use std::{
    path::PathBuf,
    process,
    sync::atomic::AtomicBool,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use linerate_os::socket::SocketShape;
use linerate_tls::{CertificateFiles, CipherSuite, Connector, Group, TlsPolicy, Trust};

use super::{call::Caller, connection::Target, conversation::Subject, target::NfsTarget, worker::Worker};
use crate::{
    LoadError, Sayings,
    plan::{CONNECTIONS_LIMIT, THREADS_LIMIT, Until},
    report::LoadReport,
    resolve,
    run::{Conduct, conduct},
    verify::Source,
};

/// READs under way on one connection: as many slots as a session may ask for here.
const DEPTH_LIMIT: u32 = 1024;
/// The largest READ.
const BLOCK_LIMIT_BYTES: u32 = 64 << 20;

/// Which version is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinorVersion {
    /// 4.1 (RFC 8881)
    One,
    /// 4.2 (RFC 7862)
    Two,
}

/// In which order a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From its beginning to its end, and again; each connection by itself.
    Sequential,
    /// Blocks of the file, any of them.
    Random,
    /// Anywhere: as many bytes as a block has, from any byte on.
    Anywhere,
}

/// What a run is to do.
#[derive(Clone, Debug)]
pub struct NfsPlan {
    /// The files, which connections take in turn.
    pub targets: Vec<NfsTarget>,
    /// Connections at a time. Each is a client of its own.
    pub connections: u32,
    /// Threads that share them.
    pub threads: u32,
    /// READs that each connection has under way.
    pub depth: u32,
    /// How much a READ asks for, in bytes.
    pub block_bytes: u32,
    /// Which bytes they ask for.
    pub order: Order,
    /// When the run is over. A READ is a request.
    pub until: Until,
    /// RPC-with-TLS.
    pub tls: bool,
    /// Suites to offer; all of TLS 1.3 without any.
    pub cipher_suites: Vec<CipherSuite>,
    /// Groups to offer; all without any.
    pub groups: Vec<Group>,
    /// Which certificates are taken.
    pub trust: Trust,
    /// What is shown to servers that ask for a certificate.
    pub identity: Option<CertificateFiles>,
    /// Version 4.1 or 4.2.
    pub minor_version: MinorVersion,
    /// What every byte is compared with: a file, or a folder that is the server's root.
    pub verify: Option<PathBuf>,
    /// How long to run before measuring.
    pub warm_up: Duration,
    /// Threads ask the kernel again and again instead of sleeping until something comes.
    pub spin: bool,
    /// What connections ask of their sockets.
    pub shape: SocketShape,
    /// CPUs to pin the threads to, in turn; nowhere without any.
    pub cpus: Vec<usize>,
    /// How long a connection may wait for anything at all from the server.
    pub timeout: Duration,
    /// The command line, for the report.
    pub command: Vec<String>,
}

impl NfsPlan {
    /// One connection reads `targets` over TLS from their beginning, 1 MiB at a time, until `until`.
    #[must_use]
    pub fn new(targets: Vec<NfsTarget>, until: Until) -> Self {
        Self {
            targets,
            connections: 1,
            threads: 1,
            depth: 1,
            block_bytes: 1 << 20,
            order: Order::Sequential,
            until,
            tls: true,
            cipher_suites: Vec::new(),
            groups: Vec::new(),
            trust: Trust::System,
            identity: None,
            minor_version: MinorVersion::Two,
            verify: None,
            warm_up: Duration::ZERO,
            spin: false,
            shape: SocketShape::default(),
            cpus: Vec::new(),
            timeout: Duration::from_secs(20),
            command: Vec::new(),
        }
    }

    /// Looks for contradictions.
    ///
    /// # Errors
    /// [`LoadError::Plan`] with the first one, in words for the command line.
    pub fn check(&self) -> Result<(), LoadError> {
        let wrong = |what: String| Err(LoadError::Plan(what));
        if self.targets.is_empty() {
            return wrong("at least one URL is needed".to_owned());
        }
        if !(1..=CONNECTIONS_LIMIT).contains(&self.connections) {
            return wrong(format!("connections: 1 to {CONNECTIONS_LIMIT} are possible"));
        }
        if !(1..=THREADS_LIMIT).contains(&self.threads) || self.threads > self.connections {
            return wrong(format!(
                "threads: 1 to {} are possible: each has at least one connection",
                self.connections.min(THREADS_LIMIT)
            ));
        }
        if !(1..=DEPTH_LIMIT).contains(&self.depth) {
            return wrong(format!("--depth: 1 to {DEPTH_LIMIT} READs can be under way on a connection"));
        }
        if !(1..=BLOCK_LIMIT_BYTES).contains(&self.block_bytes) {
            return wrong(format!("--block: 1 to {BLOCK_LIMIT_BYTES} bytes can be asked for at a time"));
        }
        if matches!(self.until, Until::Requests(0) | Until::Time(Duration::ZERO)) {
            return wrong("a run of no length measures nothing".to_owned());
        }
        if !self.tls
            && (self.trust != Trust::System
                || self.identity.is_some()
                || !self.cipher_suites.is_empty()
                || !self.groups.is_empty())
        {
            return wrong("with --xprtsec none nothing about TLS can be chosen".to_owned());
        }
        Ok(())
    }

    fn tls_policy(&self) -> TlsPolicy {
        let mut policy = TlsPolicy { session_tickets: false, ..TlsPolicy::default() };
        if !self.cipher_suites.is_empty() {
            policy.cipher_suites.clone_from(&self.cipher_suites);
        }
        policy.groups = if self.groups.is_empty() { Group::ALL.to_vec() } else { self.groups.clone() };
        policy
    }

    fn subject(&self, target: &NfsTarget) -> Subject {
        let minor_version = match self.minor_version {
            MinorVersion::One => 1,
            MinorVersion::Two => 2,
        };
        Subject {
            caller: Caller {
                minor_version,
                user: rustix::process::geteuid().as_raw(),
                group: rustix::process::getegid().as_raw(),
            },
            owner: String::new(),
            verifier: 0,
            path: target.path.clone(),
            block_bytes: self.block_bytes,
            depth: self.depth,
        }
    }
}

/// A file of a server, and what is said to it.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) address: std::net::SocketAddr,
    pub(super) target: Target,
    subject: Subject,
}

/// What is the same for all threads, and does not change.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) origins: Vec<Origin>,
    pub(super) order: Order,
    pub(super) block_bytes: u32,
    pub(super) shape: SocketShape,
    /// Tells this run's clients from those of others.
    run: String,
    began_ns: u64,
}

impl Prepared {
    /// Resolves names, opens sources, prepares TLS.
    ///
    /// # Errors
    /// Any of that failed.
    pub(super) fn new(plan: &NfsPlan) -> Result<Self, LoadError> {
        let connector = match plan.tls {
            true => {
                let connector = Connector::for_rpc(&plan.tls_policy(), &plan.trust)?;
                Some(connector.showing(plan.identity.as_ref())?)
            }
            false => None,
        };
        let origins = plan.targets.iter().map(|target| {
            let source = plan.verify.as_deref().map(|place| Source::at(place, &target.path)).transpose()?;
            Ok(Origin {
                address: resolve::address(&target.host, target.port)?,
                target: Target {
                    url: target.to_string(),
                    host: target.host.clone(),
                    connector: connector.clone(),
                    source,
                },
                subject: plan.subject(target),
            })
        });
        let began_ns =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        Ok(Self {
            origins: origins.collect::<Result<_, LoadError>>()?,
            order: plan.order,
            block_bytes: plan.block_bytes,
            shape: plan.shape,
            run: format!("linerate load {} {began_ns}", process::id()),
            began_ns,
        })
    }

    /// What the connection in a thread's slot is to do.
    pub(super) fn subject(&self, origin: usize, thread: u32, slot: usize) -> Subject {
        let subject = self.origins[origin].subject.clone();
        Subject { owner: format!("{} {thread} {slot}", self.run), verifier: self.began_ns, ..subject }
    }
}

/// Makes the run that `plan` describes. It ends early, and is reported all the same, once `interrupt` is set.
///
/// # Errors
/// There was no run: [`LoadError`]. What fails within one is counted in the report.
pub fn run(plan: &NfsPlan, interrupt: &AtomicBool, sayings: Sayings) -> Result<LoadReport, LoadError> {
    plan.check()?;
    let prepared = Prepared::new(plan)?;
    let shape = Conduct {
        threads: plan.threads,
        connections: plan.connections,
        sources: plan.targets.len() as u64,
        until: plan.until,
        warm_up: plan.warm_up,
        rate: None,
        spin: plan.spin,
        cpus: &plan.cpus,
        timeout: plan.timeout,
    };
    let mut report = conduct(&shape, interrupt, sayings, |job, shared| {
        Worker::new(job, &prepared, shared).and_then(Worker::work)
    })?;
    report.command.clone_from(&plan.command);
    report.verified = plan.verify.is_some();
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_said_in_the_words_of_the_command_line() {
        let good = || NfsPlan::new(vec!["nfs://h/f".parse().unwrap()], Until::Requests(1));
        assert!(good().check().is_ok());
        for (plan, words) in [
            (NfsPlan { targets: Vec::new(), ..good() }, "URL"),
            (NfsPlan { connections: 0, ..good() }, "connections"),
            (NfsPlan { threads: 2, ..good() }, "at least one connection"),
            (NfsPlan { depth: 0, ..good() }, "--depth"),
            (NfsPlan { block_bytes: 0, ..good() }, "--block"),
            (NfsPlan { until: Until::Requests(0), ..good() }, "no length"),
            (NfsPlan { tls: false, trust: Trust::Anyone, ..good() }, "--xprtsec"),
        ] {
            let said = plan.check().unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
    }
}
