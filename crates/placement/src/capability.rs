//! Which engines can carry a connection, and why others cannot.
//!
//! What the system can do is found out elsewhere (by doing it); here it is a value, small and `Copy`, that a decision can
//! take along without allocating.

use crate::{Cipher, Combination, Engine, Version, labels::labels};
use std::fmt;

/// A name of the system (a device, a driver), in place: what is longer than 22 bytes is cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    bytes: [u8; Self::CAPACITY],
    length: u8,
}

impl Name {
    const CAPACITY: usize = 22;

    /// As much of `name` as fits, in whole characters.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut length = name.len().min(Self::CAPACITY);
        while !name.is_char_boundary(length) {
            length -= 1;
        }
        let mut bytes = [0; Self::CAPACITY];
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        Self { bytes, length: length as u8 }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Cut between characters, so it is valid.
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(formatter)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The release of a kernel, as far as it decides what the kernel can do: `6.12` of `6.12.41+deb13-cloud-amd64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// `6`
    pub major: u16,
    /// `12`
    pub minor: u16,
}

impl Release {
    /// The beginning of what `uname -r` says; `None` if it does not begin with two numbers.
    #[must_use]
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|character: char| !character.is_ascii_digit());
        Some(Self { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// Why an engine does not carry a combination of version and cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lack {
    /// The configuration does not want it, so nobody looked.
    NotAskedFor(Engine),
    /// This operating system has no such thing.
    OperatingSystem(Engine),
    /// The `tls` module is not loaded.
    Module,
    /// This kernel does not have the version or the cipher.
    NotInKernel(Combination),
    /// The kernel carried it wrongly in the self-test.
    SelfTest(Combination),
    /// It could not be tried.
    NotKnown(Engine),
    /// Linux gives a flow to an adapter that takes it; encrypting it in software cannot be asked for.
    AdapterGoesFirst,
    /// No adapter on the connection's way encrypts.
    NoAdapter,
    /// The adapter could, and is told not to: `ethtool -K DEVICE tls-hw-tx-offload on`.
    FeatureOff(Name),
    /// The driver does not offload this version under this kernel.
    VersionNotInNic {
        /// The version that was agreed on.
        version: Version,
        /// The adapter's driver.
        driver: Name,
        /// The kernel.
        release: Release,
    },
    /// The adapter does not have the cipher.
    CipherNotInNic(Cipher),
    /// The adapter refused the last ones, though it has taken such connections before: its flow table may be full.
    AdapterRefuses {
        /// Which.
        adapter: Name,
        /// Connections of ours that it has.
        flows: u64,
    },
    /// The bond's mode spreads connections over its ports, so Linux gives none of them to a port's adapter.
    BondMode(Name),
    /// The bond's mode would do, and its policy does not choose the port by the connection alone.
    BondPolicy(Name),
    /// Linux does not look for an adapter beneath this interface: a VLAN, a bridge.
    NotBeneath(Name),
    /// The adapter would read files while it sends, and again when segments are lost: only content that never changes is safe from
    /// that (FreeBSD, where it can't be told to copy).
    FilesMayChange,
}

labels! {
    Lack {
        NotAskedFor => "not_asked_for",
        OperatingSystem => "not_on_this_system",
        Module => "no_module",
        NotInKernel => "not_in_kernel",
        SelfTest => "self_test",
        NotKnown => "not_known",
        AdapterGoesFirst => "adapter_goes_first",
        NoAdapter => "no_adapter",
        FeatureOff => "feature_off",
        VersionNotInNic => "version_not_in_nic",
        CipherNotInNic => "cipher_not_in_nic",
        AdapterRefuses => "adapter_refuses",
        BondMode => "bond_mode",
        BondPolicy => "bond_policy",
        NotBeneath => "upper_device",
        FilesMayChange => "files_may_change",
    }
}

impl Lack {
    /// Whether a person would expect the engine to be there: then its lack is the reason for what is done instead. That
    /// a machine has no adapter that encrypts is no news.
    #[must_use]
    pub fn is_news(&self) -> bool {
        !matches!(
            self,
            Self::NotAskedFor(_) | Self::OperatingSystem(_) | Self::AdapterGoesFirst | Self::NoAdapter
        )
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAskedFor(engine) => write!(formatter, "the {engine} engine is not asked for"),
            Self::OperatingSystem(engine) => {
                write!(formatter, "this operating system has no {engine} engine")
            }
            Self::Module => formatter.write_str("the tls module is not loaded (modprobe tls)"),
            Self::NotInKernel(combination) => write!(formatter, "this kernel does not have {combination}"),
            Self::SelfTest(combination) => {
                write!(formatter, "kernel TLS is switched off for {combination}: the self-test failed")
            }
            Self::NotKnown(engine) => {
                write!(formatter, "what the {engine} engine carries could not be found out")
            }
            Self::AdapterGoesFirst => formatter.write_str("Linux gives the flow to the adapter"),
            Self::NoAdapter => formatter.write_str("no adapter on the way encrypts"),
            Self::FeatureOff(device) => {
                write!(
                    formatter,
                    "{device} could encrypt (ethtool -K {device} tls-hw-tx-offload on; FreeBSD: ifconfig {device} txtls)"
                )
            }
            Self::VersionNotInNic { version, driver, release } => {
                write!(formatter, "{version} is not offloaded by {driver} on {release}")
            }
            Self::CipherNotInNic(cipher) => write!(formatter, "cipher {cipher} not in NIC"),
            Self::AdapterRefuses { adapter, flows } => {
                write!(formatter, "{adapter} takes no more flows at the moment (it has {flows} of ours)")
            }
            Self::BondMode(bond) => {
                write!(
                    formatter,
                    "{bond} hands no connections to adapters (mode balance-xor or 802.3ad does)"
                )
            }
            Self::BondPolicy(bond) => write!(
                formatter,
                "{bond} hands no connections to adapters (ip link set {bond} type bond xmit_hash_policy layer3+4)"
            ),
            Self::NotBeneath(upper) => {
                write!(formatter, "Linux does not look for an adapter beneath {upper}, which is no bond")
            }
            Self::FilesMayChange => formatter.write_str(
                "the adapter would send files that may change (immutable = true says that they don't)",
            ),
        }
    }
}

/// How an engine carries a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// It takes another key for a connection that has one.
    pub takes_new_keys: bool,
}

/// Whether an engine carries a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes, and how.
    Carried(Carried),
    /// No, and why.
    Lacking(Lack),
}

impl Verdict {
    /// What it lacks, if it lacks something.
    #[must_use]
    pub fn lack(&self) -> Option<Lack> {
        match self {
            Self::Carried(_) => None,
            Self::Lacking(lack) => Some(*lack),
        }
    }
}

/// Which engines carry one combination towards one peer: the adapter is that of the route. The user engine carries all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether the operating system does, in software.
    pub kernel: Verdict,
    /// Whether the adapter does.
    pub nic: Verdict,
}

impl Capabilities {
    /// The user engine alone, because nobody asked for more.
    pub const USER_ONLY: Self = Self {
        kernel: Verdict::Lacking(Lack::NotAskedFor(Engine::Kernel)),
        nic: Verdict::Lacking(Lack::NotAskedFor(Engine::Nic)),
    };

    /// Whether this engine does.
    #[must_use]
    pub fn of(&self, engine: Engine) -> Verdict {
        match engine {
            Engine::User => Verdict::Carried(Carried { takes_new_keys: true }),
            Engine::Kernel => self.kernel,
            Engine::Nic => self.nic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(Name::new("mlx5_core").as_str(), "mlx5_core");
        assert_eq!(Name::new("").as_str(), "");
        let long = "é".repeat(12);
        assert_eq!(Name::new(&long).as_str(), "é".repeat(11));
        assert_eq!(format!("{:?}", Name::new("eth0")), "\"eth0\"");
    }

    #[test]
    fn releases_are_read_from_what_uname_says() {
        let release = |text| Release::parse(text).map(|release| release.to_string());
        assert_eq!(release("6.12.41+deb13-cloud-amd64").as_deref(), Some("6.12"));
        assert_eq!(release("14.1-RELEASE").as_deref(), Some("14.1"));
        assert_eq!(release("6").as_deref(), None);
        assert_eq!(release("Linux").as_deref(), None);
        assert!(Release { major: 6, minor: 9 } < Release { major: 6, minor: 12 });
    }

    #[test]
    fn lacks_are_said_in_words() {
        let version = Lack::VersionNotInNic {
            version: Version::Tls13,
            driver: Name::new("mlx5_core"),
            release: Release { major: 6, minor: 12 },
        };
        assert_eq!(version.to_string(), "TLS 1.3 is not offloaded by mlx5_core on 6.12");
        assert!(version.is_news() && !Lack::NoAdapter.is_news());
        assert_eq!(
            Lack::CipherNotInNic(Cipher::ChaCha20Poly1305).to_string(),
            "cipher ChaCha20-Poly1305 not in NIC"
        );
        assert_eq!(
            Lack::FeatureOff(Name::new("eth0")).to_string(),
            "eth0 could encrypt (ethtool -K eth0 tls-hw-tx-offload on; FreeBSD: ifconfig eth0 txtls)"
        );
        assert_eq!(
            Lack::BondPolicy(Name::new("bond0")).to_string(),
            "bond0 hands no connections to adapters (ip link set bond0 type bond xmit_hash_policy layer3+4)"
        );
    }
}
