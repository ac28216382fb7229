//! Why a run could not be made: what, where, and what to do.

use std::{fmt, io, path::PathBuf};

use linerate_tls::TlsError;

/// A run that did not take place. What goes wrong within one is counted in its report.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The plan contradicts itself, in words for the command line.
    Plan(String),
    /// A host name has no address.
    Unresolved {
        /// The name.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// Not one connection could be made.
    Unreachable {
        /// Where to.
        server: String,
        /// Why.
        reason: String,
        /// The server's certificate is not trusted.
        untrusted: bool,
    },
    /// The limit of open files does not allow that many connections.
    OpenFiles {
        /// Descriptors that are needed.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// A file to compare with cannot be used.
    Source {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// TLS cannot be set up.
    Tls(TlsError),
    /// A thread cannot be pinned to its CPU.
    Pin {
        /// The CPU.
        cpu: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// The system refused something that every run needs.
    System {
        /// What.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(reason) => formatter.write_str(reason),
            Self::Unresolved { host, reason } => write!(formatter, "{host}: no address: {reason}"),
            Self::Unreachable { server, reason, untrusted: false } => {
                write!(formatter, "{server}: no connection: {reason}")
            }
            Self::Unreachable { server, reason, untrusted: true } => write!(
                formatter,
                "{server}: the certificate is not trusted: {reason}; name its authority with --ca FILE, or take any \
                 certificate with --insecure"
            ),
            Self::OpenFiles { needed, limit } => write!(
                formatter,
                "{needed} open files are needed, and the limit is {limit}: raise it with `ulimit -n {needed}` (as \
                 root, or in /etc/security/limits.conf), or use fewer connections"
            ),
            Self::Source { file, source } => {
                write!(formatter, "{}: cannot be compared with: {source}", file.display())
            }
            Self::Tls(error) => error.fmt(formatter),
            Self::Pin { cpu, source } => {
                write!(
                    formatter,
                    "a thread cannot be pinned to CPU {cpu}: {source}: see `nproc` and `taskset -cp $$`"
                )
            }
            Self::System { what, source } => write!(formatter, "{what}: {source}"),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Source { source, .. } | Self::Pin { source, .. } | Self::System { source, .. } => {
                Some(source)
            }
            Self::Tls(error) => Some(error),
            _ => None,
        }
    }
}

impl From<TlsError> for LoadError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error)
    }
}
