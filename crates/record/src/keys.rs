//! The key of one direction of one connection.

use crate::RecordError;
use linerate_suite::{Cipher, Version};
use std::fmt;
use zeroize::ZeroizeOnDrop;

/// The longest key of any [`Cipher`], in bytes.
const MAX_KEY_BYTES: usize = 32;

/// Key and initialisation vector of one direction, fresh from the key schedule. Wiped when dropped, never shown.
///
/// For TLS 1.2 with AES-GCM the vector's first 4 bytes are the implicit salt and its last 8 the mask that each
/// explicit nonce is made with (`mask ^ sequence number`), as rustls extracts it (RFC 5288 3 leaves the choice of the
/// explicit part to the sender).
#[derive(ZeroizeOnDrop)]
pub struct TrafficKey {
    #[zeroize(skip)]
    version: Version,
    #[zeroize(skip)]
    cipher: Cipher,
    key: [u8; MAX_KEY_BYTES],
    iv: [u8; 12],
}

impl TrafficKey {
    /// A key for `version` and `cipher`.
    ///
    /// # Errors
    /// [`RecordError::Misuse`] if `key` is not [`Cipher::key_bytes`] long.
    pub fn new(version: Version, cipher: Cipher, key: &[u8], iv: [u8; 12]) -> Result<Self, RecordError> {
        if key.len() != cipher.key_bytes() {
            return Err(RecordError::Misuse("the key's length does not fit the cipher"));
        }
        let mut stored = [0; MAX_KEY_BYTES];
        stored[..key.len()].copy_from_slice(key);
        Ok(Self { version, cipher, key: stored, iv })
    }

    /// The version whose records it protects.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The cipher it is for.
    #[must_use]
    pub fn cipher(&self) -> Cipher {
        self.cipher
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key[..self.cipher.key_bytes()]
    }

    pub(crate) fn iv(&self) -> &[u8; 12] {
        &self.iv
    }
}

impl fmt::Debug for TrafficKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TrafficKey")
            .field("version", &self.version)
            .field("cipher", &self.cipher)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_the_wrong_length_is_refused() {
        for cipher in Cipher::ALL {
            for length in [0, 15, 16, 17, 31, 32, 33] {
                let made = TrafficKey::new(Version::Tls13, cipher, &vec![7; length], [0; 12]);
                assert_eq!(made.is_ok(), length == cipher.key_bytes(), "{cipher:?} {length}");
            }
        }
    }

    /// The compiler answers: what is not wiped when it is dropped does not fit.
    #[test]
    fn what_holds_a_key_is_wiped() {
        fn is_wiped<T: ZeroizeOnDrop>() {}
        is_wiped::<TrafficKey>();
        is_wiped::<crate::nonce::NonceBase>();
        is_wiped::<crate::Handover<'_>>();
    }

    #[test]
    fn debug_shows_no_secret() {
        let key = TrafficKey::new(Version::Tls13, Cipher::Aes128Gcm, &[0xAB; 16], [0xCD; 12]).unwrap();
        let shown = format!("{key:?}").to_lowercase();
        assert!(shown.contains("aes128gcm"), "{shown}");
        for secret in ["171", "205", "ab, ", "cd, ", "0xab", "0xcd"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
