//! The client's side of a handshake, without I/O: bytes in, bytes out, and at the end the secrets.
//!
//! As on the server's side rustls is handed exactly one record at a time until the handshake is over, so that what
//! follows it (session tickets, the first response) is the record layer's.

use crate::policy::{group_of, suite_of};
use crate::{
    Chain, CipherSuite, DirectionSecrets, Group, HANDSHAKE_LIMIT_BYTES,
    connector::{CLIENT_PROTOCOL, ConnectFailure, Connector},
    established::traffic_key,
    handshake::encode,
};
use linerate_record::{HEADER_BYTES, KeySource, MAX_PLAINTEXT_BYTES, RecordError, TrafficKey, Version};
use rustls::{
    HandshakeKind, ProtocolVersion,
    client::{ClientConnectionData, UnbufferedClientConnection},
    kernel::KernelConnection,
    pki_types::ServerName,
    unbuffered::{ConnectionState, UnbufferedStatus},
};
use std::{fmt, sync::Arc};

/// What a record may add to its plaintext: RFC 5246 6.2.3 allows more than RFC 8446 5.2.
const MAX_EXPANSION_BYTES: usize = 2048;

/// Where a client's handshake stands.
#[derive(Debug)]
pub enum ConnectStep {
    /// Send what is in `outgoing`, then read more.
    NeedInput,
    /// It is over; what is in `outgoing` is still to be sent, before anything else.
    Connected(Box<Connected>),
}

/// A client's handshake that succeeded.
#[derive(Debug)]
pub struct Connected {
    /// The version agreed.
    pub version: Version,
    /// The suite agreed.
    pub cipher_suite: CipherSuite,
    /// The key exchange group; `None` when a TLS 1.2 session was resumed, which exchanges no keys.
    pub group: Option<Group>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// What the server showed: in this handshake, or in the one whose session was resumed.
    pub server_certificates: Chain,
    /// From us to the server.
    pub send: DirectionSecrets,
    /// From the server to us.
    pub receive: DirectionSecrets,
    /// Where the next keys come from, and where tickets go.
    pub key_schedule: ClientKeySchedule,
}

/// The key schedule after a client's handshake (RFC 8446 7.2), which also takes the session tickets that the server
/// sends. Of a TLS 1.2 connection, whose keys never change and whose tickets come in the handshake, it is empty.
pub struct ClientKeySchedule {
    connection: Option<Box<KernelConnection<ClientConnectionData>>>,
    keeps_tickets: bool,
}

/// One connection's handshake, on the client's side.
pub struct ClientHandshake {
    connection: Option<Box<UnbufferedClientConnection>>,
    keeps_tickets: bool,
    /// Bytes at the front of `incoming` that rustls has seen and will see again: parts of a message.
    held_bytes: usize,
    received_bytes: usize,
}

impl ClientHandshake {
    /// A handshake with the server of this name (a host name, sent as SNI, or an IP address, which is not). Appends the
    /// ClientHello to `outgoing`.
    ///
    /// # Errors
    /// The name is none, or rustls cannot begin.
    pub fn start(
        connector: &Connector,
        server_name: &str,
        outgoing: &mut Vec<u8>,
    ) -> Result<Self, ConnectFailure> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| ConnectFailure::new("server name", format!("\"{server_name}\" is no host name")))?;
        let connection = UnbufferedClientConnection::new(Arc::clone(connector.config()), name)?;
        let mut handshake = Self {
            connection: Some(Box::new(connection)),
            keeps_tickets: connector.resumes(),
            held_bytes: 0,
            received_bytes: 0,
        };
        handshake.offer(&mut [], outgoing)?;
        Ok(handshake)
    }

    /// Takes whole records from the front of `incoming` and appends to `outgoing` what is to be sent.
    ///
    /// What it can't use yet stays in `incoming`: append to it, don't change it. When the handshake is established,
    /// everything that is left belongs to the record layer.
    ///
    /// # Errors
    /// The handshake failed. `outgoing` then ends with the alert, if one can be sent.
    pub fn advance(
        &mut self,
        incoming: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<ConnectStep, ConnectFailure> {
        let mut consumed = 0;
        let result = self.take_records(incoming, &mut consumed, outgoing);
        incoming.drain(..consumed);
        match result {
            Ok(false) => Ok(ConnectStep::NeedInput),
            Ok(true) => self.finish().map(|connected| ConnectStep::Connected(Box::new(connected))),
            Err(failure) => {
                self.write_alert(outgoing);
                self.connection = None;
                Err(failure)
            }
        }
    }

    /// Hands records over until the handshake is established (`true`) or there is no whole one.
    fn take_records(
        &mut self,
        incoming: &mut [u8],
        consumed: &mut usize,
        outgoing: &mut Vec<u8>,
    ) -> Result<bool, ConnectFailure> {
        loop {
            let pending = &mut incoming[*consumed..];
            let Some(record_bytes) = next_record_bytes(&pending[self.held_bytes..])? else {
                return Ok(false);
            };
            self.received_bytes += record_bytes;
            if self.received_bytes > HANDSHAKE_LIMIT_BYTES {
                let detail = format!("the server sent more than {HANDSHAKE_LIMIT_BYTES} bytes");
                return Err(ConnectFailure::new("too large", detail));
            }
            let offered = &mut pending[..self.held_bytes + record_bytes];
            let offered_bytes = offered.len();
            let (taken_bytes, is_established) = self.offer(offered, outgoing)?;
            self.held_bytes = offered_bytes - taken_bytes;
            *consumed += taken_bytes;
            if is_established {
                return Ok(true);
            }
        }
    }

    /// Lets rustls work on `offered` until it wants another record, or the handshake is established (`true`). Gives
    /// how many bytes it is done with.
    fn offer(&mut self, offered: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(usize, bool), ConnectFailure> {
        let connection =
            self.connection.as_deref_mut().ok_or_else(|| internal("the handshake is already over"))?;
        let mut taken_bytes = 0;
        loop {
            let UnbufferedStatus { discard, state } =
                connection.process_tls_records(&mut offered[taken_bytes..]);
            taken_bytes += discard;
            match state? {
                ConnectionState::EncodeTlsData(chunk) => {
                    encode(chunk, outgoing).map_err(|fault| internal(&fault))?
                }
                // That the caller sends `outgoing` before anything else is this module's contract.
                ConnectionState::TransmitTlsData(transmit) => transmit.done(),
                ConnectionState::BlockedHandshake => return Ok((taken_bytes, false)),
                ConnectionState::WriteTraffic(_) => return Ok((taken_bytes, true)),
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    return Err(ConnectFailure::new("closed", "the server closed during the handshake"));
                }
                other => return Err(internal(&format!("rustls gave {other:?} during the handshake"))),
            }
        }
    }

    /// Takes the agreement and the secrets out of rustls.
    fn finish(&mut self) -> Result<Connected, ConnectFailure> {
        let connection = self.connection.take().ok_or_else(|| internal("no handshake"))?;
        if self.held_bytes > 0 {
            return Err(internal("rustls kept bytes that belong to the record layer"));
        }
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => Version::Tls13,
            Some(ProtocolVersion::TLSv1_2) => Version::Tls12,
            _ => return Err(internal("no version was agreed")),
        };
        let cipher_suite = connection
            .negotiated_cipher_suite()
            .and_then(suite_of)
            .ok_or_else(|| internal("no cipher suite was agreed"))?;
        if connection.alpn_protocol().is_some_and(|agreed| agreed != CLIENT_PROTOCOL) {
            return Err(ConnectFailure::new("protocol", "the server chose another protocol than http/1.1"));
        }
        let group = connection.negotiated_key_exchange_group().and_then(|group| group_of(group.name()));
        let resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
        let server_certificates = Chain::shown(connection.peer_certificates().unwrap_or_default());
        let (secrets, kernel_connection) = connection.dangerous_into_kernel_connection()?;
        let direction = |(sequence_number, secrets): (u64, rustls::ConnectionTrafficSecrets)| {
            traffic_key(version, &secrets)
                .map(|key| DirectionSecrets { key, sequence_number })
                .map_err(|error| internal(&error.to_string()))
        };
        Ok(Connected {
            version,
            cipher_suite,
            group,
            resumed,
            server_certificates,
            send: direction(secrets.tx)?,
            receive: direction(secrets.rx)?,
            key_schedule: ClientKeySchedule {
                connection: (version == Version::Tls13).then(|| Box::new(kernel_connection)),
                keeps_tickets: self.keeps_tickets,
            },
        })
    }

    /// Appends the alert that rustls has for the server, if it has one.
    fn write_alert(&mut self, outgoing: &mut Vec<u8>) {
        let Some(connection) = self.connection.as_deref_mut() else { return };
        // Only while something waits: rustls would look for the held bytes in this empty buffer otherwise.
        while connection.wants_write() {
            let UnbufferedStatus { state, .. } = connection.process_tls_records(&mut []);
            let Ok(ConnectionState::EncodeTlsData(chunk)) = state else { break };
            if encode(chunk, outgoing).is_err() {
                break;
            }
        }
    }
}

/// Length of the record that `waiting` begins with; `None` while it is not whole.
fn next_record_bytes(waiting: &[u8]) -> Result<Option<usize>, ConnectFailure> {
    let Some(&[content_type, major, _, high, low]) = waiting.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    if !(20..=24).contains(&content_type) || major != 3 {
        return Err(ConnectFailure::new(
            "not TLS",
            "the server's answer is not TLS: is this a plain http port?",
        ));
    }
    let payload_bytes = usize::from(u16::from_be_bytes([high, low]));
    if payload_bytes > MAX_PLAINTEXT_BYTES + MAX_EXPANSION_BYTES {
        return Err(ConnectFailure::new("malformed", "the server sent a record that is too long"));
    }
    let record_bytes = HEADER_BYTES + payload_bytes;
    Ok((waiting.len() >= record_bytes).then_some(record_bytes))
}

fn internal(what: &str) -> ConnectFailure {
    ConnectFailure::new("internal", what)
}

impl KeySource for ClientKeySchedule {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        let connection = self.connection.as_mut().ok_or(RecordError::Crypto)?;
        let (_, secrets) = connection.update_tx_secret().map_err(|_| RecordError::Crypto)?;
        traffic_key(Version::Tls13, &secrets)
    }

    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        let connection = self.connection.as_mut().ok_or(RecordError::Crypto)?;
        let (_, secrets) = connection.update_rx_secret().map_err(|_| RecordError::Crypto)?;
        traffic_key(Version::Tls13, &secrets)
    }

    fn take_ticket(&mut self, ticket: &[u8]) -> Result<(), RecordError> {
        match &mut self.connection {
            Some(connection) if self.keeps_tickets => connection
                .handle_new_session_ticket(ticket)
                .map_err(|_| RecordError::Malformed("NewSessionTicket")),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for ClientKeySchedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientKeySchedule").finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientHandshake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientHandshake")
            .field("received_bytes", &self.received_bytes)
            .finish_non_exhaustive()
    }
}
