//! A connection after its handshake: both directions, their keys, and the messages that are about neither requests nor
//! responses: key updates, alerts, `close_notify`.

use crate::{
    Alert, AlertDescription, AlertLevel, ContentType, KeyUpdateRate, KeyUpdateRequest, Layout, Opener,
    RecordError, Sealer, TrafficKey, Version, key_update::KeyUpdateReader,
};
use std::{fmt, ops::Range};

/// Where the next keys come from: the key schedule of the handshake (RFC 8446 7.2).
pub trait KeySource {
    /// The next key to send with.
    ///
    /// # Errors
    /// [`RecordError::Crypto`] if the key schedule fails, or knows no next key (TLS 1.2).
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError>;

    /// The next key to receive with.
    ///
    /// # Errors
    /// As [`KeySource::next_sending_key`].
    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError>;
}

/// What a record meant for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Application data, at this place in the record.
    Data(Range<usize>),
    /// The peer will send no more.
    CloseNotify,
    /// The receiving key changed. If the peer asked for ours to change, too, the next
    /// [`Channel::prepare_sending`] does it.
    KeyUpdate(KeyUpdateRequest),
    /// TLS 1.2: the peer asks to renegotiate; answer with [`AlertDescription::NoRenegotiation`] and go on.
    RenegotiationRefused,
    /// A record that means nothing: empty, or a warning that is to be ignored.
    Nothing,
}

/// Records in a row that carry nothing; more is a peer that makes us work for no reason (OpenSSL bounds them alike).
const IDLE_RECORDS_LIMIT: u32 = 32;

/// Both directions of a connection.
pub struct Channel<K> {
    sealer: Sealer,
    opener: Opener,
    keys: K,
    reader: KeyUpdateReader,
    rate: KeyUpdateRate,
    idle_records: u32,
    renegotiation_refused: bool,
    update_owed: bool,
    sending_closed: bool,
    /// Key updates received and sent.
    updates: KeyUpdateCounts,
}

/// How often the keys of a connection changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyUpdateCounts {
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl<K: KeySource> Channel<K> {
    /// Joins the two directions that a handshake left.
    #[must_use]
    pub fn new(sealer: Sealer, opener: Opener, keys: K, rate: KeyUpdateRate) -> Self {
        Self {
            sealer,
            opener,
            keys,
            reader: KeyUpdateReader::default(),
            rate,
            idle_records: 0,
            renegotiation_refused: false,
            update_owed: false,
            sending_closed: false,
            updates: KeyUpdateCounts::default(),
        }
    }

    /// Takes one whole record, which is opened in place. `now_ms` is any monotonic clock in milliseconds.
    ///
    /// # Errors
    /// A fault of the peer: send [`RecordError::alert`] with [`Channel::alert`], if it names one, and close.
    pub fn receive(&mut self, record: &mut [u8], now_ms: u64) -> Result<Event, RecordError> {
        let opened = self.opener.open(record)?;
        if self.reader.is_partial() && opened.content_type != ContentType::Handshake {
            return Err(RecordError::UnexpectedMessage("another record inside a handshake message"));
        }
        let payload = &record[opened.plaintext.clone()];
        let event = match opened.content_type {
            ContentType::ApplicationData if payload.is_empty() => Event::Nothing,
            ContentType::ApplicationData => Event::Data(opened.plaintext),
            ContentType::Alert => self.receive_alert(payload)?,
            ContentType::Handshake => self.receive_handshake(payload, now_ms)?,
            ContentType::ChangeCipherSpec => {
                return Err(RecordError::UnexpectedMessage("a change_cipher_spec after the handshake"));
            }
        };
        self.idle_records = if event == Event::Nothing { self.idle_records + 1 } else { 0 };
        if self.idle_records > IDLE_RECORDS_LIMIT {
            return Err(RecordError::UnexpectedMessage("one empty record after another"));
        }
        Ok(event)
    }

    fn receive_alert(&mut self, payload: &[u8]) -> Result<Event, RecordError> {
        let alert = Alert::decode(payload).ok_or(RecordError::Malformed("alert"))?;
        let ignored = match self.sealer.version() {
            // RFC 8446 6.1: user_canceled is followed by close_notify. 6.2: all others are fatal, whatever they say.
            Version::Tls13 => alert.description == AlertDescription::UserCanceled,
            Version::Tls12 => alert.level == AlertLevel::Warning,
        };
        match alert.description {
            AlertDescription::CloseNotify => Ok(Event::CloseNotify),
            _ if ignored => Ok(Event::Nothing),
            _ => Err(RecordError::PeerAlert(alert)),
        }
    }

    fn receive_handshake(&mut self, payload: &[u8], now_ms: u64) -> Result<Event, RecordError> {
        if self.sealer.version() == Version::Tls12 {
            // RFC 5246 7.2.2: renegotiation is refused by a warning; a peer that insists is cut.
            if std::mem::replace(&mut self.renegotiation_refused, true) {
                return Err(RecordError::UnexpectedMessage("a handshake after the handshake"));
            }
            return Ok(Event::RenegotiationRefused);
        }
        let Some(request) = self.reader.read(payload)? else { return Ok(Event::Nothing) };
        if !self.rate.admit(now_ms) {
            return Err(RecordError::TooManyKeyUpdates);
        }
        self.opener.install(&self.keys.next_receiving_key()?)?;
        self.updates.received += 1;
        self.update_owed |= request == KeyUpdateRequest::Requested;
        Ok(Event::KeyUpdate(request))
    }

    /// To be called before application data is sealed: appends the key update that is due, if one is, to `outgoing`
    /// under the old key, and takes the new one. True if there was one.
    ///
    /// # Errors
    /// [`RecordError::KeyExhausted`] for a TLS 1.2 connection at its limit: it can only be closed.
    pub fn prepare_sending(&mut self, outgoing: &mut Vec<u8>) -> Result<bool, RecordError> {
        let exhausted = self.sealer.remaining_records() == 0;
        if exhausted && self.sealer.version() == Version::Tls12 {
            return Err(RecordError::KeyExhausted);
        }
        if !exhausted && !self.update_owed {
            return Ok(false);
        }
        let message = KeyUpdateRequest::NotRequested.encode();
        self.sealer.seal_append(ContentType::Handshake, &message, outgoing)?;
        self.sealer.install(&self.keys.next_sending_key()?)?;
        self.update_owed = false;
        self.updates.sent += 1;
        Ok(true)
    }

    /// Appends an alert to `outgoing`. After a fatal one, or `close_notify`, nothing more is sealed.
    ///
    /// # Errors
    /// [`RecordError::KeyExhausted`] never, thanks to the reserve (INV-LIMIT-2); [`RecordError::Crypto`] if the
    /// cipher fails.
    pub fn alert(
        &mut self,
        description: AlertDescription,
        outgoing: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        if self.sending_closed {
            return Ok(());
        }
        let alert = Alert::of(description);
        self.sending_closed =
            alert.level == AlertLevel::Fatal || description == AlertDescription::CloseNotify;
        self.sealer.seal_append(ContentType::Alert, &alert.encode(), outgoing)
    }

    /// The sending half, to seal application data with. Call [`Channel::prepare_sending`] first and seal no more
    /// records than [`Sealer::remaining_records`] says.
    ///
    /// # Errors
    /// [`RecordError::Misuse`] once `close_notify` or a fatal alert was sealed: nothing may follow it.
    pub fn sealer(&mut self) -> Result<&mut Sealer, RecordError> {
        if self.sending_closed {
            return Err(RecordError::Misuse("data after close_notify"));
        }
        Ok(&mut self.sealer)
    }
}

impl<K> Channel<K> {
    /// The protocol version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.sealer.version()
    }

    /// Whether `close_notify` or a fatal alert has been sealed.
    #[must_use]
    pub fn sending_is_closed(&self) -> bool {
        self.sending_closed
    }

    /// Whether application data can still be sealed: false for a TLS 1.2 connection at its limit.
    #[must_use]
    pub fn can_send(&self) -> bool {
        !self.sending_closed && (self.version() == Version::Tls13 || self.sealer.remaining_records() > 0)
    }

    /// Whether the peer waits for our key update.
    #[must_use]
    pub fn owes_key_update(&self) -> bool {
        self.update_owed
    }

    /// Where the parts of the records that arrive stand.
    #[must_use]
    pub fn incoming_layout(&self) -> Layout {
        self.opener.layout()
    }

    /// Where the parts of the records that leave stand.
    #[must_use]
    pub fn outgoing_layout(&self) -> Layout {
        self.sealer.layout()
    }

    /// Key updates received so far.
    #[must_use]
    pub fn key_updates_received(&self) -> u64 {
        self.updates.received
    }

    /// Key updates sent so far.
    #[must_use]
    pub fn key_updates_sent(&self) -> u64 {
        self.updates.sent
    }
}

impl<K> fmt::Debug for Channel<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Channel")
            .field("sealer", &self.sealer)
            .field("opener", &self.opener)
            .field("updates", &self.updates)
            .field("sending_closed", &self.sending_closed)
            .finish_non_exhaustive()
    }
}
