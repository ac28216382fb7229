//! Nonces and additional data: each record's own, from its sequence number.

use crate::{Cipher, RecordError, TrafficKey, Version, layout::EXPLICIT_NONCE_BYTES};
use aws_lc_rs::aead::{Aad, Nonce};

/// The per-direction vector that nonces are made from.
#[derive(zeroize::ZeroizeOnDrop)]
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

/// The bit of an explicit nonce that tells whether the record layer or the kernel made it.
const ELSEWHERE: u64 = 1 << 63;

/// The vector for the kernel or adapter that makes the records from `sequence` on (INV-NONCE-3).
///
/// In TLS 1.3 and with `ChaCha20` it combines vector and sequence number by XOR, as the [`crate::Sealer`] does. For TLS 1.2 with AES-GCM
/// the kernel takes the first explicit nonce and counts it up by one for each record (`net/tls/tls_sw.c`,
/// `tls_advance_record_sn`), where ours are `mask ^ sequence number`. All of ours have the first bit of the mask, because
/// no sequence number reaches 2^63. The kernel's begin at the first bit inverted and 63 zeros, and keep that bit for 2^63
/// records. So no nonce of the one is a nonce of the other.
pub(crate) fn vector_elsewhere(key: &TrafficKey, sequence: u64) -> Result<[u8; 12], RecordError> {
    if sequence >= ELSEWHERE {
        return Err(RecordError::KeyExhausted);
    }
    let mut vector = *key.iv();
    if key.version() == Version::Tls12 && key.cipher() != Cipher::ChaCha20Poly1305 {
        vector[4] = !vector[4] & 0x80;
        vector[5..].fill(0);
    }
    Ok(vector)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn explicit(nonce: [u8; 12]) -> u64 {
        u64::from_be_bytes(nonce[4..].try_into().unwrap())
    }

    /// INV-NONCE-3: for every mask, ours and the kernel's are apart, wherever the switch falls.
    #[test]
    fn no_explicit_nonce_is_ours_and_the_kernels() {
        let numbers = [0, 1, 2, 77, (1 << 24) - 1, 1 << 24, 1 << 48, (1 << 63) - 1];
        for mask in [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 0x8000_0000_0000_0001, 0xDEAD_BEEF_0123_4567] {
            for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm] {
                let mut iv = [9; 12];
                iv[4..].copy_from_slice(&u64::to_be_bytes(mask));
                let key = TrafficKey::new(Version::Tls12, cipher, &vec![1; cipher.key_bytes()], iv).unwrap();
                let ours = NonceBase::new(&key);
                for switch in numbers {
                    let vector = vector_elsewhere(&key, switch).unwrap();
                    assert_eq!(vector[..4], iv[..4], "the salt stays");
                    for number in numbers {
                        let our_side = explicit(ours.for_sequence(number)) >> 63;
                        let kernels = explicit(vector).checked_add(number).unwrap();
                        assert_ne!(our_side, kernels >> 63, "mask {mask:x}, record {number}");
                    }
                }
            }
        }
    }

    #[test]
    fn where_sequence_numbers_make_the_nonce_the_vector_stays() {
        let iv = [0x5A; 12];
        for (version, cipher) in [
            (Version::Tls13, Cipher::Aes128Gcm),
            (Version::Tls13, Cipher::ChaCha20Poly1305),
            (Version::Tls12, Cipher::ChaCha20Poly1305),
        ] {
            let key = TrafficKey::new(version, cipher, &vec![1; cipher.key_bytes()], iv).unwrap();
            assert_eq!(vector_elsewhere(&key, 5).unwrap(), iv);
            assert_eq!(vector_elsewhere(&key, 1 << 63), Err(RecordError::KeyExhausted));
        }
    }
}
