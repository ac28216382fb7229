//! What is spoken: versions, cipher suites, key exchange groups, tickets.

use crate::TlsError;
use linerate_record::{Cipher, Version};
use rustls::{
    NamedGroup, SupportedCipherSuite, SupportedProtocolVersion,
    crypto::{
        CryptoProvider, SupportedKxGroup,
        aws_lc_rs::{cipher_suite, default_provider, kx_group},
    },
};
use std::fmt;

/// A cipher suite that this crate speaks: one of [`CipherSuite::all`].
#[derive(Clone, Copy)]
pub struct CipherSuite(&'static SuiteRow);

struct SuiteRow {
    suite: &'static SupportedCipherSuite,
    cipher: Cipher,
    iana: &'static str,
    openssl: &'static str,
}

macro_rules! suites {
    ($($suite:ident, $cipher:ident, $iana:literal, $openssl:literal;)+) => {
        /// Every suite, AES before ChaCha20, the shorter key first: the order of a machine with AES instructions.
        static SUITES: &[SuiteRow] = &[$(SuiteRow {
            suite: &cipher_suite::$suite,
            cipher: Cipher::$cipher,
            iana: $iana,
            openssl: $openssl,
        },)+];
    };
}

suites! {
    TLS13_AES_128_GCM_SHA256, Aes128Gcm, "TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256";
    TLS13_AES_256_GCM_SHA384, Aes256Gcm, "TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384";
    TLS13_CHACHA20_POLY1305_SHA256, ChaCha20Poly1305,
        "TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256";
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, Aes128Gcm,
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256";
    TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, Aes256Gcm,
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384";
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, ChaCha20Poly1305,
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305";
    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, Aes128Gcm,
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256";
    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, Aes256Gcm,
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384";
    TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, ChaCha20Poly1305,
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305";
}

impl CipherSuite {
    /// Every suite there is.
    pub fn all() -> impl Iterator<Item = Self> {
        SUITES.iter().map(Self)
    }

    /// The order that is best on this machine: AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305 where the CPU has AES
    /// instructions, ChaCha20-Poly1305 first where it has none.
    #[must_use]
    pub fn preferred_here() -> Vec<Self> {
        let suites: Vec<_> = Self::all().collect();
        if has_aes_instructions() { suites } else { chacha20_first(&suites) }
    }

    /// The suite with this IANA or OpenSSL name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|suite| {
            suite.iana_name().eq_ignore_ascii_case(name) || suite.openssl_name().eq_ignore_ascii_case(name)
        })
    }

    /// The IANA name.
    #[must_use]
    pub fn iana_name(self) -> &'static str {
        self.0.iana
    }

    /// The name OpenSSL gives it; for the suites of TLS 1.3 that is the IANA name.
    #[must_use]
    pub fn openssl_name(self) -> &'static str {
        self.0.openssl
    }

    /// The cipher that protects its records.
    #[must_use]
    pub fn cipher(self) -> Cipher {
        self.0.cipher
    }

    /// The version it belongs to: TLS 1.3 has suites of its own.
    #[must_use]
    pub fn version(self) -> Version {
        if self.0.suite.tls13().is_some() { Version::Tls13 } else { Version::Tls12 }
    }

    pub(crate) fn of(suite: SupportedCipherSuite) -> Option<Self> {
        Self::all().find(|known| known.0.suite.suite() == suite.suite())
    }
}

impl PartialEq for CipherSuite {
    fn eq(&self, other: &Self) -> bool {
        self.iana_name() == other.iana_name()
    }
}

impl Eq for CipherSuite {}

impl fmt::Debug for CipherSuite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.iana_name())
    }
}

/// A key exchange group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// X25519 with ML-KEM-768, the post-quantum hybrid; TLS 1.3 only.
    X25519MlKem768,
    /// X25519, RFC 7748.
    X25519,
    /// The curve P-256.
    Secp256r1,
    /// The curve P-384.
    Secp384r1,
}

impl Group {
    /// Every group.
    pub const ALL: [Self; 4] = [Self::X25519MlKem768, Self::X25519, Self::Secp256r1, Self::Secp384r1];

    /// The IANA name: `X25519MLKEM768`, `x25519`, `secp256r1`, `secp384r1`.
    #[must_use]
    pub fn iana_name(self) -> &'static str {
        match self {
            Self::X25519MlKem768 => "X25519MLKEM768",
            Self::X25519 => "x25519",
            Self::Secp256r1 => "secp256r1",
            Self::Secp384r1 => "secp384r1",
        }
    }

    /// The group with this name, in any case; `P-256`, `prime256v1` and `P-384` are understood, too.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "x25519mlkem768" => Some(Self::X25519MlKem768),
            "x25519" => Some(Self::X25519),
            "secp256r1" | "prime256v1" | "p-256" => Some(Self::Secp256r1),
            "secp384r1" | "p-384" => Some(Self::Secp384r1),
            _ => None,
        }
    }

    fn exchange(self) -> &'static dyn SupportedKxGroup {
        match self {
            Self::X25519MlKem768 => kx_group::X25519MLKEM768,
            Self::X25519 => kx_group::X25519,
            Self::Secp256r1 => kx_group::SECP256R1,
            Self::Secp384r1 => kx_group::SECP384R1,
        }
    }

    pub(crate) fn of(group: NamedGroup) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.exchange().name() == group)
    }
}

/// What is spoken with every client.
///
/// Decided here, not by the operator: no early data (a replayed GET is harmless, but the record layer has no place
/// for it; what a client sends unasked is passed over, up to
/// [`EARLY_DATA_LIMIT_BYTES`](crate::EARLY_DATA_LIMIT_BYTES)); ALPN is `http/1.1`, else `http/1.0`; TLS 1.2 clients
/// without the extended master secret are served, because nothing that it protects (client certificates,
/// renegotiation, exporters) exists here. A TLS 1.2 client that does not list the curve of the site's only certificate is
/// shown it all the same, where RFC 8422 5.1.1 would end the handshake: clients that restrict their groups, as those
/// of rustls do, verify it nevertheless, and the others refuse it themselves.
#[derive(Clone, Debug)]
pub struct TlsPolicy {
    /// The lowest version spoken.
    pub minimum_version: Version,
    /// The suites, the most preferred first. The order is ours, not the client's, except that a client that puts a
    /// ChaCha20-Poly1305 suite first (as those without AES instructions do) gets one.
    pub cipher_suites: Vec<CipherSuite>,
    /// The groups that are taken. Which of them is used is the client's choice: rustls takes the first in the
    /// client's order (RFC 8446 4.2.7), so the order here has no effect.
    pub groups: Vec<Group>,
    /// Whether sessions may be resumed, by tickets (RFC 8446 4.6.1, RFC 5077).
    pub session_tickets: bool,
}

impl Default for TlsPolicy {
    fn default() -> Self {
        Self {
            minimum_version: Version::Tls12,
            cipher_suites: CipherSuite::preferred_here(),
            groups: Group::ALL.to_vec(),
            session_tickets: true,
        }
    }
}

impl TlsPolicy {
    /// The suites that remain when those below the minimum version are left out.
    ///
    /// # Errors
    /// [`TlsError::PolicyUnusable`] if no suite or no group is left.
    pub(crate) fn usable_suites(&self) -> Result<Vec<CipherSuite>, TlsError> {
        let usable: Vec<_> = self
            .cipher_suites
            .iter()
            .copied()
            .filter(|suite| suite.version() >= self.minimum_version)
            .collect();
        if usable.is_empty() {
            return Err(TlsError::PolicyUnusable(format!(
                "no cipher suite is left for {} and above: add one, such as TLS_AES_128_GCM_SHA256",
                self.minimum_version.label()
            )));
        }
        if self.groups.is_empty() {
            return Err(TlsError::PolicyUnusable(
                "no key exchange group: add one, such as X25519".to_owned(),
            ));
        }
        Ok(usable)
    }

    /// rustls' provider with these suites and our groups.
    pub(crate) fn provider(&self, suites: &[CipherSuite]) -> CryptoProvider {
        CryptoProvider {
            cipher_suites: suites.iter().map(|suite| *suite.0.suite).collect(),
            kx_groups: self.groups.iter().map(|group| group.exchange()).collect(),
            ..default_provider()
        }
    }
}

/// The versions that `suites` belong to. A version without a suite must not be offered: rustls would choose it and
/// then find no suite.
pub(crate) fn versions(suites: &[CipherSuite]) -> Vec<&'static SupportedProtocolVersion> {
    [(Version::Tls13, &rustls::version::TLS13), (Version::Tls12, &rustls::version::TLS12)]
        .into_iter()
        .filter(|(version, _)| suites.iter().any(|suite| suite.version() == *version))
        .map(|(_, supported)| supported)
        .collect()
}

/// `suites` with those of ChaCha20-Poly1305 in front, otherwise in the same order.
pub(crate) fn chacha20_first(suites: &[CipherSuite]) -> Vec<CipherSuite> {
    let mut ordered = suites.to_vec();
    ordered.sort_by_key(|suite| suite.cipher() != Cipher::ChaCha20Poly1305);
    ordered
}

fn has_aes_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_suites_and_groups() {
        assert_eq!(CipherSuite::all().count(), 9);
        for suite in CipherSuite::all() {
            assert_eq!(CipherSuite::named(suite.iana_name()), Some(suite));
            assert_eq!(CipherSuite::named(&suite.openssl_name().to_lowercase()), Some(suite));
            assert_eq!(CipherSuite::of(*suite.0.suite), Some(suite));
            assert_eq!(suite.version() == Version::Tls12, suite.iana_name().contains("_WITH_"));
        }
        for group in Group::ALL {
            assert_eq!(Group::named(group.iana_name()), Some(group));
            assert_eq!(Group::of(group.exchange().name()), Some(group));
        }
        assert_eq!(CipherSuite::named("AES128-SHA"), None);
        assert_eq!(Group::named("P-521"), None);
    }

    #[test]
    fn a_version_without_suites_is_not_spoken() {
        let all: Vec<_> = CipherSuite::all().collect();
        assert_eq!(versions(&all).len(), 2);
        for version in [Version::Tls12, Version::Tls13] {
            let suites: Vec<_> = CipherSuite::all().filter(|suite| suite.version() == version).collect();
            assert_eq!(versions(&suites).len(), 1);
        }
    }

    #[test]
    fn chacha20_comes_forward_without_disturbing_the_rest() {
        let ordered = chacha20_first(&CipherSuite::all().collect::<Vec<_>>());
        let names: Vec<_> = ordered.iter().map(|suite| suite.openssl_name()).collect();
        assert_eq!(names[0], "TLS_CHACHA20_POLY1305_SHA256");
        assert_eq!(names[3], "TLS_AES_128_GCM_SHA256");
        assert_eq!(names[8], "ECDHE-RSA-AES256-GCM-SHA384");
    }

    #[test]
    fn a_policy_that_leaves_nothing_says_so() {
        let only_tls12 = CipherSuite::all().filter(|suite| suite.version() == Version::Tls12).collect();
        let policy =
            TlsPolicy { minimum_version: Version::Tls13, cipher_suites: only_tls12, ..TlsPolicy::default() };
        let message = policy.usable_suites().unwrap_err().to_string();
        assert!(message.contains("TLSv1.3"), "{message}");
        assert!(TlsPolicy { groups: Vec::new(), ..TlsPolicy::default() }.usable_suites().is_err());
    }
}
