//! What feeds rustls, for a server's handshake and for a client's.
//!
//! rustls is handed exactly one record at a time until the handshake is over. Handed more, it would take what follows
//! the peer's Finished for itself: application data, and a KeyUpdate whose answer would be lost with it.

use crate::{
    CipherSuite, DirectionSecrets, Group,
    key_schedule::{NextKeys, traffic_key},
    policy::{group_of, suite_of},
};
use linerate_record::{HEADER_BYTES, MAX_PLAINTEXT_BYTES, Version};
use rustls::{
    CommonState, ConnectionTrafficSecrets, ExtractedSecrets, HandshakeKind, ProtocolVersion,
    client::{ClientConnectionData, UnbufferedClientConnection},
    kernel::KernelConnection,
    server::{ServerConnectionData, UnbufferedServerConnection},
    unbuffered::{ConnectionState, EncodeError, EncodeTlsData, InsufficientSizeError, UnbufferedStatus},
};
use std::ops::Deref;

/// The most that a peer may send until the handshake is over, record headers included. A ClientHello with a
/// post-quantum share and a ticket is under 3 KiB; rustls takes messages of up to 64 KiB, in records as small as the
/// peer likes.
pub const HANDSHAKE_LIMIT_BYTES: usize = 128 * 1024;

/// What a record may add to its plaintext: RFC 5246 6.2.3 allows more than RFC 8446 5.2.
const MAX_EXPANSION_BYTES: usize = 2048;

/// What the connections of rustls' two sides share, but have no trait for.
pub(crate) trait Connection: Deref<Target: Deref<Target = CommonState>> {
    type Data;

    fn process<'c, 'i>(&'c mut self, offered: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    fn into_secrets(self) -> Result<(ExtractedSecrets, KernelConnection<Self::Data>), rustls::Error>;
}

macro_rules! connection {
    ($side:ty, $data:ty) => {
        impl Connection for $side {
            type Data = $data;

            fn process<'c, 'i>(&'c mut self, offered: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, $data> {
                self.process_tls_records(offered)
            }

            fn into_secrets(self) -> Result<(ExtractedSecrets, KernelConnection<$data>), rustls::Error> {
                self.dangerous_into_kernel_connection()
            }
        }
    };
}

connection!(UnbufferedServerConnection, ServerConnectionData);
connection!(UnbufferedClientConnection, ClientConnectionData);

/// Why a handshake cannot go on. Each side has its own words for it.
pub(crate) enum Fault {
    /// A record's header is none of TLS.
    NotTls,
    /// A record's header names a length that none may have.
    TooLong,
    /// The peer sent more than [`HANDSHAKE_LIMIT_BYTES`].
    TooLarge,
    /// The peer closed.
    PeerClosed,
    /// rustls refuses what the peer sent.
    Refused(rustls::Error),
    /// A fault of ours or of rustls'.
    Internal(String),
}

/// One connection of rustls', and how far it has got.
pub(crate) struct Driver<C> {
    connection: Box<C>,
    /// Bytes at the front of `incoming` that rustls has seen and will see again: parts of a message.
    held_bytes: usize,
    received_bytes: usize,
}

/// What both sides know of a handshake that is over.
pub(crate) struct Agreement<Data> {
    pub(crate) version: Version,
    pub(crate) cipher_suite: CipherSuite,
    pub(crate) group: Option<Group>,
    pub(crate) resumed: bool,
    pub(crate) send: DirectionSecrets,
    pub(crate) receive: DirectionSecrets,
    pub(crate) next_keys: NextKeys<Data>,
}

impl<C: Connection> Driver<C> {
    pub(crate) fn new(connection: C) -> Self {
        Self { connection: Box::new(connection), held_bytes: 0, received_bytes: 0 }
    }

    /// What rustls tells about the connection.
    pub(crate) fn common(&self) -> &CommonState {
        &self.connection
    }

    /// Hands records over until the handshake is established (`true`) or there is no whole one. What is done with is
    /// taken from the front of `incoming`. `was_skipped` is asked of a record that rustls was offered alone and did
    /// not take, whether it passed over it.
    pub(crate) fn advance(
        &mut self,
        incoming: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
        was_skipped: fn(&CommonState, &[u8]) -> bool,
    ) -> Result<bool, Fault> {
        let mut consumed = 0;
        let result = self.take_records(incoming, &mut consumed, outgoing, was_skipped);
        incoming.drain(..consumed);
        result
    }

    /// As [`Driver::advance`]. `consumed` is how much at the front of `incoming` is done with.
    fn take_records(
        &mut self,
        incoming: &mut [u8],
        consumed: &mut usize,
        outgoing: &mut Vec<u8>,
        was_skipped: fn(&CommonState, &[u8]) -> bool,
    ) -> Result<bool, Fault> {
        loop {
            let pending = &mut incoming[*consumed..];
            let waiting = &pending[self.held_bytes..];
            let Some(record_bytes) = record_bytes(waiting)?.filter(|bytes| *bytes <= waiting.len()) else {
                return Ok(false);
            };
            self.received_bytes += record_bytes;
            if self.received_bytes > HANDSHAKE_LIMIT_BYTES {
                return Err(Fault::TooLarge);
            }
            let offered = &mut pending[..self.held_bytes + record_bytes];
            let (mut taken_bytes, is_established) = self.offer(offered, outgoing)?;
            if taken_bytes == 0 && self.held_bytes == 0 && was_skipped(self.common(), offered) {
                taken_bytes = offered.len();
            }
            self.held_bytes = offered.len() - taken_bytes;
            *consumed += taken_bytes;
            if is_established {
                return Ok(true);
            }
        }
    }

    /// Shows rustls the header for which [`Driver::advance`] failed: it may have an alert for it, or an error of its
    /// own.
    pub(crate) fn show_header(&mut self, incoming: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Fault> {
        let end = incoming.len().min(self.held_bytes + HEADER_BYTES);
        self.offer(&mut incoming[..end], outgoing).map(drop)
    }

    /// Lets rustls work on `offered` (nothing, where it speaks first) until it wants another record, or the handshake
    /// is established (`true`). Gives how many bytes it is done with.
    pub(crate) fn offer(
        &mut self,
        offered: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(usize, bool), Fault> {
        let mut taken_bytes = 0;
        loop {
            let UnbufferedStatus { discard, state } = self.connection.process(&mut offered[taken_bytes..]);
            taken_bytes += discard;
            match state.map_err(Fault::Refused)? {
                ConnectionState::EncodeTlsData(chunk) => encode(chunk, outgoing).map_err(Fault::Internal)?,
                // "Transmitted" is as good as written to `outgoing`: that the caller sends it all, in order, before
                // anything else, is the handshakes' contract.
                ConnectionState::TransmitTlsData(transmit) => transmit.done(),
                ConnectionState::BlockedHandshake => return Ok((taken_bytes, false)),
                ConnectionState::WriteTraffic(_) => return Ok((taken_bytes, true)),
                ConnectionState::PeerClosed | ConnectionState::Closed => return Err(Fault::PeerClosed),
                // Early data is off, and application data is never offered.
                other => {
                    return Err(Fault::Internal(format!("rustls gave {other:?} during the handshake")));
                }
            }
        }
    }

    /// Appends the alert that rustls has for the peer. False if it has none.
    pub(crate) fn write_alert(&mut self, outgoing: &mut Vec<u8>) -> bool {
        let mut is_said = false;
        // Only while something waits: rustls would look for the held bytes in this empty buffer otherwise.
        while self.common().wants_write() {
            let UnbufferedStatus { state, .. } = self.connection.process(&mut []);
            let Ok(ConnectionState::EncodeTlsData(chunk)) = state else { break };
            if encode(chunk, outgoing).is_err() {
                break;
            }
            is_said = true;
        }
        is_said
    }

    /// Takes the agreement and the secrets out of rustls.
    pub(crate) fn finish(self) -> Result<Agreement<C::Data>, Fault> {
        let internal = |what: &str| Fault::Internal(what.to_owned());
        if self.held_bytes > 0 {
            return Err(internal("rustls kept bytes that belong to the record layer"));
        }
        let common = self.common();
        let version = match common.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => Version::Tls13,
            Some(ProtocolVersion::TLSv1_2) => Version::Tls12,
            _ => return Err(internal("no version was agreed")),
        };
        let cipher_suite = common
            .negotiated_cipher_suite()
            .and_then(suite_of)
            .ok_or_else(|| internal("no cipher suite was agreed"))?;
        let group = common.negotiated_key_exchange_group().and_then(|group| group_of(group.name()));
        let resumed = common.handshake_kind() == Some(HandshakeKind::Resumed);
        let (secrets, kernel_connection) = self.connection.into_secrets().map_err(Fault::Refused)?;
        let direction = |(sequence_number, secrets): (u64, ConnectionTrafficSecrets)| {
            traffic_key(version, &secrets)
                .map(|key| DirectionSecrets { key, sequence_number })
                .map_err(|error| Fault::Internal(error.to_string()))
        };
        Ok(Agreement {
            version,
            cipher_suite,
            group,
            resumed,
            send: direction(secrets.tx)?,
            receive: direction(secrets.rx)?,
            next_keys: NextKeys::new(kernel_connection),
        })
    }
}

/// Length of the record that `waiting` begins with, whether it is whole or not; `None` while its header is not.
pub(crate) fn record_bytes(waiting: &[u8]) -> Result<Option<usize>, Fault> {
    let Some(&[content_type, major, _, high, low]) = waiting.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    if !(20..=24).contains(&content_type) || major != 3 {
        return Err(Fault::NotTls);
    }
    let payload_bytes = usize::from(u16::from_be_bytes([high, low]));
    if payload_bytes > MAX_PLAINTEXT_BYTES + MAX_EXPANSION_BYTES {
        return Err(Fault::TooLong);
    }
    Ok(Some(HEADER_BYTES + payload_bytes))
}

/// Appends the record that rustls has ready.
fn encode<Data>(mut chunk: EncodeTlsData<'_, Data>, outgoing: &mut Vec<u8>) -> Result<(), String> {
    let start = outgoing.len();
    let Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) = chunk.encode(&mut [])
    else {
        return Err("rustls has an empty record to send".to_owned());
    };
    outgoing.resize(start + required_size, 0);
    match chunk.encode(&mut outgoing[start..]) {
        Ok(_) => Ok(()),
        Err(error) => {
            outgoing.truncate(start);
            Err(error.to_string())
        }
    }
}
