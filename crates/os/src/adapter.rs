//! What a network adapter's driver says of itself: its name, firmware, and which features are switched on; what it has
//! counted; which adapter carries a connection, and which interfaces there are.

pub use crate::system::adapter::{
    beneath, channels, driver, feature_states, interfaces, shows, statistics, towards,
};

use std::{collections::BTreeMap, io};

/// The driver of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// The driver's name: `mlx5_core`.
    pub name: String,
    /// The driver's version; drivers of the kernel itself give the kernel's.
    pub version: String,
    /// The firmware's version; empty where the driver tells none.
    pub firmware: String,
    /// Where it is plugged in: `0000:81:00.0`.
    pub bus: String,
}

/// A feature of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureState {
    /// Whether it is switched on.
    pub on: bool,
    /// Whether it can be switched at all: ethtool(8) marks those that cannot as `[fixed]`.
    pub changeable: bool,
}

/// The features of an interface by ethtool's names (`tx-tcp-segmentation`, `tls-hw-tx-offload`), and whether each is
/// switched on.
///
/// # Errors
/// As those of [`driver`].
pub fn features(interface: &str) -> io::Result<BTreeMap<String, bool>> {
    Ok(feature_states(interface)?.into_iter().map(|(name, state)| (name, state.on)).collect())
}

/// How many queues an interface has, and how many it can have; a driver has either queues for both directions
/// (combined) or some for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// The most queues for both directions.
    pub most_combined: u32,
    /// The most queues for sending alone.
    pub most_sending: u32,
    /// Queues for both directions now.
    pub combined: u32,
    /// Queues for sending alone now.
    pub sending: u32,
}

/// An interface, as the kernel tells of it over netlink: of this process' namespace, whatever is mounted where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number within the namespace.
    pub index: u32,
    /// Its hardware address; empty where its kind has none.
    pub address: Vec<u8>,
}

/// What stands beneath an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beneath {
    /// The interfaces that carry what it sends: the ports of a bond or team, the interface below a VLAN, and so on down; for
    /// one that stands upon nothing, itself. Sorted by name.
    pub ports: Vec<String>,
    /// Why Linux does not look for an adapter that encrypts among the ports; the first, from above.
    pub obstacle: Option<Obstacle>,
    /// The bond that it is a port of: nothing is sent by the port itself.
    pub port_of: Option<String>,
}

/// Why Linux does not hand connections down to the interfaces beneath one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The bond is in a mode that does not choose a port by the connection: neither `balance-xor` nor `802.3ad`.
    BondMode {
        /// Which.
        bond: String,
        /// Its mode: `active-backup`.
        mode: String,
    },
    /// The mode is right, and the bond's `xmit_hash_policy` is not `layer3+4`.
    BondPolicy {
        /// Which.
        bond: String,
        /// Its policy: `layer2`.
        policy: String,
    },
    /// It is no bond: a VLAN, a bridge, a team.
    NoBond {
        /// Which.
        interface: String,
        /// What the kernel calls its kind (`vlan`, `bridge`); empty where it says nothing.
        kind: String,
    },
}
