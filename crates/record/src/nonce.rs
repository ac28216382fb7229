//! Nonces and additional data: each record's own, from its sequence number.

use crate::{TrafficKey, Version, layout::EXPLICIT_NONCE_BYTES};
use aws_lc_rs::aead::{Aad, Nonce};

/// The per-direction vector that nonces are made from.
pub(crate) struct NonceBase {
    iv: [u8; 12],
}

impl NonceBase {
    pub(crate) fn new(key: &TrafficKey) -> Self {
        Self { iv: *key.iv() }
    }

    /// `iv ^ sequence number`, the latter padded on the left (RFC 8446 5.3, RFC 7905 2). For TLS 1.2 AES-GCM as
    /// sender this is the same: salt, then `mask ^ sequence number` (see [`TrafficKey`]). Distinct sequence numbers
    /// give distinct nonces, as XOR with a constant is one-to-one: INV-NONCE-1.
    pub(crate) fn for_sequence(&self, sequence: u64) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, mask) in nonce[4..].iter_mut().zip(sequence.to_be_bytes()) {
            *byte ^= mask;
        }
        nonce
    }

    /// Salt, then what the record says (RFC 5288 3): how a TLS 1.2 AES-GCM record from the peer is opened.
    pub(crate) fn for_explicit(&self, explicit: [u8; EXPLICIT_NONCE_BYTES]) -> [u8; 12] {
        let mut nonce = self.iv;
        nonce[4..].copy_from_slice(&explicit);
        nonce
    }
}

impl Drop for NonceBase {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.iv);
    }
}

pub(crate) fn nonce(bytes: [u8; 12]) -> Nonce {
    Nonce::assume_unique_for_key(bytes)
}

/// The additional authenticated data of a record: up to 13 bytes.
pub(crate) struct AdditionalData {
    bytes: [u8; 13],
    length: usize,
}

impl AdditionalData {
    /// RFC 8446 5.2: the record's header. RFC 5246 6.2.3.3: sequence number, type, version, plaintext length.
    pub(crate) fn new(version: Version, header: [u8; 5], sequence: u64, plaintext_bytes: usize) -> Self {
        let mut bytes = [0; 13];
        match version {
            Version::Tls13 => {
                bytes[..5].copy_from_slice(&header);
                Self { bytes, length: 5 }
            }
            Version::Tls12 => {
                bytes[..8].copy_from_slice(&sequence.to_be_bytes());
                bytes[8..11].copy_from_slice(&header[..3]);
                // A record's plaintext is at most 2^14 bytes, checked where records are cut and opened.
                bytes[11..].copy_from_slice(&(plaintext_bytes as u16).to_be_bytes());
                Self { bytes, length: 13 }
            }
        }
    }

    pub(crate) fn aad(&self) -> Aad<&[u8]> {
        Aad::from(&self.bytes[..self.length])
    }
}
