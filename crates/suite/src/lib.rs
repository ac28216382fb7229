//! The words of TLS that all crates share: a version, a cipher, the two together, a cipher suite, a key exchange group.
//!
//! This is the one table of them. The objects of a library or of the kernel belong to the crate that talks to it: the
//! record layer's algorithms, the kernel's numbers, rustls' suites.

// A fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]
#![forbid(unsafe_code)]

mod group;

pub use group::Group;
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
    /// Its number, as settings and flags have it: `1.2`, `1.3`.
    #[must_use]
    pub const fn number(self) -> &'static str {
        match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        }
    }

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
        write!(formatter, "TLS {}", self.number())
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

    /// The most records that one key may seal. AES-GCM: 2^24 full records, below RFC 8446 5.5's 2^24.5.
    /// ChaCha20-Poly1305 has no limit before the sequence number would wrap; 2^48 keeps arithmetic far from that edge.
    #[must_use]
    pub fn records_per_key(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 24,
            Self::ChaCha20Poly1305 => 1 << 48,
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

/// A cipher suite that linerate speaks: one of [`CipherSuite::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CipherSuite {
    code_point: u16,
    combination: Combination,
    iana_name: &'static str,
    openssl_name: &'static str,
}

const fn tls13(code_point: u16, cipher: Cipher, name: &'static str) -> CipherSuite {
    let combination = Combination { version: Version::Tls13, cipher };
    CipherSuite { code_point, combination, iana_name: name, openssl_name: name }
}

const fn tls12(
    code_point: u16,
    cipher: Cipher,
    iana_name: &'static str,
    openssl_name: &'static str,
) -> CipherSuite {
    let combination = Combination { version: Version::Tls12, cipher };
    CipherSuite { code_point, combination, iana_name, openssl_name }
}

impl CipherSuite {
    /// Every suite, AES before ChaCha20, the shorter key first: the order of a machine with AES instructions.
    #[rustfmt::skip]
    pub const ALL: [Self; 9] = [
        tls13(0x1301, Cipher::Aes128Gcm, "TLS_AES_128_GCM_SHA256"),
        tls13(0x1302, Cipher::Aes256Gcm, "TLS_AES_256_GCM_SHA384"),
        tls13(0x1303, Cipher::ChaCha20Poly1305, "TLS_CHACHA20_POLY1305_SHA256"),
        tls12(0xC02B, Cipher::Aes128Gcm, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        tls12(0xC02C, Cipher::Aes256Gcm, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        tls12(0xCCA9, Cipher::ChaCha20Poly1305, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        tls12(0xC02F, Cipher::Aes128Gcm, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        tls12(0xC030, Cipher::Aes256Gcm, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        tls12(0xCCA8, Cipher::ChaCha20Poly1305, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
    ];

    /// The suite with this IANA or OpenSSL name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| {
            suite.iana_name.eq_ignore_ascii_case(name) || suite.openssl_name.eq_ignore_ascii_case(name)
        })
    }

    /// The number that IANA gives it.
    #[must_use]
    pub const fn code_point(self) -> u16 {
        self.code_point
    }

    /// The IANA name.
    #[must_use]
    pub const fn iana_name(self) -> &'static str {
        self.iana_name
    }

    /// The name OpenSSL gives it; for the suites of TLS 1.3 that is the IANA name.
    #[must_use]
    pub const fn openssl_name(self) -> &'static str {
        self.openssl_name
    }

    /// The cipher that protects its records.
    #[must_use]
    pub const fn cipher(self) -> Cipher {
        self.combination.cipher
    }

    /// The version it belongs to: TLS 1.3 has suites of its own.
    #[must_use]
    pub const fn version(self) -> Version {
        self.combination.version
    }
}

impl fmt::Display for CipherSuite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.openssl_name)
    }
}

impl fmt::Debug for CipherSuite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.iana_name)
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

    #[test]
    fn names_lead_back_to_suites() {
        for suite in CipherSuite::ALL {
            assert_eq!(CipherSuite::named(suite.iana_name()), Some(suite));
            assert_eq!(CipherSuite::named(&suite.openssl_name().to_lowercase()), Some(suite));
            assert_eq!(suite.version() == Version::Tls12, suite.iana_name().contains("_WITH_"));
            let cipher = suite.cipher().name().to_uppercase().replace('-', "_");
            assert!(suite.iana_name().contains(&cipher), "{suite:?} is not {cipher}");
        }
        assert_eq!(CipherSuite::named("AES128-SHA"), None);
    }
}
