//! What is spoken: versions, cipher suites, key exchange groups, tickets.

use crate::{TlsError, hkdf};
use linerate_record::Version;
use linerate_suite::{Cipher, CipherSuite, Group};
use rustls::{
    NamedGroup, SupportedCipherSuite, SupportedProtocolVersion,
    crypto::{
        CryptoProvider, SupportedKxGroup,
        aws_lc_rs::{ALL_KX_GROUPS, default_provider},
    },
};

/// The suite that rustls calls so, if linerate speaks it.
pub(crate) fn suite_of(suite: SupportedCipherSuite) -> Option<CipherSuite> {
    let code_point = u16::from(suite.suite());
    CipherSuite::ALL.into_iter().find(|known| known.code_point() == code_point)
}

/// The group that rustls calls so, if linerate speaks it.
pub(crate) fn group_of(group: NamedGroup) -> Option<Group> {
    Group::ALL.into_iter().find(|known| known.code_point() == u16::from(group))
}

/// What rustls has for a suite: one for each, as the test `rustls_has_every_suite_and_group` holds.
fn supported(suite: CipherSuite) -> Option<SupportedCipherSuite> {
    hkdf::all_suites().find(|known| u16::from(known.suite()) == suite.code_point())
}

/// What rustls has for a group: one for each, as the test `rustls_has_every_suite_and_group` holds.
fn exchange(group: Group) -> Option<&'static dyn SupportedKxGroup> {
    ALL_KX_GROUPS.iter().copied().find(|known| u16::from(known.name()) == group.code_point())
}

/// The order that is best on this machine: AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305 where the CPU has AES
/// instructions, ChaCha20-Poly1305 first where it has none.
fn preferred_suites() -> Vec<CipherSuite> {
    if has_aes_instructions() { CipherSuite::ALL.to_vec() } else { chacha20_first(&CipherSuite::ALL) }
}

/// What is spoken with every client.
///
/// Decided here, not by the operator: no early data (a replayed GET is harmless, but the record layer has no place
/// for it; what a client sends unasked is passed over, up to
/// [`EARLY_DATA_LIMIT_BYTES`](crate::EARLY_DATA_LIMIT_BYTES)); ALPN is `http/1.1`, else `http/1.0` (for RPC `sunrpc`); TLS 1.2 clients
/// without the extended master secret are served, because nothing that it protects (client certificates,
/// renegotiation, exporters) exists there. A TLS 1.2 client that does not list the curve of the site's only certificate is
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
            cipher_suites: preferred_suites(),
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
            cipher_suites: suites.iter().filter_map(|suite| supported(*suite)).collect(),
            kx_groups: self.groups.iter().filter_map(|group| exchange(*group)).collect(),
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
    fn rustls_has_every_suite_and_group() {
        for suite in CipherSuite::ALL {
            let known = supported(suite).unwrap();
            assert_eq!(suite_of(known), Some(suite));
            assert_eq!(known.tls13().is_some(), suite.version() == Version::Tls13);
            let name =
                suite.iana_name().replacen("TLS_AES", "TLS13_AES", 1).replacen("TLS_CHA", "TLS13_CHA", 1);
            assert_eq!(format!("{:?}", known.suite()), name);
        }
        for group in Group::ALL {
            let known = exchange(group).unwrap().name();
            assert_eq!(group_of(known), Some(group));
            assert!(
                format!("{known:?}").eq_ignore_ascii_case(group.iana_name()),
                "{known:?} is not {group:?}"
            );
        }
    }

    #[test]
    fn a_version_without_suites_is_not_spoken() {
        assert_eq!(versions(&CipherSuite::ALL).len(), 2);
        for version in [Version::Tls12, Version::Tls13] {
            let suites: Vec<_> =
                CipherSuite::ALL.into_iter().filter(|suite| suite.version() == version).collect();
            assert_eq!(versions(&suites).len(), 1);
        }
    }

    #[test]
    fn chacha20_comes_forward_without_disturbing_the_rest() {
        let ordered = chacha20_first(&CipherSuite::ALL);
        let names: Vec<_> = ordered.iter().map(|suite| suite.openssl_name()).collect();
        assert_eq!(names[0], "TLS_CHACHA20_POLY1305_SHA256");
        assert_eq!(names[3], "TLS_AES_128_GCM_SHA256");
        assert_eq!(names[8], "ECDHE-RSA-AES256-GCM-SHA384");
    }

    #[test]
    fn a_policy_that_leaves_nothing_says_so() {
        let only_tls12 =
            CipherSuite::ALL.into_iter().filter(|suite| suite.version() == Version::Tls12).collect();
        let policy =
            TlsPolicy { minimum_version: Version::Tls13, cipher_suites: only_tls12, ..TlsPolicy::default() };
        let message = policy.usable_suites().unwrap_err().to_string();
        assert!(message.contains("TLSv1.3"), "{message}");
        assert!(TlsPolicy { groups: Vec::new(), ..TlsPolicy::default() }.usable_suites().is_err());
    }
}
