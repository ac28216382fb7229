//! Why there was no run, or no listener: what, where, and what to do.

use linerate_tls::TlsError;
use std::{fmt, io, net::SocketAddr, path::PathBuf};

/// A run that did not take place, or a listener that could not begin. What goes wrong within a run is in its report.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// The plan contradicts itself, in words for the command line.
    Plan(String),
    /// A host name has no address.
    Unresolved {
        /// The name.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// There is no connection to the listener.
    Unreachable {
        /// Where to.
        listener: String,
        /// Why.
        reason: String,
    },
    /// The listener, or what is there, did not agree to a run.
    Refused(String),
    /// The secret cannot be used.
    Secret {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A listener outside loopback has no secret.
    SecretNeeded(SocketAddr),
    /// Nobody can listen there.
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A file to send cannot be used.
    File {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The limit of open files does not allow that many streams.
    OpenFiles {
        /// Descriptors that are needed.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// TLS cannot be set up.
    Tls(TlsError),
    /// The system refused something that every run needs.
    System {
        /// What.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl fmt::Display for StreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(reason) => formatter.write_str(reason),
            Self::Unresolved { host, reason } => write!(formatter, "{host}: no address: {reason}"),
            Self::Unreachable { listener, reason } => {
                write!(
                    formatter,
                    "{listener}: no connection: {reason} (the other end is `linerate stream --listen`)"
                )
            }
            Self::Refused(reason) => formatter.write_str(reason),
            Self::Secret { file, reason } => write!(formatter, "{}: no secret: {reason}", file.display()),
            Self::SecretNeeded(address) => write!(
                formatter,
                "{address}: a listener outside loopback needs --secret FILE, so that it sends only to clients that know \
                 it; make one by `head -c 32 /dev/urandom | base64 > FILE`, and give both ends the same"
            ),
            Self::Listen { address, source } => {
                write!(formatter, "{address}: cannot be listened on: {source}")
            }
            Self::File { file, reason } => write!(formatter, "{}: cannot be sent: {reason}", file.display()),
            Self::OpenFiles { needed, limit } => write!(
                formatter,
                "{needed} open files are needed, and the limit is {limit}: raise it with `ulimit -n {needed}` (as \
                 root, or in /etc/security/limits.conf), or use fewer streams (-P)"
            ),
            Self::Tls(error) => error.fmt(formatter),
            Self::System { what, source } => write!(formatter, "{what}: {source}"),
        }
    }
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { source, .. } | Self::System { source, .. } => Some(source),
            Self::Tls(error) => Some(error),
            _ => None,
        }
    }
}

impl From<TlsError> for StreamError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error)
    }
}
