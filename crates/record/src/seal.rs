//! Sealing: plaintext in, records out.

use crate::{
    Cipher, ContentType, Handover, RecordError, RecordLimit, TrafficKey, Version,
    hand_over::HandedOver,
    layout::{HEADER_BYTES, Layout, MAX_PLAINTEXT_BYTES},
    limit::RESERVED_FOR_CONTROL,
    nonce::{AdditionalData, NonceBase, nonce},
};
use aws_lc_rs::aead::{self, LessSafeKey, UnboundKey};
use linerate_os::memory::Wiped;
use std::fmt;

pub(crate) fn prepared_key(key: &TrafficKey) -> Result<Wiped<LessSafeKey>, RecordError> {
    let algorithm = match key.cipher() {
        Cipher::Aes128Gcm => &aead::AES_128_GCM,
        Cipher::Aes256Gcm => &aead::AES_256_GCM,
        Cipher::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
    };
    let unbound = UnboundKey::new(algorithm, key.key()).map_err(|_| RecordError::Crypto)?;
    Ok(Wiped::new(LessSafeKey::new(unbound)))
}

/// The sending half of a connection: one key, its sequence number and what is left under its limit.
///
/// It is neither `Clone` nor can its sequence number be set back: that is how INV-NONCE-1 holds by construction.
pub struct Sealer {
    version: Version,
    cipher: Cipher,
    layout: Layout,
    key: Wiped<LessSafeKey>,
    nonces: NonceBase,
    /// Number of the next record.
    sequence: u64,
    limit: RecordLimit,
    /// Records that may still be sealed under this key, control records included.
    remaining: u64,
    /// The key as it came, where the direction may be handed over.
    kept: Option<TrafficKey>,
}

impl Sealer {
    /// Takes over at `sequence`, the number of the next record: 0 for a fresh key, more where the handshake has
    /// already sealed records under it (TLS 1.2's Finished, TLS 1.3's session tickets).
    ///
    /// # Errors
    /// [`RecordError::Crypto`] if the cipher does not take the key.
    pub fn new(key: &TrafficKey, sequence: u64, limit: RecordLimit) -> Result<Self, RecordError> {
        Ok(Self {
            version: key.version(),
            cipher: key.cipher(),
            layout: Layout::new(key.version(), key.cipher()),
            key: prepared_key(key)?,
            nonces: NonceBase::new(key),
            sequence,
            limit,
            // What the handshake sealed counts, too, but never eats what control records need.
            remaining: limit.records().saturating_sub(sequence).max(RESERVED_FOR_CONTROL),
            kept: None,
        })
    }

    /// As [`Sealer::new`], and keeps the key, so that the direction can be handed over later.
    ///
    /// # Errors
    /// As [`Sealer::new`].
    pub fn keeping(key: TrafficKey, sequence: u64, limit: RecordLimit) -> Result<Self, RecordError> {
        let sealer = Self::new(&key, sequence, limit)?;
        Ok(Self { kept: Some(key), ..sealer })
    }

    /// Replaces the key by the next of the key schedule; numbers start again at 0 (RFC 8446 7.2).
    pub(crate) fn install(&mut self, key: TrafficKey) -> Result<(), RecordError> {
        *self = if self.kept.is_some() {
            Self::keeping(key, 0, self.limit)?
        } else {
            Self::new(&key, 0, self.limit)?
        };
        Ok(())
    }

    pub(crate) fn keeps_key(&self) -> bool {
        self.kept.is_some()
    }

    /// What is left for another record maker to make.
    pub(crate) fn after_hand_over(&self) -> Result<HandedOver, RecordError> {
        self.handover()?;
        if self.remaining_records() == 0 {
            return Err(RecordError::KeyExhausted);
        }
        Ok(HandedOver::new(self.version, self.cipher, self.limit, self.remaining))
    }

    /// What another record maker needs to go on from here.
    pub(crate) fn handover(&self) -> Result<Handover<'_>, RecordError> {
        let key = self.kept.as_ref().ok_or(RecordError::Misuse("the key was not kept"))?;
        Handover::new(key, self.sequence)
    }

    /// Where the parts of its records stand.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The protocol version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The cipher.
    #[must_use]
    pub fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// The sequence number of the next record.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Records of application data that this key may still seal; control records have their own reserve.
    #[must_use]
    pub fn remaining_records(&self) -> u64 {
        self.remaining.saturating_sub(RESERVED_FOR_CONTROL)
    }

    /// Seals a record whose plaintext already stands in its place: `record` is prefix, plaintext and suffix
    /// ([`Layout`]), and everything but the plaintext is written here.
    ///
    /// # Errors
    /// [`RecordError::KeyExhausted`] at the limit, [`RecordError::Misuse`] for a size that no record has.
    pub fn seal_in_place(&mut self, content_type: ContentType, record: &mut [u8]) -> Result<(), RecordError> {
        let plaintext_bytes = self.plaintext_bytes(record.len())?;
        let sequence = self.next_sequence(content_type)?;
        let (nonce_bytes, additional) = self.write_prefix(content_type, plaintext_bytes, sequence, record);
        let (text, suffix) = record[self.layout.prefix_bytes()..].split_at_mut(plaintext_bytes);
        self.key
            .seal_in_place_scatter(
                nonce(nonce_bytes),
                additional.aad(),
                text,
                self.inner_type(&content_type.wire()),
                suffix,
            )
            .map_err(|_| RecordError::Crypto)
    }

    /// Seals `plaintext` from where it is into `record`, which must be [`Layout::record_bytes`] long.
    ///
    /// # Errors
    /// As [`Sealer::seal_in_place`].
    pub fn seal_from(
        &mut self,
        content_type: ContentType,
        plaintext: &[u8],
        record: &mut [u8],
    ) -> Result<(), RecordError> {
        if self.plaintext_bytes(record.len())? != plaintext.len() {
            return Err(RecordError::Misuse("the record's place does not fit its plaintext"));
        }
        let sequence = self.next_sequence(content_type)?;
        let (nonce_bytes, additional) = self.write_prefix(content_type, plaintext.len(), sequence, record);
        let (text, suffix) = record[self.layout.prefix_bytes()..].split_at_mut(plaintext.len());
        self.key
            .seal_out_of_place_scatter(
                nonce(nonce_bytes),
                additional.aad(),
                plaintext,
                text,
                self.inner_type(&content_type.wire()),
                suffix,
            )
            .map_err(|_| RecordError::Crypto)
    }

    /// Seals a short message (an alert, a key update) and appends its record to `outgoing`.
    ///
    /// # Errors
    /// As [`Sealer::seal_in_place`].
    pub fn seal_append(
        &mut self,
        content_type: ContentType,
        plaintext: &[u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        let start = outgoing.len();
        outgoing.resize(start + self.layout.record_bytes(plaintext.len()), 0);
        let sealed = self.seal_from(content_type, plaintext, &mut outgoing[start..]);
        if sealed.is_err() {
            outgoing.truncate(start);
        }
        sealed
    }

    fn plaintext_bytes(&self, record_bytes: usize) -> Result<usize, RecordError> {
        record_bytes
            .checked_sub(self.layout.overhead_bytes())
            .filter(|&bytes| bytes <= MAX_PLAINTEXT_BYTES)
            .ok_or(RecordError::Misuse("no record has this size"))
    }

    /// Takes the next number. It is spent even if sealing then fails, so no number is ever used twice (INV-NONCE-1).
    fn next_sequence(&mut self, content_type: ContentType) -> Result<u64, RecordError> {
        let reserve = match content_type {
            ContentType::ApplicationData => RESERVED_FOR_CONTROL,
            _ => 0,
        };
        if self.remaining <= reserve {
            return Err(RecordError::KeyExhausted);
        }
        let sequence = self.sequence;
        self.remaining -= 1;
        self.sequence = sequence.checked_add(1).ok_or(RecordError::KeyExhausted)?;
        Ok(sequence)
    }

    fn write_prefix(
        &self,
        content_type: ContentType,
        plaintext_bytes: usize,
        sequence: u64,
        record: &mut [u8],
    ) -> ([u8; 12], AdditionalData) {
        let outer = match self.version {
            Version::Tls13 => ContentType::ApplicationData,
            Version::Tls12 => content_type,
        };
        // At most 2^14 + 256, checked by `plaintext_bytes`.
        let body_bytes = (record.len() - HEADER_BYTES) as u16;
        let [high, low] = body_bytes.to_be_bytes();
        let header = [outer.wire(), 3, 3, high, low];
        record[..HEADER_BYTES].copy_from_slice(&header);
        let nonce_bytes = self.nonces.for_sequence(sequence);
        if self.layout.prefix_bytes() > HEADER_BYTES {
            record[HEADER_BYTES..self.layout.prefix_bytes()].copy_from_slice(&nonce_bytes[4..]);
        }
        (nonce_bytes, AdditionalData::new(self.version, header, sequence, plaintext_bytes))
    }

    /// What is sealed behind the plaintext: in TLS 1.3 the real content type (RFC 8446 5.2).
    fn inner_type<'a>(&self, wire: &'a u8) -> &'a [u8] {
        match self.version {
            Version::Tls13 => std::slice::from_ref(wire),
            Version::Tls12 => &[],
        }
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Sealer")
            .field("version", &self.version)
            .field("cipher", &self.cipher)
            .field("sequence", &self.sequence)
            .field("remaining", &self.remaining)
            .finish_non_exhaustive()
    }
}
