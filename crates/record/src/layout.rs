//! Where the parts of a record stand in its bytes.

use crate::{Cipher, RecordError, Version, content_type::ContentType};

/// Content type, legacy version and length (RFC 8446 5.1).
pub const HEADER_BYTES: usize = 5;
/// The authentication tag of every supported [`Cipher`].
pub const TAG_BYTES: usize = 16;
/// The most plaintext that one record carries (RFC 8446 5.1, RFC 5246 6.2.1).
pub const MAX_PLAINTEXT_BYTES: usize = 1 << 14;
/// The explicit part of a TLS 1.2 AES-GCM nonce (RFC 5288 3).
pub(crate) const EXPLICIT_NONCE_BYTES: usize = 8;

/// The bytes around a record's plaintext: header and explicit nonce before it, inner content type and tag after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    prefix_bytes: usize,
    suffix_bytes: usize,
    ciphertext_limit_bytes: usize,
}

impl Layout {
    /// The layout of records of a version and cipher.
    #[must_use]
    pub const fn new(version: Version, cipher: Cipher) -> Self {
        match (version, cipher) {
            (Version::Tls13, _) => Self {
                prefix_bytes: HEADER_BYTES,
                suffix_bytes: 1 + TAG_BYTES,
                // RFC 8446 5.2: TLSCiphertext.length MUST NOT exceed 2^14 + 256.
                ciphertext_limit_bytes: MAX_PLAINTEXT_BYTES + 256,
            },
            (Version::Tls12, Cipher::ChaCha20Poly1305) => Self {
                prefix_bytes: HEADER_BYTES,
                suffix_bytes: TAG_BYTES,
                // RFC 5246 6.2.3: 2^14 + 2048; an AEAD without padding needs no more than its own overhead,
                // but the limit that a peer may rely on is the RFC's.
                ciphertext_limit_bytes: MAX_PLAINTEXT_BYTES + 2048,
            },
            (Version::Tls12, _) => Self {
                prefix_bytes: HEADER_BYTES + EXPLICIT_NONCE_BYTES,
                suffix_bytes: TAG_BYTES,
                ciphertext_limit_bytes: MAX_PLAINTEXT_BYTES + 2048,
            },
        }
    }

    /// Bytes before the plaintext.
    #[must_use]
    pub const fn prefix_bytes(self) -> usize {
        self.prefix_bytes
    }

    /// Bytes of a record beside its plaintext.
    #[must_use]
    pub const fn overhead_bytes(self) -> usize {
        self.prefix_bytes + self.suffix_bytes
    }

    /// Bytes on the wire for a record that carries `plaintext_bytes`.
    #[must_use]
    pub const fn record_bytes(self, plaintext_bytes: usize) -> usize {
        plaintext_bytes + self.overhead_bytes()
    }

    /// The longest record that may arrive, header included, in bytes.
    #[must_use]
    pub const fn record_limit_bytes(self) -> usize {
        HEADER_BYTES + self.ciphertext_limit_bytes
    }

    /// The longest body of a record that may arrive, in bytes.
    pub(crate) const fn ciphertext_limit_bytes(self) -> usize {
        self.ciphertext_limit_bytes
    }
}

/// A record's first five bytes, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The outer content type; in TLS 1.3 always `application_data` once keys are in use.
    pub content_type: ContentType,
    /// Bytes of the record after its header.
    pub body_bytes: usize,
}

impl RecordHeader {
    /// Parses the header at the start of `bytes`. `Ok(None)` while there are fewer than five.
    ///
    /// The version field is ignored, as RFC 8446 5.1 asks; what it should say is authenticated with the record.
    ///
    /// # Errors
    /// [`RecordError::UnexpectedMessage`] for a content type that does not exist, [`RecordError::Overflow`] for a
    /// record longer than `layout` allows.
    pub fn parse(bytes: &[u8], layout: Layout) -> Result<Option<Self>, RecordError> {
        let Some(&[content_type, _, _, high, low]) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let content_type = ContentType::from_wire(content_type)
            .ok_or(RecordError::UnexpectedMessage("a record of an unknown content type"))?;
        let body_bytes = usize::from(u16::from_be_bytes([high, low]));
        if body_bytes > layout.ciphertext_limit_bytes() {
            return Err(RecordError::Overflow);
        }
        Ok(Some(Self { content_type, body_bytes }))
    }

    /// Bytes of the whole record.
    #[must_use]
    pub fn record_bytes(self) -> usize {
        HEADER_BYTES + self.body_bytes
    }
}
