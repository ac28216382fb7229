//! Receiving: how a peer's bytes get from a socket into memory, by engine, in one vocabulary.
//!
//! An engine takes what the socket has, into memory that it is lent, gives its application data on, in order and each byte once,
//! and says how far it got ([`Arrival`]). It never waits.
//!
//! - [`plain`]: no TLS.
//! - [`mapped`]: no TLS, and no copy where pages can be mapped.
//! - [`user`]: records are opened here, in place, many to a `recv`.
//! - [`kernel`]: Linux opens the records (kernel TLS). Data comes straight into memory; what the other records mean is still
//!   said by the [`Channel`].
//!
//! A connection begins on the user engine and is promoted at a record boundary ([`kernel::promote`], INV-RECEIVE-1), for good.
//! [`carried`] says what the kernel of this machine takes.

mod capabilities;
pub mod kernel;
pub mod mapped;
pub mod plain;
#[cfg(test)]
mod tests;
pub mod user;

pub use capabilities::{CarriedReceiving, carried};
pub use linerate_os::receive_mapping::Obstacle;

use linerate_record::{AlertDescription, Channel, KeySource, RecordError};
use std::{fmt, io, os::fd::BorrowedFd};

/// The least that the memory lent to an engine may be: the longest record of TLS, its header included.
pub const LEAST_BUFFER_BYTES: usize = 5 + (1 << 14) + 2048;

/// A connection over TLS as its receiving engine sees it.
pub struct Connection<'a, K> {
    /// The socket.
    pub socket: BorrowedFd<'a>,
    /// Record protection.
    pub channel: &'a mut Channel<K>,
    /// Any monotonic clock, in milliseconds: key updates are counted by it.
    pub now_ms: u64,
    /// Alerts that a turn seals are appended here, to be sent. Where sending was handed over, they wait in the channel as
    /// control records instead. A key update that the peer asked for is not among them: [`Channel::owes_key_update`] tells,
    /// and the next [`Channel::prepare_sending`] makes it.
    pub answers: &'a mut Vec<u8>,
}

/// What a turn of receiving came to, the same for all engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Something came.
    Came {
        /// Bytes of application data that were given on; 0 if all of it was about the connection, or no record is whole yet.
        data_bytes: u64,
        /// The socket gave less than there was room for: there is most likely nothing more.
        drained: bool,
    },
    /// Nothing waits in the socket.
    Nothing,
    /// The peer sends no more.
    End(End),
}

/// How a peer ended its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By `close_notify`; in the clear by closing its side of the TCP connection.
    Announced,
    /// TLS, and the TCP connection ended without `close_notify`: something may be missing (RFC 8446 6.1).
    CutOff,
}

/// Why a turn failed: the connection ends.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The socket failed.
    Socket(io::Error),
    /// The peer's records are at fault, or the record layer was misused.
    Record(RecordError),
    /// The peer changed its key, and the kernel did not take the one that follows: no further record can be opened.
    NoNewKey(io::Error),
}

impl From<RecordError> for Fault {
    fn from(fault: RecordError) -> Self {
        Self::Record(fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => write!(formatter, "receiving failed: {error}"),
            Self::Record(fault) => fault.fmt(formatter),
            Self::NoNewKey(error) => write!(
                formatter,
                "the peer changed its key (KeyUpdate), and the kernel, which opens the records of this connection, takes no \
                 other ({error}); Linux 6.14 and later do"
            ),
        }
    }
}

impl std::error::Error for Fault {}

impl<K: KeySource> Connection<'_, K> {
    /// Seals the alert that a fault deserves, and gives the fault.
    fn refuse(&mut self, fault: Fault) -> Fault {
        let description = match &fault {
            Fault::Socket(_) => None,
            Fault::Record(fault) => fault.alert(),
            Fault::NoNewKey(_) => Some(AlertDescription::InternalError),
        };
        if let Some(description) = description {
            // If even that fails there is nothing left to say; the fault itself is what counts.
            let _ = self.channel.alert(description, self.answers);
        }
        fault
    }

    /// Answers a wish to renegotiate (RFC 5246 7.2.2).
    fn refuse_renegotiation(&mut self) -> Result<(), Fault> {
        Ok(self.channel.alert(AlertDescription::NoRenegotiation, self.answers)?)
    }
}

/// The memory lent is too short.
fn check_room(buffer: &[u8]) -> Result<(), Fault> {
    if buffer.len() < LEAST_BUFFER_BYTES {
        return Err(RecordError::Misuse("memory to receive into that is shorter than a record").into());
    }
    Ok(())
}
