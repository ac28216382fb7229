//! A connection after its handshake: both directions, their keys, and the messages that are about neither requests nor
//! responses: key updates, alerts, `close_notify`.

mod receiving;

use crate::{
    Alert, AlertDescription, AlertLevel, Cipher, Combination, ContentType, ControlRecord, HandOverFault,
    Handover, KeyUpdateRate, KeyUpdateRequest, Layout, Lent, Opener, RecordError, Sealer, TrafficKey,
    Version,
    hand_over::HandedOver,
    key_update::KeyUpdateReader,
    renegotiation::{RenegotiationReader, Wish},
    ticket::TicketReader,
};
use receiving::Receiving;
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

    /// Takes the payload of a NewSessionTicket: of a client's connection alone. Not to want it is no fault.
    ///
    /// # Errors
    /// [`RecordError::Malformed`] for one that cannot be read.
    fn take_ticket(&mut self, _ticket: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }
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

/// Between [`Channel::lend`] and its end.
const AWAY: &str = "the sealing half is away";

/// Where the records that leave are made.
#[derive(Debug)]
enum Sending {
    /// Here.
    Here(Sealer),
    /// Not known yet: the [`Sealer`] is lent to a switch that is under way. Nothing is sealed meanwhile.
    Between(HandedOver),
    /// In the kernel or an adapter, after a switch that cannot be undone: the [`Sealer`] is gone (INV-NONCE-3).
    Elsewhere(HandedOver),
}

/// Both directions of a connection.
pub struct Channel<K> {
    directions: Directions,
    keys: K,
}

/// All of a [`Channel`] but where its next keys come from.
struct Directions {
    sending: Sending,
    receiving: Receiving,
    reader: KeyUpdateReader,
    /// A client's: servers send tickets, clients do not.
    tickets: Option<Box<TicketReader>>,
    rate: KeyUpdateRate,
    idle_records: u32,
    /// Of TLS 1.2, whose peers send no other handshake messages.
    renegotiation: RenegotiationReader,
    update_owed: bool,
    /// The peer takes no key update: the sending key has to do for all of the connection's life.
    keeps_one_key: bool,
    /// Our next key update asks the peer for one, too.
    asks_for_update: bool,
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
        let directions = Directions {
            sending: Sending::Here(sealer),
            receiving: Receiving::Here(opener),
            reader: KeyUpdateReader::default(),
            tickets: None,
            rate,
            idle_records: 0,
            renegotiation: RenegotiationReader::new(Wish::OF_A_CLIENT),
            update_owed: false,
            keeps_one_key: false,
            asks_for_update: false,
            sending_closed: false,
            updates: KeyUpdateCounts::default(),
        };
        Self { directions, keys }
    }

    /// The same at a client's end, where session tickets may come: [`KeySource::take_ticket`] gets them.
    #[must_use]
    pub fn for_client(sealer: Sealer, opener: Opener, keys: K, rate: KeyUpdateRate) -> Self {
        let mut channel = Self::new(sealer, opener, keys, rate);
        channel.directions.tickets = Some(Box::default());
        channel.directions.renegotiation = RenegotiationReader::new(Wish::OF_A_SERVER);
        channel
    }

    /// Sends no key update from now on, for a peer that cannot take one: as in TLS 1.2 the connection ends when its key is
    /// used up, or when the peer asks for an update.
    pub fn keep_one_key(&mut self) {
        self.directions.keeps_one_key = true;
    }

    /// Has the next [`Channel::prepare_sending`] change the sending key, whether or not it is used up; with
    /// [`KeyUpdateRequest::Requested`] the peer is asked to change its own, too.
    ///
    /// # Errors
    /// [`RecordError::Misuse`] where the key cannot be changed ([`Channel::can_change_key`]).
    pub fn update_key(&mut self, request: KeyUpdateRequest) -> Result<(), RecordError> {
        if !self.can_change_key() {
            return Err(RecordError::Misuse("the sending key cannot be changed"));
        }
        self.directions.update_owed = true;
        self.directions.asks_for_update |= request == KeyUpdateRequest::Requested;
        Ok(())
    }

    /// To be called before application data is sent: has the key update that is due, if one is, leave under the old key,
    /// and takes the new one. It is appended to `outgoing`; once the direction was handed over it waits as a control
    /// record instead ([`Channel::next_control`]). True if there was one.
    ///
    /// # Errors
    /// [`RecordError::KeyExhausted`] for a connection at its limit that cannot change its key (TLS 1.2, or the
    /// peer, kernel or adapter takes no other): it can only be closed.
    pub fn prepare_sending(&mut self, outgoing: &mut Vec<u8>) -> Result<bool, RecordError> {
        let exhausted = self.remaining_records() == 0;
        if exhausted && !self.can_change_key() {
            return Err(RecordError::KeyExhausted);
        }
        if !exhausted && !self.directions.update_owed || !self.can_change_key() {
            return Ok(false);
        }
        let request = match self.directions.asks_for_update {
            true => KeyUpdateRequest::Requested,
            false => KeyUpdateRequest::NotRequested,
        };
        let message = request.encode();
        match &mut self.directions.sending {
            Sending::Here(sealer) => {
                sealer.seal_append(ContentType::Handshake, &message, outgoing)?;
                sealer.install(self.keys.next_sending_key()?)?;
            }
            Sending::Between(_) => return Err(RecordError::Misuse(AWAY)),
            Sending::Elsewhere(handed) => handed.queue(ContentType::Handshake, &message),
        }
        self.directions.update_owed = false;
        self.directions.asks_for_update = false;
        self.directions.updates.sent += 1;
        Ok(true)
    }

    /// Sends an alert: it is appended to `outgoing`, or waits as a control record ([`Channel::next_control`]). After a
    /// fatal one, or `close_notify`, nothing more is sent.
    ///
    /// # Errors
    /// [`RecordError::KeyExhausted`] never, thanks to the reserve (INV-LIMIT-2); [`RecordError::Crypto`] if the
    /// cipher fails.
    pub fn alert(
        &mut self,
        description: AlertDescription,
        outgoing: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        if self.directions.sending_closed {
            return Ok(());
        }
        let alert = Alert::of(description);
        self.directions.sending_closed =
            alert.level == AlertLevel::Fatal || description == AlertDescription::CloseNotify;
        match &mut self.directions.sending {
            Sending::Here(sealer) => sealer.seal_append(ContentType::Alert, &alert.encode(), outgoing),
            Sending::Between(_) => Err(RecordError::Misuse(AWAY)),
            Sending::Elsewhere(handed) => {
                handed.queue(ContentType::Alert, &alert.encode());
                Ok(())
            }
        }
    }

    /// Hands the sending direction over: `switch` gives it to the kernel or adapter that makes the records from now on. If
    /// it succeeds, nothing can be sealed here any more; if it fails, nothing has changed. `takes_new_keys`: another key can be handed
    /// over later ([`Channel::control_left`]).
    ///
    /// All that was sealed before must have been written to the socket, to the last byte.
    ///
    /// # Errors
    /// [`HandOverFault::NotReady`]: the key was not kept ([`Sealer::keeping`]) or is used up, a key update is owed, the
    /// direction is closed or was handed over before. [`HandOverFault::Refused`]: what `switch` said.
    pub fn hand_over<E>(
        &mut self,
        takes_new_keys: bool,
        switch: impl FnOnce(&Handover<'_>) -> Result<(), E>,
    ) -> Result<(), HandOverFault<E>> {
        let lent = self.lend().map_err(HandOverFault::NotReady)?;
        let switched = match lent.handover() {
            Ok(handover) => switch(&handover).map_err(HandOverFault::Refused),
            Err(fault) => Err(HandOverFault::NotReady(fault)),
        };
        match switched {
            Ok(()) => self.handed_over(lent, takes_new_keys),
            Err(_) => self.take_back(lent),
        }
        switched
    }

    /// As [`Channel::hand_over`], for a switch that may run on another thread. The sealing half is away until the switch has
    /// succeeded or failed, so that nothing is sealed in between (INV-NONCE-3). [`Channel::handed_over`] or
    /// [`Channel::take_back`] ends it; a connection whose sealing half is lost can only be cut.
    ///
    /// # Errors
    /// As [`HandOverFault::NotReady`] says.
    pub fn lend(&mut self) -> Result<Lent, RecordError> {
        if self.directions.sending_closed {
            return Err(RecordError::Misuse("the direction is closed"));
        }
        if self.directions.update_owed {
            return Err(RecordError::Misuse("a key update is owed"));
        }
        let Sending::Here(sealer) = &self.directions.sending else {
            return Err(RecordError::Misuse("it was handed over already"));
        };
        let between = Sending::Between(sealer.after_hand_over()?);
        match std::mem::replace(&mut self.directions.sending, between) {
            Sending::Here(sealer) => Ok(Lent::new(sealer)),
            Sending::Between(_) | Sending::Elsewhere(_) => {
                Err(RecordError::Misuse("it was handed over already"))
            }
        }
    }

    /// The switch succeeded: what was lent is dropped, and nothing can be sealed here any more. `takes_new_keys` as for
    /// [`Channel::hand_over`].
    pub fn handed_over(&mut self, lent: Lent, takes_new_keys: bool) {
        if let Sending::Between(after) = &mut self.directions.sending {
            let after = std::mem::replace(after, HandedOver::nothing(after.version, after.cipher));
            let takes_new_keys = takes_new_keys && !self.directions.keeps_one_key;
            self.directions.sending = Sending::Elsewhere(after.taking_new_keys(takes_new_keys));
        }
        drop(lent);
    }

    /// The switch failed, and nobody has the key: all is as it was.
    pub fn take_back(&mut self, lent: Lent) {
        if let Sending::Between(_) = self.directions.sending {
            self.directions.sending = Sending::Here(lent.into_sealer());
        }
    }

    /// The control record that has to leave before anything else, once the direction was handed over.
    #[must_use]
    pub fn next_control(&self) -> Option<&ControlRecord> {
        match &self.directions.sending {
            Sending::Here(_) | Sending::Between(_) => None,
            Sending::Elsewhere(handed) => handed.next_control(),
        }
    }

    /// To be called when [`Channel::next_control`]'s record has left. If it was a key update, `install` is given the
    /// next key; what follows leaves under it. True if the key changed.
    ///
    /// # Errors
    /// The next key could not be made or was refused. The peer has been told of it: the connection can only be cut.
    pub fn control_left<E>(
        &mut self,
        install: impl FnOnce(&Handover<'_>) -> Result<(), E>,
    ) -> Result<bool, HandOverFault<E>> {
        let Sending::Elsewhere(handed) = &mut self.directions.sending else { return Ok(false) };
        if handed.control_left().is_none_or(|record| record.content_type() != ContentType::Handshake) {
            return Ok(false);
        }
        let key = self.keys.next_sending_key().map_err(HandOverFault::NotReady)?;
        let handover = Handover::new(&key, 0).map_err(HandOverFault::NotReady)?;
        install(&handover).map_err(HandOverFault::Refused)?;
        handed.key_changed();
        Ok(true)
    }

    /// The sending half, to seal application data with. Call [`Channel::prepare_sending`] first and seal no more
    /// records than [`Sealer::remaining_records`] says.
    ///
    /// # Errors
    /// [`RecordError::Misuse`] once `close_notify` or a fatal alert was sealed: nothing may follow it; or once the
    /// direction was handed over: somebody else seals (INV-NONCE-3).
    pub fn sealer(&mut self) -> Result<&mut Sealer, RecordError> {
        match &mut self.directions.sending {
            _ if self.directions.sending_closed => Err(RecordError::Misuse("data after close_notify")),
            Sending::Here(sealer) => Ok(sealer),
            Sending::Between(_) => Err(RecordError::Misuse(AWAY)),
            Sending::Elsewhere(_) => Err(RecordError::Misuse("the direction was handed over")),
        }
    }
}

impl<K> Channel<K> {
    /// The same connection, whose next keys come from what `wrap` makes of where they came from: for a program that is a
    /// client on some connections and a server on others.
    pub fn with_keys<L>(self, wrap: impl FnOnce(K) -> L) -> Channel<L> {
        Channel { directions: self.directions, keys: wrap(self.keys) }
    }

    /// The protocol version.
    #[must_use]
    pub fn version(&self) -> Version {
        match &self.directions.sending {
            Sending::Here(sealer) => sealer.version(),
            Sending::Between(handed) | Sending::Elsewhere(handed) => handed.version,
        }
    }

    /// The cipher of the records that leave.
    #[must_use]
    pub fn cipher(&self) -> Cipher {
        match &self.directions.sending {
            Sending::Here(sealer) => sealer.cipher(),
            Sending::Between(handed) | Sending::Elsewhere(handed) => handed.cipher,
        }
    }

    /// Both: what an engine has to know to carry the connection.
    #[must_use]
    pub fn combination(&self) -> Combination {
        Combination { version: self.version(), cipher: self.cipher() }
    }

    /// Whether the sending key was kept, so that the direction can be handed over ([`Sealer::keeping`]).
    #[must_use]
    pub fn keeps_key(&self) -> bool {
        matches!(&self.directions.sending, Sending::Here(sealer) if sealer.keeps_key())
    }

    /// Whether somebody else makes the records that leave.
    #[must_use]
    pub fn is_handed_over(&self) -> bool {
        matches!(self.directions.sending, Sending::Elsewhere(_))
    }

    /// Records of application data that the sending key may still make; once the direction was handed over, at least
    /// as many.
    #[must_use]
    pub fn remaining_records(&self) -> u64 {
        match &self.directions.sending {
            Sending::Here(sealer) => sealer.remaining_records(),
            Sending::Between(_) => 0,
            Sending::Elsewhere(handed) => handed.remaining_records(),
        }
    }

    /// Counts records that were made elsewhere: at least as many as there can have been (INV-LIMIT-1).
    pub fn spend(&mut self, records: u64) {
        if let Sending::Elsewhere(handed) = &mut self.directions.sending {
            handed.spend(records);
        }
    }

    /// Takes over the count of the kernel or adapter that makes the records: the number of its next record.
    pub fn count_from(&mut self, sequence: u64) {
        if let Sending::Elsewhere(handed) = &mut self.directions.sending {
            handed.count_from(sequence);
        }
    }

    /// Whether the sending key can be replaced: not in TLS 1.2, nor where the peer, or the kernel or adapter that makes the
    /// records, takes no other.
    #[must_use]
    pub fn can_change_key(&self) -> bool {
        if self.directions.keeps_one_key {
            return false;
        }
        match &self.directions.sending {
            Sending::Here(sealer) => sealer.version() == Version::Tls13,
            Sending::Between(_) => false,
            Sending::Elsewhere(handed) => handed.takes_new_keys,
        }
    }

    /// Whether `close_notify` or a fatal alert has been sealed.
    #[must_use]
    pub fn sending_is_closed(&self) -> bool {
        self.directions.sending_closed
    }

    /// Whether another response may begin: not on a connection that cannot change its key and is at its limit, or
    /// (once it was handed over) near it, or whose peer waits for a key update that cannot come.
    #[must_use]
    pub fn can_send(&self) -> bool {
        let can_go_on = match &self.directions.sending {
            Sending::Here(sealer) => sealer.remaining_records() > 0 && !self.directions.update_owed,
            Sending::Between(_) => false,
            Sending::Elsewhere(handed) => handed.has_room_for_a_response() && !self.directions.update_owed,
        };
        !self.directions.sending_closed && (self.can_change_key() || can_go_on)
    }

    /// Whether the peer waits for our key update.
    #[must_use]
    pub fn owes_key_update(&self) -> bool {
        self.directions.update_owed
    }

    /// Where the parts of the records that leave stand.
    #[must_use]
    pub fn outgoing_layout(&self) -> Layout {
        match &self.directions.sending {
            Sending::Here(sealer) => sealer.layout(),
            Sending::Between(handed) | Sending::Elsewhere(handed) => handed.layout,
        }
    }

    /// Key updates received so far.
    #[must_use]
    pub fn key_updates_received(&self) -> u64 {
        self.directions.updates.received
    }

    /// Key updates sent so far.
    #[must_use]
    pub fn key_updates_sent(&self) -> u64 {
        self.directions.updates.sent
    }
}

impl<K> fmt::Debug for Channel<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Channel")
            .field("sending", &self.directions.sending)
            .field("receiving", &self.directions.receiving)
            .field("updates", &self.directions.updates)
            .field("sending_closed", &self.directions.sending_closed)
            .finish_non_exhaustive()
    }
}
