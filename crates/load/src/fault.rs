//! What ends a connection before its time.

use std::io;

use linerate_record::RecordError;
use linerate_tls::ConnectFailure;

use crate::response::ResponseFault;

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
    /// Nothing came for too long.
    TimedOut(&'static str),
    /// The source to compare with cannot be read.
    Source(io::Error),
}

impl Fault {
    /// The kind, to count by.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Connect(error) => format!("connect: {}", io_kind(error)),
            Self::Handshake(failure) => format!("handshake: {}", failure.kind()),
            Self::ClosedInHandshake => "handshake: closed".to_owned(),
            Self::Socket(error) => format!("socket: {}", io_kind(error)),
            Self::Record(error) => format!("record: {}", error.label()),
            Self::Response(fault) => format!("response: {fault}"),
            Self::Stale | Self::ClosedBeforeResponse => "closed before the response".to_owned(),
            Self::ClosedInResponse => "closed in the response".to_owned(),
            Self::TimedOut(stage) => format!("timed out: {stage}"),
            Self::Source(error) => format!("verify: the source cannot be read: {}", io_kind(error)),
        }
    }

    /// Whether it is the server's certificate that was refused.
    pub(crate) fn is_about_trust(&self) -> bool {
        matches!(self, Self::Handshake(failure) if failure.is_about_trust())
    }

    /// The whole story, for the case that no connection at all came about.
    pub(crate) fn story(&self) -> String {
        match self {
            Self::Connect(error) if error.kind() == io::ErrorKind::AddrNotAvailable => format!(
                "{error}: every local port is taken: widen net.ipv4.ip_local_port_range, or use fewer connections"
            ),
            Self::Connect(error) | Self::Socket(error) => error.to_string(),
            Self::Handshake(failure) => failure.to_string(),
            Self::Record(error) => error.to_string(),
            other => other.kind(),
        }
    }
}

/// An error's kind without numbers and addresses: "connection refused".
fn io_kind(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => "no local port is free".to_owned(),
        kind => kind.to_string(),
    }
}
