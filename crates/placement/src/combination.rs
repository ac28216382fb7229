//! Versions of TLS and ciphers, as far as placement has to tell them apart.

use std::fmt;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// TLS 1.2
    Tls12,
    /// TLS 1.3
    Tls13,
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
        })
    }
}

/// What protects the records.
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

/// What an engine has to know to carry a connection.
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
            }
        }
        assert_eq!(Combination::ALL[0].to_string(), "TLS 1.3 AES-128-GCM");
    }
}
