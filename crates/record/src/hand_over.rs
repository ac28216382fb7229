//! Handing a direction over to the kernel, which then makes or opens the records. What it is given, and what
//! remains to be decided here once it has it. Of sending: how many records the key may still make, when the key must
//! change, which control records are due. Of receiving: what records mean that are no application data, which the
//! [`crate::Channel`] goes on to say.

use crate::{
    Cipher, ContentType, Layout, RecordError, RecordLimit, Sealer, TrafficKey, Version,
    limit::RESERVED_FOR_CONTROL, nonce,
};
use std::{collections::VecDeque, fmt};
use zeroize::ZeroizeOnDrop;

/// What another record maker needs to go on where a [`crate::Sealer`] stopped, or another opener of records where an
/// [`crate::Opener`] did. Wiped when dropped, never shown.
#[derive(ZeroizeOnDrop)]
pub struct Handover<'a> {
    #[zeroize(skip)]
    key: &'a TrafficKey,
    vector: [u8; 12],
    sequence: u64,
}

impl<'a> Handover<'a> {
    /// From `sequence` on under `key`.
    pub(crate) fn new(key: &'a TrafficKey, sequence: u64) -> Result<Self, RecordError> {
        Ok(Self { key, vector: nonce::vector_elsewhere(key, sequence)?, sequence })
    }

    /// For opening, from `sequence` on. The peer makes the nonces: all that TLS 1.2 AES-GCM needs of the vector is the salt.
    pub(crate) fn receiving(key: &'a TrafficKey, sequence: u64) -> Self {
        Self { key, vector: *key.iv(), sequence }
    }

    /// The version of the records.
    #[must_use]
    pub fn version(&self) -> Version {
        self.key.version()
    }

    /// The cipher.
    #[must_use]
    pub fn cipher(&self) -> Cipher {
        self.key.cipher()
    }

    /// The key itself.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.key.key()
    }

    /// What nonces are made from. For TLS 1.2 with AES-GCM: four bytes of salt, then (to send with) the explicit nonce of
    /// the first record, which is to be counted up by one for each (INV-NONCE-3). Else the vector that sequence numbers
    /// are combined with by XOR.
    #[must_use]
    pub fn vector(&self) -> &[u8; 12] {
        &self.vector
    }

    /// The sequence number of the first record.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl fmt::Debug for Handover<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Handover")
            .field("version", &self.version())
            .field("cipher", &self.cipher())
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

/// The sealing half of a connection, lent to a switch ([`crate::Channel::lend`]).
#[derive(Debug)]
pub struct Lent(Sealer);

impl Lent {
    pub(crate) fn new(sealer: Sealer) -> Self {
        Self(sealer)
    }

    pub(crate) fn into_sealer(self) -> Sealer {
        self.0
    }

    /// What the other record maker needs.
    ///
    /// # Errors
    /// [`RecordError::Misuse`] if no vector can be found whose nonces were not used (INV-NONCE-3).
    pub fn handover(&self) -> Result<Handover<'_>, RecordError> {
        self.0.handover()
    }
}

/// Why a direction, or its next key, was not handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOverFault<E> {
    /// It cannot be, as things stand; nothing was tried.
    NotReady(RecordError),
    /// The kernel or the adapter refused.
    Refused(E),
}

/// A message that has to leave as a record of its own: an alert or a key update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlRecord {
    content_type: ContentType,
    payload: [u8; ControlRecord::LONGEST_BYTES],
    length: usize,
}

impl ControlRecord {
    /// A key update, the longest there is.
    const LONGEST_BYTES: usize = crate::key_update::KEY_UPDATE_BYTES;

    fn new(content_type: ContentType, message: &[u8]) -> Self {
        let mut payload = [0; Self::LONGEST_BYTES];
        let length = message.len().min(Self::LONGEST_BYTES);
        payload[..length].copy_from_slice(&message[..length]);
        Self { content_type, payload, length }
    }

    /// What the record is.
    #[must_use]
    pub fn content_type(&self) -> ContentType {
        self.content_type
    }

    /// What it carries.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload[..self.length]
    }
}

/// The sending direction after it was handed over.
#[derive(Debug)]
pub(crate) struct HandedOver {
    pub(crate) version: Version,
    pub(crate) cipher: Cipher,
    pub(crate) layout: Layout,
    limit: RecordLimit,
    /// Records that may still be made under this key, control records included. What was made is counted at its most,
    /// so this is never too much.
    remaining: u64,
    pub(crate) takes_new_keys: bool,
    control: VecDeque<ControlRecord>,
}

impl HandedOver {
    pub(crate) fn new(version: Version, cipher: Cipher, limit: RecordLimit, remaining: u64) -> Self {
        let layout = Layout::new(version, cipher);
        Self { version, cipher, layout, limit, remaining, takes_new_keys: false, control: VecDeque::new() }
    }

    /// A direction in which nobody makes records.
    pub(crate) fn nothing(version: Version, cipher: Cipher) -> Self {
        Self::new(version, cipher, RecordLimit::of(cipher), 0)
    }

    /// TLS 1.2 has no way to change keys, wherever the records are made.
    pub(crate) fn taking_new_keys(self, takes_new_keys: bool) -> Self {
        Self { takes_new_keys: takes_new_keys && self.version == Version::Tls13, ..self }
    }

    /// Records of application data that the key may still make.
    pub(crate) fn remaining_records(&self) -> u64 {
        self.remaining.saturating_sub(RESERVED_FOR_CONTROL)
    }

    /// Whether so much is left that another response may begin, where the key cannot be changed: a quarter of all.
    pub(crate) fn has_room_for_a_response(&self) -> bool {
        self.remaining_records() > self.limit.records() / 4
    }

    pub(crate) fn spend(&mut self, records: u64) {
        self.remaining = self.remaining.saturating_sub(records);
    }

    /// The next record's number is known to be `sequence` at most. Our own count and this one are both safe: the one that
    /// leaves more is nearer to the truth.
    pub(crate) fn count_from(&mut self, sequence: u64) {
        let spent = sequence.saturating_add(self.control.len() as u64);
        self.remaining = self.remaining.max(self.limit.records().saturating_sub(spent));
    }

    pub(crate) fn queue(&mut self, content_type: ContentType, message: &[u8]) {
        self.spend(1);
        self.control.push_back(ControlRecord::new(content_type, message));
    }

    pub(crate) fn next_control(&self) -> Option<&ControlRecord> {
        self.control.front()
    }

    pub(crate) fn control_left(&mut self) -> Option<ControlRecord> {
        self.control.pop_front()
    }

    /// A fresh key is in use: all of its records are still to be made.
    pub(crate) fn key_changed(&mut self) {
        self.remaining = self.limit.records().saturating_sub(self.control.len() as u64);
    }
}
