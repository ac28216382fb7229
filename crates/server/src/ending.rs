//! How a connection ends, that one alone (INV-PEER-1): one enum, so that every end is counted, and logged where an
//! operator can do something.

use crate::{
    metrics::Closed,
    watch::{Expiry, Stage},
};
use linerate_engine::{Fault, source::Change};
use linerate_record::RecordError;
use std::{fmt, io};

/// Why a connection goes no further.
#[derive(Debug)]
pub(crate) enum Ending {
    /// All went well: the last response was sent, and no further request is wanted or possible.
    Served,
    /// The peer closed its side.
    PeerClosed,
    /// A wait took too long, or the server is going down.
    Expired(Expiry),
    /// The socket failed: reset, unreachable.
    Socket(io::Error),
    /// A fault in the record layer; the alert is on its way.
    Record(RecordError),
    /// The kernel did not take the key that the peer was told of.
    KernelKey(io::Error),
    /// The handshake failed; the word is for metrics.
    Handshake(&'static str),
    /// The file was changed while it was sent.
    Changed(Change),
    /// A file was changed behind its response, before the client had all of it.
    ChangedBehind,
    /// The file could not be read.
    Unreadable(io::Error),
    /// The peer's bytes are no HTTP: it was told so.
    BadRequest,
}

impl From<Fault> for Ending {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Socket(error) => Self::Socket(error),
            Fault::Unreadable(error) => Self::Unreadable(error),
            Fault::Changed(change) => Self::Changed(change),
            Fault::Record(fault) => Self::Record(fault),
        }
    }
}

impl Ending {
    /// The counter it belongs to.
    pub(crate) fn closed(&self) -> Closed {
        match self {
            Self::Served => Closed::Served,
            Self::PeerClosed => Closed::Peer,
            Self::Expired(Expiry::Drain) => Closed::Drain,
            Self::Expired(Expiry::TooSlow) => Closed::TooSlow,
            Self::Expired(Expiry::Evicted(Stage::Handshake)) => Closed::HandshakeEvicted,
            Self::Expired(Expiry::Evicted(_)) => Closed::IdleEvicted,
            Self::Expired(Expiry::Deadline(stage)) => match stage {
                Stage::Handshake => Closed::HandshakeTimeout,
                Stage::Idle => Closed::Idle,
                Stage::Head => Closed::Header,
                Stage::Sending => Closed::Writing,
                // Nothing ends the server's own work; the arm is for the compiler.
                Stage::Closing | Stage::Working => Closed::Served,
            },
            Self::Socket(_) => Closed::Reset,
            Self::Record(RecordError::KeyExhausted) => Closed::RecordLimit,
            Self::Record(_) => Closed::RecordFault,
            Self::KernelKey(_) => Closed::KernelKey,
            Self::Handshake(_) => Closed::Handshake,
            Self::Changed(_) | Self::ChangedBehind => Closed::BrokenFile,
            Self::Unreadable(_) => Closed::Unreadable,
            Self::BadRequest => Closed::Request,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Served => formatter.write_str("the last response was sent"),
            Self::PeerClosed => formatter.write_str("the peer closed the connection"),
            Self::Expired(Expiry::Drain) => formatter.write_str("the server is going down"),
            Self::Expired(Expiry::TooSlow) => formatter.write_str("the peer took too little for too long"),
            Self::Expired(Expiry::Evicted(_)) => {
                formatter.write_str("nothing happened on it, and there was no place for another")
            }
            Self::Expired(Expiry::Deadline(stage)) => write!(formatter, "timed out ({stage:?})"),
            Self::Socket(error) => write!(formatter, "the connection failed: {error}"),
            Self::Record(fault) => fault.fmt(formatter),
            Self::KernelKey(error) => write!(formatter, "the kernel did not take the next key: {error}"),
            Self::Handshake(reason) => write!(formatter, "the handshake failed: {reason}"),
            Self::Changed(Change::Overwritten) => {
                formatter.write_str("the file was overwritten while it was sent")
            }
            Self::ChangedBehind => {
                formatter.write_str("the file was changed before the client had all of it")
            }
            Self::Changed(Change::CutShort(offset)) => {
                write!(formatter, "the file was cut short at byte {offset} while it was sent")
            }
            Self::Unreadable(error) => write!(formatter, "the file could not be read: {error}"),
            Self::BadRequest => formatter.write_str("the request was malformed"),
        }
    }
}
