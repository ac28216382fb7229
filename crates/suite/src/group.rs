//! Key exchange groups.

use std::fmt;

/// A key exchange group that linerate speaks.
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

    /// Every name that is understood.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("X25519MLKEM768", Self::X25519MlKem768),
        ("X25519", Self::X25519),
        ("P-256", Self::Secp256r1),
        ("secp256r1", Self::Secp256r1),
        ("prime256v1", Self::Secp256r1),
        ("P-384", Self::Secp384r1),
        ("secp384r1", Self::Secp384r1),
    ];

    /// The number that IANA gives it.
    #[must_use]
    pub const fn code_point(self) -> u16 {
        match self {
            Self::X25519MlKem768 => 0x11EC,
            Self::X25519 => 0x001D,
            Self::Secp256r1 => 0x0017,
            Self::Secp384r1 => 0x0018,
        }
    }

    /// The IANA name: `X25519MLKEM768`, `x25519`, `secp256r1`, `secp384r1`.
    #[must_use]
    pub const fn iana_name(self) -> &'static str {
        match self {
            Self::X25519MlKem768 => "X25519MLKEM768",
            Self::X25519 => "x25519",
            Self::Secp256r1 => "secp256r1",
            Self::Secp384r1 => "secp384r1",
        }
    }
}

/// The name that NIST or the group's authors gave it.
impl fmt::Display for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::X25519MlKem768 => "X25519MLKEM768",
            Self::X25519 => "X25519",
            Self::Secp256r1 => "P-256",
            Self::Secp384r1 => "P-384",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_understood_by_each_of_its_names() {
        for group in Group::ALL {
            for name in [group.iana_name().to_owned(), group.to_string()] {
                let is_it =
                    |(known, named): &(&str, Group)| known.eq_ignore_ascii_case(&name) && *named == group;
                assert!(Group::NAMES.iter().any(is_it), "{name}");
            }
        }
    }
}
