//! The receiving direction of a channel: records in, what they mean out, whether they are opened here or by the kernel.

use super::{Channel, Event, KeySource};
use crate::{
    Alert, AlertDescription, AlertLevel, ContentType, HandOverFault, Handover, KeyUpdateRequest, Layout,
    Opener, RecordError, Version,
};

/// Records in a row that carry nothing; more is a peer that makes us work for no reason (OpenSSL bounds them alike).
const IDLE_RECORDS_LIMIT: u32 = 32;

/// Behind [`Channel::hand_over_receiving`].
const OPENED_ELSEWHERE: &str = "records are opened elsewhere";

/// Where the records that arrive are opened.
#[derive(Debug)]
pub(super) enum Receiving {
    /// Here.
    Here(Opener),
    /// In the kernel, after a switch that cannot be undone: the [`Opener`] is gone (INV-RECEIVE-1).
    Elsewhere {
        layout: Layout,
        /// A record was refused: nothing that comes behind it counts (INV-OPEN-1).
        failed: bool,
    },
}

/// What a record that was opened means.
enum Meaning {
    Data,
    /// The peer changes its key behind this record: the next has to be put in place.
    KeyUpdate(KeyUpdateRequest),
    Event(Event),
}

impl<K: KeySource> Channel<K> {
    /// Passes over a record that was thrown away unread. Its content is neither known nor authenticated: for a load
    /// client that measures the sender. The caller must know that it was application data.
    ///
    /// # Errors
    /// The connection has failed before, or is at the end of its sequence numbers.
    pub fn skip_record(&mut self) -> Result<(), RecordError> {
        self.opener()?.skip()
    }

    fn opener(&mut self) -> Result<&mut Opener, RecordError> {
        match &mut self.directions.receiving {
            Receiving::Here(opener) => Ok(opener),
            Receiving::Elsewhere { .. } => Err(RecordError::Misuse(OPENED_ELSEWHERE)),
        }
    }

    /// Takes one whole record, which is opened in place. `now_ms` is any monotonic clock in milliseconds.
    ///
    /// # Errors
    /// A fault of the peer: send [`RecordError::alert`] with [`Channel::alert`], if it names one, and close.
    pub fn receive(&mut self, record: &mut [u8], now_ms: u64) -> Result<Event, RecordError> {
        let opened = self.opener()?.open(record)?;
        let payload = &record[opened.plaintext.clone()];
        let event = self.interpret(opened.content_type, payload, now_ms)?;
        Ok(match event {
            Meaning::Data => Event::Data(opened.plaintext),
            Meaning::KeyUpdate(request) => {
                let key = self.keys.next_receiving_key()?;
                self.opener()?.install(key)?;
                self.key_update_taken(request)
            }
            Meaning::Event(event) => event,
        })
    }

    /// Takes what the kernel opened, once receiving was handed over: a whole record that is no application data, or
    /// application data of any number of records in a row, which comes back as [`Event::Data`]. A key update of the peer's gives
    /// `install` the key that follows it.
    ///
    /// # Errors
    /// [`HandOverFault::NotReady`]: as those of [`Channel::receive`]. [`HandOverFault::Refused`]: what `install` said; no
    /// further record can be opened, and the connection can only be closed.
    pub fn receive_opened<E>(
        &mut self,
        content_type: ContentType,
        payload: &[u8],
        now_ms: u64,
        install: impl FnOnce(&Handover<'_>) -> Result<(), E>,
    ) -> Result<Event, HandOverFault<E>> {
        match &self.directions.receiving {
            Receiving::Here(_) => {
                return Err(HandOverFault::NotReady(RecordError::Misuse("records are opened here")));
            }
            Receiving::Elsewhere { failed: true, .. } => {
                return Err(HandOverFault::NotReady(RecordError::Misuse("a record after a fatal fault")));
            }
            Receiving::Elsewhere { .. } => {}
        }
        let event = self.understand_opened(content_type, payload, now_ms, install);
        if event.is_err() {
            self.fail_receiving();
        }
        event
    }

    fn understand_opened<E>(
        &mut self,
        content_type: ContentType,
        payload: &[u8],
        now_ms: u64,
        install: impl FnOnce(&Handover<'_>) -> Result<(), E>,
    ) -> Result<Event, HandOverFault<E>> {
        if payload.is_empty() && content_type != ContentType::ApplicationData {
            // As for records that are opened here (RFC 8446 5.1, RFC 5246 6.2.1).
            return Err(HandOverFault::NotReady(RecordError::UnexpectedMessage(
                "an empty record that is no application data",
            )));
        }
        match self.interpret(content_type, payload, now_ms).map_err(HandOverFault::NotReady)? {
            Meaning::Data => Ok(Event::Data(0..payload.len())),
            Meaning::Event(event) => Ok(event),
            Meaning::KeyUpdate(request) => {
                let key = self.keys.next_receiving_key().map_err(HandOverFault::NotReady)?;
                install(&Handover::receiving(&key, 0)).map_err(HandOverFault::Refused)?;
                Ok(self.key_update_taken(request))
            }
        }
    }

    /// What a record that was opened means, wherever that was done.
    fn interpret(
        &mut self,
        content_type: ContentType,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Meaning, RecordError> {
        let is_partial = self.directions.reader.is_partial()
            || self.directions.tickets.as_ref().is_some_and(|tickets| tickets.is_partial());
        if is_partial && content_type != ContentType::Handshake {
            return Err(RecordError::UnexpectedMessage("another record inside a handshake message"));
        }
        let meaning = match content_type {
            ContentType::ApplicationData if payload.is_empty() => Meaning::Event(Event::Nothing),
            ContentType::ApplicationData => Meaning::Data,
            ContentType::Alert => Meaning::Event(self.receive_alert(payload)?),
            ContentType::Handshake => self.receive_handshake(payload, now_ms)?,
            ContentType::ChangeCipherSpec => {
                return Err(RecordError::UnexpectedMessage("a change_cipher_spec after the handshake"));
            }
        };
        // A part of a wish to renegotiate is something: there is one such message in a connection, and it has a bound.
        let is_part = content_type == ContentType::Handshake && self.directions.renegotiation.is_partial();
        let carries_nothing = matches!(meaning, Meaning::Event(Event::Nothing)) && !is_part;
        self.directions.idle_records = if carries_nothing { self.directions.idle_records + 1 } else { 0 };
        if self.directions.idle_records > IDLE_RECORDS_LIMIT {
            return Err(RecordError::UnexpectedMessage("one empty record after another"));
        }
        Ok(meaning)
    }

    /// The key that follows the peer's update is in use.
    fn key_update_taken(&mut self, request: KeyUpdateRequest) -> Event {
        self.directions.updates.received += 1;
        self.directions.update_owed |= request == KeyUpdateRequest::Requested;
        Event::KeyUpdate(request)
    }

    fn receive_alert(&mut self, payload: &[u8]) -> Result<Event, RecordError> {
        let alert = Alert::decode(payload).ok_or(RecordError::Malformed("alert"))?;
        let ignored = match self.version() {
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

    fn receive_handshake(&mut self, payload: &[u8], now_ms: u64) -> Result<Meaning, RecordError> {
        if self.version() == Version::Tls12 {
            // RFC 5246 7.2.2: renegotiation is refused by a warning; a peer that insists is cut.
            let is_asked_for = self.directions.renegotiation.read(payload)?;
            return Ok(Meaning::Event(if is_asked_for {
                Event::RenegotiationRefused
            } else {
                Event::Nothing
            }));
        }
        let request = match &mut self.directions.tickets {
            Some(tickets) => tickets.read(payload, &mut self.directions.reader, &mut self.keys)?,
            None => self.directions.reader.read(payload)?,
        };
        let Some(request) = request else { return Ok(Meaning::Event(Event::Nothing)) };
        if !self.directions.rate.admit(now_ms) {
            return Err(RecordError::TooManyKeyUpdates);
        }
        Ok(Meaning::KeyUpdate(request))
    }

    /// Hands the receiving direction over: `switch` gives it to the kernel, which opens the records from now on. If it
    /// succeeds, nothing can be opened here any more ([`Channel::receive_opened`] takes over); if it fails, nothing has
    /// changed.
    ///
    /// Every byte that was taken from the socket must have been opened: the kernel's first record begins with the next
    /// byte that the socket gives (INV-RECEIVE-1).
    ///
    /// # Errors
    /// [`HandOverFault::NotReady`]: the key was not kept ([`Opener::keeping`]), a record was refused, or the direction was
    /// handed over before. [`HandOverFault::Refused`]: what `switch` said.
    pub fn hand_over_receiving<E>(
        &mut self,
        switch: impl FnOnce(&Handover<'_>) -> Result<(), E>,
    ) -> Result<(), HandOverFault<E>> {
        let Receiving::Here(opener) = &self.directions.receiving else {
            return Err(HandOverFault::NotReady(RecordError::Misuse("it was handed over already")));
        };
        let handover = opener.handover().map_err(HandOverFault::NotReady)?;
        switch(&handover).map_err(HandOverFault::Refused)?;
        let layout = opener.layout();
        drop(handover);
        self.directions.receiving = Receiving::Elsewhere { layout, failed: false };
        Ok(())
    }

    /// The kernel refused a record: nothing that comes behind it counts (INV-OPEN-1). Of no effect where records are
    /// opened here, which notes that by itself.
    pub fn fail_receiving(&mut self) {
        if let Receiving::Elsewhere { failed, .. } = &mut self.directions.receiving {
            *failed = true;
        }
    }
}

impl<K> Channel<K> {
    /// Whether the receiving key was kept, so that the direction can be handed over ([`Opener::keeping`]).
    #[must_use]
    pub fn keeps_receiving_key(&self) -> bool {
        matches!(&self.directions.receiving, Receiving::Here(opener) if opener.keeps_key())
    }

    /// Whether the kernel opens the records that arrive.
    #[must_use]
    pub fn receiving_is_handed_over(&self) -> bool {
        matches!(self.directions.receiving, Receiving::Elsewhere { .. })
    }

    /// Where the parts of the records that arrive stand.
    #[must_use]
    pub fn incoming_layout(&self) -> Layout {
        match &self.directions.receiving {
            Receiving::Here(opener) => opener.layout(),
            Receiving::Elsewhere { layout, .. } => *layout,
        }
    }
}
