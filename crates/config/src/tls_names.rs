//! Versions, cipher suites and key exchange groups by the names that OpenSSL and IANA give them.

use std::fmt;
use std::str::FromStr;

use linerate_suite::{CipherSuite, Group, Version};

use crate::Error;
use crate::choice::choose;

/// The words that name versions of TLS.
pub const VERSION_NAMES: &[&str] = &[Version::Tls12.number(), Version::Tls13.number()];

/// The version of TLS that `word` names.
///
/// # Errors
/// With the versions there are, if it names none.
pub fn parse_version(word: &str) -> Result<Version, Error> {
    let versions = [Version::Tls12, Version::Tls13].map(|version| (version.number(), version));
    choose(
        "TLS version",
        word,
        &versions,
        "; TLS 1.1 and older are not spoken, because RFC 8996 forbids them",
    )
}

pub(crate) fn parse_suite(name: &str) -> Result<CipherSuite, Error> {
    let by_openssl_name = CipherSuite::ALL.map(|suite| (suite.openssl_name(), suite));
    CipherSuite::named(name).map_or_else(|| choose("cipher suite", name, &by_openssl_name, ""), Ok)
}

pub(crate) fn parse_group(name: &str) -> Result<Group, Error> {
    choose("group", name, &Group::NAMES, "")
}

/// Cipher suites in order of preference; never empty, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CipherSuites(Vec<CipherSuite>);

/// Key exchange groups in order of preference; never empty, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups(Vec<Group>);

/// What the two lists have in common.
macro_rules! preference_list {
    ($list:ident, $item:ident, $parse:ident, $what:literal) => {
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
                list.split([',', ':']).map($parse).collect::<Result<Vec<_>, _>>()?.try_into()
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
preference_list!(CipherSuites, CipherSuite, parse_suite, "cipher suite");
preference_list!(Groups, Group, parse_group, "group");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_names_are_read() {
        for suite in CipherSuite::ALL {
            assert_eq!(parse_suite(suite.iana_name()).unwrap(), suite);
            assert_eq!(parse_suite(&suite.openssl_name().to_lowercase()).unwrap(), suite);
        }
    }

    #[test]
    fn a_version_that_is_not_spoken_is_refused_with_the_reason() {
        assert_eq!(parse_version("1.3").unwrap(), Version::Tls13);
        let message = parse_version("1.1").unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown TLS version \"1.1\" (allowed: 1.2, 1.3; TLS 1.1 and older are not spoken, because RFC 8996 forbids \
             them)"
        );
    }

    #[test]
    fn lists_keep_their_order() {
        let suites: CipherSuites = "ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256".parse().unwrap();
        let names: Vec<_> = suites.as_slice().iter().map(|suite| suite.iana_name()).collect();
        assert_eq!(names, ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"]);
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
