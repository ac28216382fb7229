//! Cipher suites and key exchange groups by the names that OpenSSL and IANA give them.

use std::fmt;
use std::str::FromStr;

use crate::choice::choose;
use crate::{Error, TlsVersion};

/// A cipher suite that linerate speaks.
#[allow(missing_docs, reason = "the IANA names say it all")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CipherSuite {
    Tls13Aes256GcmSha384,
    Tls13Aes128GcmSha256,
    Tls13Chacha20Poly1305Sha256,
    EcdheEcdsaAes256GcmSha384,
    EcdheEcdsaAes128GcmSha256,
    EcdheEcdsaChacha20Poly1305,
    EcdheRsaAes256GcmSha384,
    EcdheRsaAes128GcmSha256,
    EcdheRsaChacha20Poly1305,
}

impl CipherSuite {
    /// Every suite, with the names it is known by: IANA's first, then OpenSSL's.
    const NAMED: [(CipherSuite, &'static str, &'static str); 9] = [
        (CipherSuite::Tls13Aes256GcmSha384, "TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
        (CipherSuite::Tls13Aes128GcmSha256, "TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
        (
            CipherSuite::Tls13Chacha20Poly1305Sha256,
            "TLS_CHACHA20_POLY1305_SHA256",
            "TLS_CHACHA20_POLY1305_SHA256",
        ),
        (
            CipherSuite::EcdheEcdsaAes256GcmSha384,
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            "ECDHE-ECDSA-AES256-GCM-SHA384",
        ),
        (
            CipherSuite::EcdheEcdsaAes128GcmSha256,
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (
            CipherSuite::EcdheEcdsaChacha20Poly1305,
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
        (
            CipherSuite::EcdheRsaAes256GcmSha384,
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "ECDHE-RSA-AES256-GCM-SHA384",
        ),
        (
            CipherSuite::EcdheRsaAes128GcmSha256,
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "ECDHE-RSA-AES128-GCM-SHA256",
        ),
        (
            CipherSuite::EcdheRsaChacha20Poly1305,
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-RSA-CHACHA20-POLY1305",
        ),
    ];

    /// Every suite.
    pub fn all() -> impl Iterator<Item = CipherSuite> {
        Self::NAMED.iter().map(|(suite, ..)| *suite)
    }

    fn names(self) -> (&'static str, &'static str) {
        // `NAMED` has a row for each variant; the test `every_suite_has_names` holds that.
        Self::NAMED
            .iter()
            .find(|(suite, ..)| *suite == self)
            .map_or(("", ""), |(_, iana, openssl)| (*iana, *openssl))
    }

    /// The IANA name.
    #[must_use]
    pub fn iana_name(self) -> &'static str {
        self.names().0
    }

    /// The name OpenSSL gives it; for the suites of TLS 1.3 that is the IANA name.
    #[must_use]
    pub fn openssl_name(self) -> &'static str {
        self.names().1
    }

    /// The version of TLS it belongs to: TLS 1.3 has suites of its own.
    #[must_use]
    pub fn version(self) -> TlsVersion {
        match self {
            CipherSuite::Tls13Aes256GcmSha384
            | CipherSuite::Tls13Aes128GcmSha256
            | CipherSuite::Tls13Chacha20Poly1305Sha256 => TlsVersion::Version13,
            _ => TlsVersion::Version12,
        }
    }
}

impl FromStr for CipherSuite {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if let Some((suite, ..)) = Self::NAMED.iter().find(|(_, iana, _)| iana.eq_ignore_ascii_case(name)) {
            return Ok(*suite);
        }
        choose("cipher suite", name, &Self::NAMED.map(|(suite, _, openssl)| (openssl, suite)), "")
    }
}

impl fmt::Display for CipherSuite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.openssl_name())
    }
}

/// A key exchange group that linerate speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// X25519 with ML-KEM-768, the post-quantum hybrid.
    X25519MlKem768,
    /// X25519, RFC 7748.
    X25519,
    /// The curve P-256.
    Secp256r1,
    /// The curve P-384.
    Secp384r1,
}

impl Group {
    const NAMED: [(&'static str, Group); 7] = [
        ("X25519MLKEM768", Group::X25519MlKem768),
        ("X25519", Group::X25519),
        ("P-256", Group::Secp256r1),
        ("secp256r1", Group::Secp256r1),
        ("prime256v1", Group::Secp256r1),
        ("P-384", Group::Secp384r1),
        ("secp384r1", Group::Secp384r1),
    ];

    /// Every group.
    pub fn all() -> impl Iterator<Item = Group> {
        [Group::X25519MlKem768, Group::X25519, Group::Secp256r1, Group::Secp384r1].into_iter()
    }

    /// The name it is displayed by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::X25519MlKem768 => "X25519MLKEM768",
            Group::X25519 => "X25519",
            Group::Secp256r1 => "P-256",
            Group::Secp384r1 => "P-384",
        }
    }
}

impl FromStr for Group {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        choose("group", name, &Self::NAMED, "")
    }
}

impl fmt::Display for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Cipher suites in order of preference; never empty, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CipherSuites(Vec<CipherSuite>);

/// Key exchange groups in order of preference; never empty, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups(Vec<Group>);

/// What the two lists have in common.
macro_rules! preference_list {
    ($list:ident, $item:ident, $what:literal) => {
        impl $list {
            /// The items, the most preferred first. Never empty.
            #[must_use]
            pub fn as_slice(&self) -> &[$item] {
                &self.0
            }
        }

        impl TryFrom<Vec<$item>> for $list {
            type Error = Error;

            fn try_from(items: Vec<$item>) -> Result<Self, Error> {
                if items.is_empty() {
                    return Err(Error::value(concat!("the list is empty: name at least one ", $what)));
                }
                match items.iter().enumerate().find(|(index, item)| items[..*index].contains(item)) {
                    Some((_, item)) => Err(Error::value(format!("{item} is there twice"))),
                    None => Ok($list(items)),
                }
            }
        }

        impl FromStr for $list {
            type Err = Error;

            /// Reads names with `,` or `:` between them.
            fn from_str(list: &str) -> Result<Self, Error> {
                list.split([',', ':']).map(str::parse).collect::<Result<Vec<_>, _>>()?.try_into()
            }
        }

        impl fmt::Display for $list {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let names: Vec<_> = self.0.iter().map(ToString::to_string).collect();
                formatter.write_str(&names.join(", "))
            }
        }
    };
}
preference_list!(CipherSuites, CipherSuite, "cipher suite");
preference_list!(Groups, Group, "group");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_has_names() {
        assert_eq!(CipherSuite::all().count(), 9);
        for suite in CipherSuite::all() {
            assert_eq!(suite.iana_name().parse::<CipherSuite>().unwrap(), suite);
            assert_eq!(suite.openssl_name().to_lowercase().parse::<CipherSuite>().unwrap(), suite);
            let is_version13 = !suite.iana_name().contains("_WITH_");
            assert_eq!(suite.version() == TlsVersion::Version13, is_version13, "{suite}");
        }
    }

    #[test]
    fn every_group_has_names() {
        for (name, group) in Group::NAMED {
            assert_eq!(name.parse::<Group>().unwrap(), group);
            assert_eq!(group.name().parse::<Group>().unwrap(), group);
        }
    }

    #[test]
    fn lists_keep_their_order() {
        let suites: CipherSuites = "ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256".parse().unwrap();
        assert_eq!(
            suites.as_slice(),
            [CipherSuite::EcdheRsaAes128GcmSha256, CipherSuite::Tls13Aes128GcmSha256]
        );
        let groups: Groups = "P-384,x25519".parse().unwrap();
        assert_eq!(groups.as_slice(), [Group::Secp384r1, Group::X25519]);
    }

    #[test]
    fn faulty_lists_are_refused_in_words() {
        for (list, message) in [
            ("P-256,secp256r1", "P-256 is there twice"),
            (
                "",
                "unknown group \"\" (allowed: X25519MLKEM768, X25519, P-256, secp256r1, prime256v1, P-384, secp384r1)",
            ),
            (
                "X25591",
                "unknown group \"X25591\"; did you mean \"X25519\"? (allowed: X25519MLKEM768, X25519, P-256, secp256r1, \
                 prime256v1, P-384, secp384r1)",
            ),
        ] {
            assert_eq!(list.parse::<Groups>().unwrap_err().to_string(), message);
        }
        let message = "ECDHE-RSA-AES128-SHA256".parse::<CipherSuites>().unwrap_err().to_string();
        assert!(message.contains("did you mean \"ECDHE-RSA-AES128-GCM-SHA256\"?"), "{message}");
    }
}
