//! Opening: records in, plaintext out.

use crate::{
    ContentType, Handover, RecordError, TrafficKey, Version,
    layout::{HEADER_BYTES, Layout, MAX_PLAINTEXT_BYTES, RecordHeader, TAG_BYTES},
    nonce::{AdditionalData, NonceBase, nonce},
    seal::prepared_key,
};
use aws_lc_rs::aead::LessSafeKey;
use linerate_os::memory::Wiped;
use std::{fmt, ops::Range};

/// What a record held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The real content type.
    pub content_type: ContentType,
    /// Where its plaintext stands in the record that was opened.
    pub plaintext: Range<usize>,
}

/// The receiving half of a connection. Any error ends the connection: nothing is opened after one (INV-OPEN-1).
pub struct Opener {
    version: Version,
    layout: Layout,
    key: Wiped<LessSafeKey>,
    nonces: NonceBase,
    sequence: u64,
    failed: bool,
    /// The key as it came, where the direction may be handed over.
    kept: Option<TrafficKey>,
}

impl Opener {
    /// Takes over at `sequence`, the number of the next record that arrives.
    ///
    /// # Errors
    /// [`RecordError::Crypto`] if the cipher does not take the key.
    pub fn new(key: &TrafficKey, sequence: u64) -> Result<Self, RecordError> {
        Ok(Self {
            version: key.version(),
            layout: Layout::new(key.version(), key.cipher()),
            key: prepared_key(key)?,
            nonces: NonceBase::new(key),
            sequence,
            failed: false,
            kept: None,
        })
    }

    /// As [`Opener::new`], and keeps the key, so that the direction can be handed over later.
    ///
    /// # Errors
    /// As [`Opener::new`].
    pub fn keeping(key: TrafficKey, sequence: u64) -> Result<Self, RecordError> {
        let opener = Self::new(&key, sequence)?;
        Ok(Self { kept: Some(key), ..opener })
    }

    /// Replaces the key by the next of the key schedule; numbers start again at 0.
    pub(crate) fn install(&mut self, key: TrafficKey) -> Result<(), RecordError> {
        *self = if self.kept.is_some() { Self::keeping(key, 0)? } else { Self::new(&key, 0)? };
        Ok(())
    }

    pub(crate) fn keeps_key(&self) -> bool {
        self.kept.is_some()
    }

    /// What another opener of records needs to go on from here. After a refused record there is none (INV-OPEN-1).
    pub(crate) fn handover(&self) -> Result<Handover<'_>, RecordError> {
        if self.failed {
            return Err(RecordError::Misuse("a record after a fatal fault"));
        }
        let key = self.kept.as_ref().ok_or(RecordError::Misuse("the key was not kept"))?;
        Ok(Handover::receiving(key, self.sequence))
    }

    /// Where the parts of its records stand.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Passes over a record that was thrown away unread: the next one is opened under the number after its own. What
    /// was in it is neither known nor authenticated.
    ///
    /// # Errors
    /// [`RecordError::Overflow`] at the end of the sequence numbers, [`RecordError::Misuse`] after a fault.
    pub(crate) fn skip(&mut self) -> Result<(), RecordError> {
        if self.failed {
            return Err(RecordError::Misuse("a record after a fatal fault"));
        }
        self.sequence = self.sequence.checked_add(1).ok_or(RecordError::Overflow)?;
        Ok(())
    }

    /// Opens one whole record in place.
    ///
    /// # Errors
    /// A fault of the peer; the connection is over, and every further call fails with [`RecordError::Misuse`].
    pub fn open(&mut self, record: &mut [u8]) -> Result<Opened, RecordError> {
        if self.failed {
            return Err(RecordError::Misuse("a record after a fatal fault"));
        }
        let opened = self.open_checked(record);
        self.failed = opened.is_err();
        opened
    }

    fn open_checked(&mut self, record: &mut [u8]) -> Result<Opened, RecordError> {
        let header = RecordHeader::parse(record, self.layout)?
            .filter(|header| header.record_bytes() == record.len())
            .ok_or(RecordError::Misuse("not exactly one record"))?;
        if self.version == Version::Tls13 && header.content_type != ContentType::ApplicationData {
            // RFC 8446 5: with keys in use everything is protected; a change_cipher_spec is legal only before Finished.
            return Err(RecordError::UnexpectedMessage("an unprotected record"));
        }
        let prefix_bytes = self.layout.prefix_bytes();
        let Some(text_bytes) = record.len().checked_sub(prefix_bytes + TAG_BYTES) else {
            return Err(RecordError::BadRecordMac);
        };
        let nonce_bytes = self.nonce_bytes(record);
        let [content_type, major, minor, high, low, ..] = *record else {
            return Err(RecordError::Misuse("not exactly one record"));
        };
        let header_bytes = [content_type, major, minor, high, low];
        let additional = AdditionalData::new(self.version, header_bytes, self.sequence, text_bytes);
        let (text, tag) = record[prefix_bytes..].split_at_mut(text_bytes);
        self.key
            .open_in_place_separate_tag(nonce(nonce_bytes), additional.aad(), tag, text)
            .map_err(|_| RecordError::BadRecordMac)?;
        self.sequence = self.sequence.checked_add(1).ok_or(RecordError::Overflow)?;
        let (content_type, plaintext_bytes) = match self.version {
            Version::Tls12 => (header.content_type, text_bytes),
            Version::Tls13 => inner_plaintext(text)?,
        };
        if plaintext_bytes > MAX_PLAINTEXT_BYTES {
            return Err(RecordError::Overflow);
        }
        if plaintext_bytes == 0 && content_type != ContentType::ApplicationData {
            // RFC 8446 5.1, RFC 5246 6.2.1: only application data may come in empty records.
            return Err(RecordError::UnexpectedMessage("an empty record that is no application data"));
        }
        Ok(Opened { content_type, plaintext: prefix_bytes..prefix_bytes + plaintext_bytes })
    }

    fn nonce_bytes(&self, record: &[u8]) -> [u8; 12] {
        match record
            .get(HEADER_BYTES..self.layout.prefix_bytes())
            .and_then(|explicit| explicit.try_into().ok())
        {
            Some(explicit) => self.nonces.for_explicit(explicit),
            None => self.nonces.for_sequence(self.sequence),
        }
    }
}

/// Finds the content type, which stands between the plaintext and its padding of zeros, and how long the plaintext is (RFC 8446
/// 5.4).
fn inner_plaintext(text: &[u8]) -> Result<(ContentType, usize), RecordError> {
    // RFC 8446 5.2: the plaintext with type and padding may not exceed 2^14 + 1.
    if text.len() > MAX_PLAINTEXT_BYTES + 1 {
        return Err(RecordError::Overflow);
    }
    let Some(position) = text.iter().rposition(|&byte| byte != 0) else {
        return Err(RecordError::UnexpectedMessage("a record of nothing but padding"));
    };
    let content_type = ContentType::from_wire(text[position])
        .filter(|&content_type| content_type != ContentType::ChangeCipherSpec)
        .ok_or(RecordError::UnexpectedMessage("a protected record of an unknown content type"))?;
    Ok((content_type, position))
}

impl fmt::Debug for Opener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Opener")
            .field("version", &self.version)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
