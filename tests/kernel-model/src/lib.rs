//! How Linux makes and opens TLS records with a key that it was given (net/tls/tls_sw.c), and how FreeBSD makes them (ktls(4)), on this
//! side of the kernel: what tests on any machine hold the switch of engines against.

#![forbid(unsafe_code)]

mod fixtures;
mod freebsd;
mod module;
mod padding;
mod receiving;

pub use fixtures::{Counting, channel, content, temporary};
pub use freebsd::{FreeBsd, FreeBsdScript};
pub use module::{Nic, Script, Simulated};
pub use padding::padded_record;

use linerate_record::{Cipher, ContentType, RecordLimit, Sealer, TrafficKey, Version};

/// A key as the kernel keeps it.
#[derive(Debug)]
pub struct KernelKey {
    version: Version,
    cipher: Cipher,
    key: Vec<u8>,
    vector: [u8; 12],
    sequence: u64,
}

impl KernelKey {
    /// A key that is installed with the number of its first record.
    #[must_use]
    pub fn new(version: Version, cipher: Cipher, key: &[u8], vector: [u8; 12], sequence: u64) -> Self {
        Self { version, cipher, key: key.to_vec(), vector, sequence }
    }

    /// The number of the next record.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The next record.
    ///
    /// # Panics
    /// If the key is none of its cipher, or the plaintext is longer than a record's.
    pub fn record(&mut self, content_type: ContentType, plaintext: &[u8]) -> Vec<u8> {
        let mut vector = self.vector;
        if self.version == Version::Tls12 && self.cipher != Cipher::ChaCha20Poly1305 {
            // The explicit nonce counts up. A Sealer's is `mask ^ sequence number`: this mask makes it the one that is due.
            let explicit = u64::from_be_bytes(vector[4..].try_into().unwrap());
            vector[4..].copy_from_slice(&(explicit ^ self.sequence).to_be_bytes());
            self.vector[4..].copy_from_slice(&(explicit + 1).to_be_bytes());
        }
        let key = TrafficKey::new(self.version, self.cipher, &self.key, vector).unwrap();
        let mut sealer = Sealer::new(&key, self.sequence, RecordLimit::of(self.cipher)).unwrap();
        self.sequence += 1;
        let mut record = Vec::new();
        sealer.seal_append(content_type, plaintext, &mut record).unwrap();
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TLS 1.2 with AES-GCM is the one whose nonce stands in the record: it begins with the vector's, not with the number of
    /// the record, and counts up.
    #[test]
    fn the_explicit_nonce_counts_up_from_the_vector() {
        let vector = [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 1, 255];
        let mut key = KernelKey::new(Version::Tls12, Cipher::Aes128Gcm, &[7; 16], vector, 5);
        for due in [[0, 0, 0, 0, 0, 0, 1, 255], [0, 0, 0, 0, 0, 0, 2, 0]] {
            assert_eq!(key.record(ContentType::ApplicationData, b"text")[5..13], due);
        }
        assert_eq!(key.sequence(), 7);
    }
}
