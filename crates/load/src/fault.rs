//! What ends a connection before its time.

use std::io;

use linerate_record::RecordError;
use linerate_tls::ConnectFailure;

use crate::response_fault::ResponseFault;

/// How running out of local ports is counted.
pub(crate) const NO_PORT: &str = "connect: no local port is free";
/// What can be done about it.
pub(crate) const NO_PORT_ADVICE: &str = "every local port towards this server is taken or waits for its end: widen \
    net.ipv4.ip_local_port_range, use fewer connections, or give the server more addresses or ports";

/// What ended a connection.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There was no connection.
    Connect(io::Error),
    /// There was no handshake.
    Handshake(ConnectFailure),
    /// The server closed during the handshake.
    ClosedInHandshake,
    /// The connection broke.
    Socket(io::Error),
    /// A record that is none.
    Record(RecordError),
    /// A response that is none.
    Response(ResponseFault),
    /// The server closed before it answered, on a connection that had served before: as servers may.
    Stale,
    /// The server closed before it answered.
    ClosedBeforeResponse,
    /// The server closed in the middle of its response.
    ClosedInResponse,
    /// The server closed a connection that was to be kept.
    ClosedIdle,
    /// Nothing came for too long.
    TimedOut(&'static str),
    /// The source to compare with cannot be read.
    Source(io::Error),
    /// An NFS server said no, in words.
    Nfs(String),
}

impl Fault {
    /// The kind, to count by.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Connect(error) if error.kind() == io::ErrorKind::AddrNotAvailable => NO_PORT.to_owned(),
            Self::Connect(error) => format!("connect: {}", error.kind()),
            Self::Handshake(failure) => format!("handshake: {}", failure.kind()),
            Self::ClosedInHandshake => "handshake: closed".to_owned(),
            Self::Socket(error) => format!("socket: {}", error.kind()),
            Self::Record(error) => format!("record: {}", error.label()),
            Self::Response(fault) => format!("response: {fault}"),
            Self::Stale | Self::ClosedBeforeResponse => "closed before the response".to_owned(),
            Self::ClosedInResponse => "closed in the response".to_owned(),
            Self::ClosedIdle => "closed while idle".to_owned(),
            Self::TimedOut(stage) => format!("timed out: {stage}"),
            Self::Source(error) => format!("verify: the source cannot be read: {}", error.kind()),
            Self::Nfs(said) => format!("nfs: {said}"),
        }
    }

    /// Whether it is the server's certificate that was refused.
    pub(crate) fn is_about_trust(&self) -> bool {
        matches!(self, Self::Handshake(failure) if failure.is_about_trust())
    }

    /// The whole story, for the case that no connection at all came about.
    pub(crate) fn story(&self) -> String {
        match self {
            Self::Connect(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                format!("{error}: {NO_PORT_ADVICE}")
            }
            Self::Connect(error) | Self::Socket(error) => error.to_string(),
            Self::Handshake(failure) => failure.to_string(),
            Self::Record(error) => error.to_string(),
            other => other.kind(),
        }
    }
}
