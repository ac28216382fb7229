//! A server's side of a handshake, without I/O: bytes in, bytes out, and at the end the secrets.

use crate::{
    Acceptor, Established, FailureKind, HANDSHAKE_LIMIT_BYTES, HandshakeFailure, KeySchedule,
    clients::ClientIdentity,
    driver::{Agreement, Driver, Fault, record_bytes},
    first_bytes::{ClientHint, FirstBytes, is_before_tls12, recognise},
    site::{Resolved, take_resolved},
};
use linerate_record::{HEADER_BYTES, MAX_PLAINTEXT_BYTES};
use rustls::{CommonState, HandshakeKind, ProtocolVersion, server::UnbufferedServerConnection};
use std::{fmt, sync::Arc, time::SystemTime};

/// The most early data that is skipped, as it comes in records: without their headers, with their tags. We accept none, but a
/// client that brings the ticket of another server of our name sends it unasked (RFC 8446 4.2.10), and cannot know that
/// we refuse. Such tickets allow 16 KiB in nearly every server; that much is skipped even in records of six bytes. It
/// counts for [`HANDSHAKE_LIMIT_BYTES`], too.
pub const EARLY_DATA_LIMIT_BYTES: u32 = 64 * 1024;

/// Where a handshake stands.
#[derive(Debug)]
pub enum Step {
    /// Send what is in `outgoing`, then read more.
    NeedInput,
    /// It is over; what is in `outgoing` is still to be sent, before anything else.
    Established(Box<Established>),
}

/// One connection's handshake, on the server's side.
pub struct Handshake {
    acceptor: Arc<Acceptor>,
    /// Made with the first whole record: a connection that only opened takes no more than this struct.
    driver: Option<Driver<UnbufferedServerConnection>>,
    resolved: Option<Resolved>,
    is_over: bool,
}

impl Handshake {
    /// A handshake that has seen nothing yet. It keeps to this acceptor, whatever is reloaded meanwhile.
    #[must_use]
    pub fn new(acceptor: &Arc<Acceptor>) -> Self {
        Self { acceptor: Arc::clone(acceptor), driver: None, resolved: None, is_over: false }
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
        match self.take_records(incoming, outgoing) {
            Ok(false) => Ok(Step::NeedInput),
            Ok(true) => {
                self.is_over = true;
                self.finish().map(|established| Step::Established(Box::new(established)))
            }
            Err(failure) => {
                self.is_over = true;
                self.write_alert(&failure, outgoing);
                self.driver = None;
                Err(failure)
            }
        }
    }

    /// Hands records over until the handshake is established (`true`) or there is no whole one.
    fn take_records(
        &mut self,
        incoming: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<bool, HandshakeFailure> {
        let driver = match &mut self.driver {
            Some(driver) => driver,
            none => {
                let Some(record) = first_record(incoming)? else { return Ok(false) };
                let config = Arc::clone(self.acceptor.config(ClientHint::of(record)));
                none.insert(Driver::new(UnbufferedServerConnection::new(config)?))
            }
        };
        let mut result = driver.advance(incoming, outgoing, was_skipped);
        if matches!(result, Err(Fault::NotTls | Fault::TooLong)) {
            // rustls is shown the header all the same: it can still send the alert under encryption.
            result = driver.show_header(incoming, outgoing).and(result);
        }
        if let Some(resolved) = take_resolved() {
            self.resolved = Some(resolved);
        }
        result.map_err(|fault| Self::failure(self.resolved.as_ref(), fault))
    }

    /// What a fault means. For a TLS 1.2 client that offers schemes, but none that the key can sign with, rustls has no
    /// error of its own.
    fn failure(resolved: Option<&Resolved>, fault: Fault) -> HandshakeFailure {
        let (kind, detail) = match (fault, resolved) {
            (Fault::Refused(rustls::Error::General(_)), Some(resolved)) if !resolved.is_verifiable => (
                FailureKind::NoSharedSignatureScheme,
                "the client can verify none of the site's certificates".to_owned(),
            ),
            (Fault::Refused(error), _) => return error.into(),
            (Fault::NotTls | Fault::TooLong, _) => {
                (FailureKind::Malformed, "a record with an illegal header".to_owned())
            }
            (Fault::TooLarge, _) => {
                (FailureKind::TooLarge, format!("the client sent more than {HANDSHAKE_LIMIT_BYTES} bytes"))
            }
            (Fault::PeerClosed, _) => (FailureKind::PeerClosed, "the client closed".to_owned()),
            (Fault::Internal(what), _) => (FailureKind::Internal, what),
        };
        HandshakeFailure::new(kind, detail)
    }

    /// Adds what only a server knows of the agreement.
    fn finish(&mut self) -> Result<Established, HandshakeFailure> {
        let (driver, resolved) = self
            .driver
            .take()
            .zip(self.resolved.take())
            .ok_or_else(|| HandshakeFailure::new(FailureKind::Internal, "no handshake"))?;
        let application_protocol = driver.common().alpn_protocol().and_then(|agreed| {
            let spoken = self.acceptor.application_protocols().iter();
            spoken.copied().find(|protocol| protocol.as_bytes() == agreed)
        });
        let client = match (self.acceptor.clients(), driver.common().peer_certificates()) {
            (Some(authorities), Some(chain)) => authorities.judge(chain, SystemTime::now()),
            _ => ClientIdentity::Unknown,
        };
        let Agreement { version, cipher_suite, group, resumed, send, receive, next_keys } =
            driver.finish().map_err(|fault| Self::failure(None, fault))?;
        Ok(Established {
            version,
            cipher_suite,
            group,
            server_name: resolved.server_name,
            site: resolved.site,
            certificate: resolved.certificate,
            resumed,
            application_protocol,
            client,
            send,
            receive,
            key_schedule: KeySchedule(next_keys),
        })
    }

    /// Appends the alert that the failure deserves: rustls' own, under encryption if that has begun, else ours as
    /// long as that is in the clear.
    fn write_alert(&mut self, failure: &HandshakeFailure, outgoing: &mut Vec<u8>) {
        const ALERT: u8 = 21;
        const FATAL: u8 = 2;
        if let Some(driver) = &mut self.driver {
            let is_encrypted = is_encrypting(driver.common());
            if driver.write_alert(outgoing) || is_encrypted {
                return;
            }
        }
        if let Some(description) = failure.kind().alert() {
            outgoing.extend([ALERT, 3, 3, 0, 2, FATAL, u8::from(description)]);
        }
    }
}

/// The client's first record, its header included; `None` while it is not whole.
fn first_record(incoming: &[u8]) -> Result<Option<&[u8]>, HandshakeFailure> {
    let (kind, what) = match recognise(incoming) {
        FirstBytes::TooFew => return Ok(None),
        FirstBytes::HandshakeRecord => match record_bytes(incoming) {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) if bytes <= HEADER_BYTES + MAX_PLAINTEXT_BYTES => match incoming.get(..bytes) {
                Some(record) if is_before_tls12(record) => {
                    (FailureKind::NoSharedVersion, "the client speaks TLS 1.1 or below")
                }
                record => return Ok(record),
            },
            _ => (FailureKind::RecordOverflow, "the client's first record is too long"),
        },
        FirstBytes::PlainHttp => (FailureKind::PlainHttp, "the client speaks plain HTTP"),
        FirstBytes::Sslv2Hello => (FailureKind::NoSharedVersion, "the client speaks SSL 2"),
        FirstBytes::Other => (FailureKind::NotTls, "the client's first bytes are not TLS"),
    };
    Err(HandshakeFailure::new(kind, what))
}

/// Whether `record`, which rustls was offered alone and did not take, was early data that it could not decrypt. rustls
/// passes over it, but does not say so: offered again with the next record it would be counted again, and the sum of
/// all that soon be over the limit. The other reason for not taking a record is a part of a handshake message; that
/// has to stay.
///
/// rustls decrypts in place. So a part of a message is now plaintext, and ends in its content type and padding of
/// zeros (RFC 8446 5.2), then the tag. Where decryption failed the library has left zeros there; if it ever left
/// something else that ends in the same type, the record would stay, which is slow and still right.
fn was_skipped(connection: &CommonState, record: &[u8]) -> bool {
    const APPLICATION_DATA: u8 = 23;
    const HANDSHAKE: u8 = 22;
    const TAG_BYTES: usize = 16;
    if !is_encrypting(connection) || record.first() != Some(&APPLICATION_DATA) {
        return false;
    }
    let plaintext = record.get(HEADER_BYTES..record.len().saturating_sub(TAG_BYTES)).unwrap_or_default();
    plaintext.iter().rfind(|&&byte| byte != 0) != Some(&HANDSHAKE)
}

/// Whether our records are encrypted: in TLS 1.3 from the ServerHello on, in TLS 1.2 from our ChangeCipherSpec on,
/// which a full handshake sends last.
fn is_encrypting(connection: &CommonState) -> bool {
    match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => connection.handshake_kind().is_some(),
        Some(_) => connection.handshake_kind() == Some(HandshakeKind::Resumed),
        None => false,
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Handshake")
            .field("server_name", &self.server_name())
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}
