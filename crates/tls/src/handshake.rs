//! A handshake without I/O: bytes in, bytes out, and at the end the secrets.
//!
//! rustls is handed exactly one record at a time until the handshake is over. Handed more, it would take what follows
//! the client's Finished for itself: request bytes, and a KeyUpdate whose answer would be lost with it.

use crate::policy::{group_of, suite_of};
use crate::{
    Acceptor, DirectionSecrets, Established, FailureKind, HandshakeFailure, KeySchedule,
    acceptor::APPLICATION_PROTOCOLS,
    established::traffic_key,
    first_bytes::{ClientHint, FirstBytes, is_before_tls12, recognise},
    site::{Resolved, take_resolved},
};
use linerate_record::{HEADER_BYTES, MAX_PLAINTEXT_BYTES, Version};
use rustls::{
    HandshakeKind, ProtocolVersion,
    server::UnbufferedServerConnection,
    unbuffered::{ConnectionState, EncodeError, EncodeTlsData, InsufficientSizeError, UnbufferedStatus},
};
use std::{fmt, sync::Arc};

/// The most that a client may send until the handshake is over, record headers included. A ClientHello with a
/// post-quantum share and a ticket is under 3 KiB; rustls takes messages of up to 64 KiB, in records as small as the
/// client likes.
pub const HANDSHAKE_LIMIT_BYTES: usize = 128 * 1024;

/// The most early data that is skipped, as it comes in records: without their headers, with their tags. We accept none, but a
/// client that brings the ticket of another server of our name sends it unasked (RFC 8446 4.2.10), and cannot know that
/// we refuse. Such tickets allow 16 KiB in nearly every server; that much is skipped even in records of six bytes. It
/// counts for [`HANDSHAKE_LIMIT_BYTES`], too.
pub const EARLY_DATA_LIMIT_BYTES: u32 = 64 * 1024;

/// What a record may add to its plaintext: RFC 5246 6.2.3 allows more than RFC 8446 5.2.
const MAX_EXPANSION_BYTES: usize = 2048;

/// Where a handshake stands.
#[derive(Debug)]
pub enum Step {
    /// Send what is in `outgoing`, then read more.
    NeedInput,
    /// It is over; what is in `outgoing` is still to be sent, before anything else.
    Established(Box<Established>),
}

/// What the bytes that wait begin with.
enum NextRecord {
    /// Less than a record.
    Incomplete,
    /// A whole record.
    Whole { record_bytes: usize },
    /// A header that breaks the rules. rustls is shown it all the same: it can still send the alert under encryption.
    Illegal,
}

/// One connection's handshake, on the server's side.
pub struct Handshake {
    acceptor: Arc<Acceptor>,
    /// Made with the first whole record: a connection that only opened takes no more than this struct.
    connection: Option<Box<UnbufferedServerConnection>>,
    resolved: Option<Resolved>,
    /// Bytes at the front of `incoming` that rustls has seen and will see again: parts of a message.
    held_bytes: usize,
    received_bytes: usize,
    is_over: bool,
}

impl Handshake {
    /// A handshake that has seen nothing yet. It keeps to this acceptor, whatever is reloaded meanwhile.
    #[must_use]
    pub fn new(acceptor: &Arc<Acceptor>) -> Self {
        Self {
            acceptor: Arc::clone(acceptor),
            connection: None,
            resolved: None,
            held_bytes: 0,
            received_bytes: 0,
            is_over: false,
        }
    }

    /// The name that the client asked for by SNI, as soon as it is known.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.resolved.as_ref()?.server_name.as_deref()
    }

    /// Takes whole records from the front of `incoming` and appends to `outgoing` what is to be sent.
    ///
    /// What it can't use yet stays in `incoming`: append to it, don't change it. When the handshake is established,
    /// everything that is left belongs to the record layer. A caller that reads at most 18 KiB ahead holds at most
    /// [`HANDSHAKE_LIMIT_BYTES`] and that.
    ///
    /// # Errors
    /// The handshake failed. `outgoing` then ends with the alert, if one can be sent.
    pub fn advance(
        &mut self,
        incoming: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Step, HandshakeFailure> {
        if self.is_over {
            return Err(HandshakeFailure::new(FailureKind::Internal, "the handshake is already over"));
        }
        let mut consumed = 0;
        let result = self.take_records(incoming, &mut consumed, outgoing);
        incoming.drain(..consumed);
        match result {
            Ok(false) => Ok(Step::NeedInput),
            Ok(true) => {
                self.is_over = true;
                self.finish().map(|established| Step::Established(Box::new(established)))
            }
            Err(failure) => {
                self.is_over = true;
                self.write_alert(&failure, outgoing);
                self.connection = None;
                Err(failure)
            }
        }
    }

    /// Hands records over until the handshake is established (`true`) or there is no whole one. `consumed` is how
    /// much at the front of `incoming` is done with.
    fn take_records(
        &mut self,
        incoming: &mut [u8],
        consumed: &mut usize,
        outgoing: &mut Vec<u8>,
    ) -> Result<bool, HandshakeFailure> {
        loop {
            let pending = &mut incoming[*consumed..];
            let waiting = &pending[self.held_bytes..];
            let (record_bytes, is_legal) = match self.next_record(waiting)? {
                NextRecord::Incomplete => return Ok(false),
                NextRecord::Whole { record_bytes } => (record_bytes, true),
                NextRecord::Illegal => (HEADER_BYTES, false),
            };
            self.received_bytes += record_bytes;
            if self.received_bytes > HANDSHAKE_LIMIT_BYTES {
                return Err(HandshakeFailure::new(
                    FailureKind::TooLarge,
                    format!("the client sent more than {HANDSHAKE_LIMIT_BYTES} bytes"),
                ));
            }
            let waiting_record = &waiting[..record_bytes];
            if self.connection.is_none() {
                if is_before_tls12(waiting_record) {
                    return Err(HandshakeFailure::new(
                        FailureKind::NoSharedVersion,
                        "the client speaks TLS 1.1 or below",
                    ));
                }
                let config = Arc::clone(self.acceptor.config(ClientHint::of(waiting_record)));
                self.connection = Some(Box::new(UnbufferedServerConnection::new(config)?));
            }
            let offered = &mut pending[..self.held_bytes + record_bytes];
            let offered_bytes = offered.len();
            let (mut taken_bytes, is_established) = self.offer(offered, outgoing)?;
            if !is_legal {
                return Err(HandshakeFailure::new(FailureKind::Malformed, "a record with an illegal header"));
            }
            if taken_bytes == 0 && self.held_bytes == 0 && self.was_skipped(offered) {
                taken_bytes = offered_bytes;
            }
            self.held_bytes = offered_bytes - taken_bytes;
            *consumed += taken_bytes;
            if is_established {
                return Ok(true);
            }
        }
    }

    /// What `waiting` begins with.
    fn next_record(&self, waiting: &[u8]) -> Result<NextRecord, HandshakeFailure> {
        let is_first = self.connection.is_none();
        if is_first {
            match recognise(waiting) {
                FirstBytes::HandshakeRecord => {}
                FirstBytes::TooFew => return Ok(NextRecord::Incomplete),
                FirstBytes::PlainHttp => {
                    return Err(HandshakeFailure::new(
                        FailureKind::PlainHttp,
                        "the client speaks plain HTTP",
                    ));
                }
                FirstBytes::Sslv2Hello => {
                    return Err(HandshakeFailure::new(
                        FailureKind::NoSharedVersion,
                        "the client speaks SSL 2",
                    ));
                }
                FirstBytes::Other => {
                    return Err(HandshakeFailure::new(
                        FailureKind::NotTls,
                        "the client's first bytes are not TLS",
                    ));
                }
            }
        }
        let Some(header) = waiting.first_chunk::<HEADER_BYTES>() else { return Ok(NextRecord::Incomplete) };
        let payload_bytes = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if is_first && payload_bytes > MAX_PLAINTEXT_BYTES {
            return Err(HandshakeFailure::new(
                FailureKind::RecordOverflow,
                "the client's first record is too long",
            ));
        }
        let is_known_type = (20..=24).contains(&header[0]);
        if !is_known_type || header[1] != 3 || payload_bytes > MAX_PLAINTEXT_BYTES + MAX_EXPANSION_BYTES {
            return Ok(NextRecord::Illegal);
        }
        let record_bytes = HEADER_BYTES + payload_bytes;
        Ok(if waiting.len() < record_bytes {
            NextRecord::Incomplete
        } else {
            NextRecord::Whole { record_bytes }
        })
    }

    /// Lets rustls work on `offered` until it wants another record, or the handshake is established (`true`). Gives
    /// how many bytes it is done with.
    fn offer(
        &mut self,
        offered: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(usize, bool), HandshakeFailure> {
        let Some(connection) = self.connection.as_deref_mut() else { return Ok((0, false)) };
        let mut taken_bytes = 0;
        loop {
            let UnbufferedStatus { discard, state } =
                connection.process_tls_records(&mut offered[taken_bytes..]);
            taken_bytes += discard;
            if let Some(resolved) = take_resolved() {
                self.resolved = Some(resolved);
            }
            match state.map_err(|error| Self::failure(self.resolved.as_ref(), error))? {
                ConnectionState::EncodeTlsData(chunk) => encode(chunk, outgoing)
                    .map_err(|fault| HandshakeFailure::new(FailureKind::Internal, fault))?,
                // "Transmitted" is as good as written to `outgoing`: that the caller sends it all, in order, before
                // anything else, is this module's contract.
                ConnectionState::TransmitTlsData(transmit) => transmit.done(),
                ConnectionState::BlockedHandshake => return Ok((taken_bytes, false)),
                ConnectionState::WriteTraffic(_) => return Ok((taken_bytes, true)),
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    return Err(HandshakeFailure::new(FailureKind::PeerClosed, "the client closed"));
                }
                // Early data is off, and application data is never offered.
                other => {
                    return Err(HandshakeFailure::new(
                        FailureKind::Internal,
                        format!("rustls gave {other:?} during the handshake"),
                    ));
                }
            }
        }
    }

    /// Whether `record`, which rustls was offered alone and did not take, was early data that it could not decrypt. rustls
    /// passes over it, but does not say so: offered again with the next record it would be counted again, and the sum of
    /// all that soon be over the limit. The other reason for not taking a record is a part of a handshake message; that
    /// has to stay.
    ///
    /// rustls decrypts in place. So a part of a message is now plaintext, and ends in its content type and padding of
    /// zeros (RFC 8446 5.2), then the tag. Where decryption failed the library has left zeros there; if it ever left
    /// something else that ends in the same type, the record would stay, which is slow and still right.
    fn was_skipped(&self, record: &[u8]) -> bool {
        const APPLICATION_DATA: u8 = 23;
        const HANDSHAKE: u8 = 22;
        const TAG_BYTES: usize = 16;
        let is_encrypted = self.connection.as_deref().is_some_and(is_encrypting);
        if !is_encrypted || record.first() != Some(&APPLICATION_DATA) {
            return false;
        }
        let plaintext = record.get(HEADER_BYTES..record.len().saturating_sub(TAG_BYTES)).unwrap_or_default();
        plaintext.iter().rfind(|&&byte| byte != 0) != Some(&HANDSHAKE)
    }

    /// What rustls' error means. For a TLS 1.2 client that offers schemes, but none that the key can sign with, it has
    /// no error of its own.
    fn failure(resolved: Option<&Resolved>, error: rustls::Error) -> HandshakeFailure {
        match (error, resolved) {
            (rustls::Error::General(_), Some(resolved)) if !resolved.is_verifiable => HandshakeFailure::new(
                FailureKind::NoSharedSignatureScheme,
                "the client can verify none of the site's certificates",
            ),
            (error, _) => error.into(),
        }
    }

    /// Takes the agreement and the secrets out of rustls.
    fn finish(&mut self) -> Result<Established, HandshakeFailure> {
        let internal = |what: &str| HandshakeFailure::new(FailureKind::Internal, what);
        let (connection, resolved) =
            self.connection.take().zip(self.resolved.take()).ok_or_else(|| internal("no handshake"))?;
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
        let group = connection.negotiated_key_exchange_group().and_then(|group| group_of(group.name()));
        let resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
        let application_protocol = connection.alpn_protocol().and_then(|agreed| {
            APPLICATION_PROTOCOLS.into_iter().find(|protocol| protocol.as_bytes() == agreed)
        });
        let (secrets, kernel_connection) = connection.dangerous_into_kernel_connection()?;
        let direction = |(sequence_number, secrets): (u64, rustls::ConnectionTrafficSecrets)| {
            traffic_key(version, &secrets)
                .map(|key| DirectionSecrets { key, sequence_number })
                .map_err(|error| HandshakeFailure::new(FailureKind::Internal, error.to_string()))
        };
        Ok(Established {
            version,
            cipher_suite,
            group,
            server_name: resolved.server_name,
            site: resolved.site,
            certificate: resolved.certificate,
            resumed,
            application_protocol,
            send: direction(secrets.tx)?,
            receive: direction(secrets.rx)?,
            key_schedule: KeySchedule::new(kernel_connection),
        })
    }

    /// Appends the alert that the failure deserves: rustls' own, under encryption if that has begun, else ours as
    /// long as that is in the clear.
    fn write_alert(&mut self, failure: &HandshakeFailure, outgoing: &mut Vec<u8>) {
        let mut is_said = false;
        let mut is_encrypted = false;
        if let Some(connection) = self.connection.as_deref_mut() {
            is_encrypted = is_encrypting(connection);
            // Only while something waits: rustls would look for the held bytes in this empty buffer otherwise.
            while connection.wants_write() {
                let UnbufferedStatus { state, .. } = connection.process_tls_records(&mut []);
                let Ok(ConnectionState::EncodeTlsData(chunk)) = state else { break };
                is_said |= encode(chunk, outgoing).is_ok();
            }
        }
        if let (false, false, Some(description)) = (is_said, is_encrypted, failure.kind().alert()) {
            const ALERT: u8 = 21;
            const FATAL: u8 = 2;
            outgoing.extend([ALERT, 3, 3, 0, 2, FATAL, u8::from(description)]);
        }
    }
}

/// Whether our records are encrypted: in TLS 1.3 from the ServerHello on, in TLS 1.2 from our ChangeCipherSpec on,
/// which a full handshake sends last.
fn is_encrypting(connection: &UnbufferedServerConnection) -> bool {
    match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => connection.handshake_kind().is_some(),
        Some(_) => connection.handshake_kind() == Some(HandshakeKind::Resumed),
        None => false,
    }
}

/// Appends the record that rustls has ready.
pub(crate) fn encode<Data>(mut chunk: EncodeTlsData<'_, Data>, outgoing: &mut Vec<u8>) -> Result<(), String> {
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

impl fmt::Debug for Handshake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Handshake")
            .field("server_name", &self.server_name())
            .field("received_bytes", &self.received_bytes)
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}
