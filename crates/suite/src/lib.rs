//! The words of TLS that all crates share: a version, a cipher, and the two together.
//!
//! This is the one table of them. What a library or the kernel calls them is a matter of the crate that talks to it: the
//! record layer's algorithms, the kernel's numbers, rustls' suites.

// A fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]
#![forbid(unsafe_code)]

use std::fmt;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// TLS 1.2, RFC 5246
    Tls12,
    /// TLS 1.3, RFC 8446
    Tls13,
}

impl Version {
    /// As logs and metrics write it: `TLSv1.2`, `TLSv1.3`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
        })
    }
}

/// A cipher that protects records. All authenticate with a tag of 16 bytes and take a nonce of 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cipher {
    /// AES-128-GCM
    Aes128Gcm,
    /// AES-256-GCM
    Aes256Gcm,
    /// ChaCha20-Poly1305
    ChaCha20Poly1305,
}

impl Cipher {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    /// Its name in files and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Gcm => "AES-256-GCM",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        }
    }

    /// Length of its key in bytes.
    #[must_use]
    pub fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// The cipher of that name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cipher| cipher.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A version and a cipher: what an engine has to know to carry a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Combination {
    /// The version that was agreed on.
    pub version: Version,
    /// The cipher that was agreed on.
    pub cipher: Cipher,
}

impl Combination {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 6] = {
        const fn both(version: Version, cipher: Cipher) -> Combination {
            Combination { version, cipher }
        }
        [
            both(Version::Tls13, Cipher::Aes128Gcm),
            both(Version::Tls13, Cipher::Aes256Gcm),
            both(Version::Tls13, Cipher::ChaCha20Poly1305),
            both(Version::Tls12, Cipher::Aes128Gcm),
            both(Version::Tls12, Cipher::Aes256Gcm),
            both(Version::Tls12, Cipher::ChaCha20Poly1305),
        ]
    };
}

impl Combination {
    /// As logs and metrics write it: `TLSv1.3 AES-128-GCM`.
    #[must_use]
    pub fn label(self) -> String {
        format!("{} {}", self.version.label(), self.cipher)
    }

    /// Its place in [`Combination::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        // `ALL` has every one: the test `every_combination_is_there_once` holds that.
        Self::ALL.iter().position(|&one| one == self).unwrap_or_default()
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.version, self.cipher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_ciphers() {
        for cipher in Cipher::ALL {
            assert_eq!(Cipher::named(&cipher.name().to_lowercase()), Some(cipher));
        }
        assert_eq!(Cipher::named("AES-128-CCM"), None);
    }

    #[test]
    fn every_combination_is_there_once() {
        for version in [Version::Tls12, Version::Tls13] {
            for cipher in Cipher::ALL {
                let same = Combination::ALL.iter().filter(|&&one| one == Combination { version, cipher });
                assert_eq!(same.count(), 1);
                let combination = Combination { version, cipher };
                assert_eq!(Combination::ALL[combination.index()], combination);
            }
        }
        assert_eq!(Combination::ALL[0].to_string(), "TLS 1.3 AES-128-GCM");
    }
}
