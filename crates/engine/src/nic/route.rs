//! What is known of an adapter before a connection has tried it: pure, so that `linerate doctor` says by the same rules what
//! the server goes by.

use crate::kernel::{Carried, Objection, verdict};
use linerate_os::adapter::{Beneath, FeatureState, Obstacle};
use linerate_placement::{
    Capabilities, Carried as Taken, Cipher, Combination, Lack, Name, Release, Verdict, Version,
};

/// The feature by which an adapter encrypts, by ethtool's name (`NETIF_F_HW_TLS_TX`).
pub const TLS_FEATURE: &str = "tls-hw-tx-offload";

/// Kernels up to this one give adapters TLS 1.2 only (net/tls/tls_device.c, and the drivers' own checks); patches for
/// TLS 1.3 were in their 17th version in September 2026.
const LAST_KNOWN_FOR_TLS_1_2_ONLY: Release = Release { major: 7, minor: 2 };
/// The first that gives adapters keys of 256 bits (net/tls/tls_device.c).
const FIRST_WITH_256_BITS: Release = Release { major: 6, minor: 0 };
/// Drivers that take AES-128-GCM alone.
const DRIVERS_OF_128_BITS: [&str; 3] = ["cxgb4", "nfp", "funeth"];

/// An interface of this network namespace, as the kernel tells of it.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its driver's name; empty where it does not tell.
    pub driver: String,
    /// The state of [`TLS_FEATURE`], where the kernel tells.
    pub feature: Option<FeatureState>,
    /// What stands beneath it.
    pub beneath: Beneath,
}

/// An interface whose connections leave by an adapter that encrypts, or could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The interface of the routing table: the adapter itself, or what stands upon it.
    pub interface: String,
    /// The adapter.
    pub adapter: String,
    /// The adapter's driver.
    pub driver: String,
    /// Whether the adapter is told to encrypt ([`TLS_FEATURE`]).
    pub is_on: bool,
    /// Why Linux gives none of its connections to the adapter.
    pub obstacle: Option<Lack>,
}

/// The routes among all interfaces of a network namespace. A port of a bond sends nothing by itself: it has none.
#[must_use]
pub fn routes(interfaces: &[Interface]) -> Vec<Route> {
    let adapter = |name: &String| {
        let interface = interfaces.iter().find(|interface| interface.name == *name)?;
        let state = interface.feature.filter(|state| state.on || state.changeable)?;
        Some((interface, state.on))
    };
    let route = |interface: &Interface| {
        let ports = || interface.beneath.ports.iter().filter_map(adapter);
        // Of a bond's ports, one that is switched on speaks for all.
        let (port, is_on) = ports().find(|(_, is_on)| *is_on).or_else(|| ports().next())?;
        Some(Route {
            interface: interface.name.clone(),
            adapter: port.name.clone(),
            driver: port.driver.clone(),
            is_on,
            obstacle: interface.beneath.obstacle.as_ref().map(lack),
        })
    };
    interfaces.iter().filter(|interface| interface.beneath.port_of.is_none()).filter_map(route).collect()
}

/// What keeps connections from an adapter, as placement calls it.
fn lack(obstacle: &Obstacle) -> Lack {
    match obstacle {
        Obstacle::BondMode { bond, .. } => Lack::BondMode(Name::new(bond)),
        Obstacle::BondPolicy { bond, .. } => Lack::BondPolicy(Name::new(bond)),
        Obstacle::NoBond { interface, .. } => Lack::NotBeneath(Name::new(interface)),
    }
}

impl Route {
    /// What is known beforehand, and does not pass: nobody tries.
    pub(crate) fn never_takes(&self, combination: Combination) -> Option<Lack> {
        if self.obstacle.is_some() {
            return self.obstacle;
        }
        if !self.is_on {
            return Some(Lack::FeatureOff(Name::new(&self.adapter)));
        }
        // Linux has it in software alone (`offloadable` of net/tls/tls.h), whatever the adapter could do.
        if combination.cipher == Cipher::ChaCha20Poly1305 {
            return Some(Lack::CipherNotInNic(combination.cipher));
        }
        None
    }

    /// What a connection that tries will most likely find, and why. It is tried all the same, by one connection at a time:
    /// vendors' kernels and drivers have more than those that are known here.
    #[must_use]
    pub fn foreseen(&self, combination: Combination, release: Release) -> Option<(Lack, String)> {
        let Combination { version, cipher } = combination;
        if version == Version::Tls13 {
            let lack = Lack::VersionNotInNic { version, driver: Name::new(&self.driver), release };
            return (release <= LAST_KNOWN_FOR_TLS_1_2_ONLY)
                .then(|| (lack, "Linux gives it TLS 1.2 only".to_owned()));
        }
        if cipher == Cipher::Aes256Gcm && release < FIRST_WITH_256_BITS {
            let why = format!("Linux {release} gives adapters keys of 128 bits only (6.0: 256)");
            return Some((Lack::CipherNotInNic(cipher), why));
        }
        if cipher == Cipher::Aes256Gcm && DRIVERS_OF_128_BITS.contains(&self.driver.as_str()) {
            return Some((Lack::CipherNotInNic(cipher), format!("{} takes AES-128-GCM only", self.driver)));
        }
        None
    }

    /// Whether a release is newer than what [`Route::foreseen`] knows of this version.
    #[must_use]
    pub fn is_beyond_knowledge(version: Version, release: Release) -> bool {
        version == Version::Tls13 && release > LAST_KNOWN_FOR_TLS_1_2_ONLY
    }
}

/// What the server goes by from the start: the engines that can carry a version and cipher for connections by this route, before one has
/// tried the adapter. `kernel` is what was found out about the kernel.
#[must_use]
pub fn at_start(
    combination: Combination,
    kernel: Result<Carried, &Objection>,
    route: Option<&Route>,
) -> Capabilities {
    let kernel = verdict(kernel);
    let nic = Verdict::Lacking(kernel.lack().unwrap_or(Lack::NoAdapter));
    let without = Capabilities { kernel, nic };
    route.map_or(without, |route| with_adapter(without, route.never_takes(combination), true))
}

/// Adds the adapter of a connection's route, and what is known to stand against it. An adapter does nothing that the kernel
/// lacks, and where it may take a connection `auto` has no choice: Linux asks it first.
pub fn with_adapter(mut can: Capabilities, lack: Option<Lack>, is_auto: bool) -> Capabilities {
    if can.kernel.lack().is_some() {
        return can;
    }
    match lack {
        Some(lack) => can.nic = Verdict::Lacking(lack),
        None => {
            // It takes no new key for a connection.
            can.nic = Verdict::Carried(Taken { takes_new_keys: false });
            if is_auto {
                can.kernel = Verdict::Lacking(Lack::AdapterGoesFirst);
            }
        }
    }
    can
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Option<FeatureState> = Some(FeatureState { on: true, changeable: true });
    const OFF: Option<FeatureState> = Some(FeatureState { on: false, changeable: true });
    const NEVER: Option<FeatureState> = Some(FeatureState { on: false, changeable: false });

    fn interface(name: &str, feature: Option<FeatureState>, ports: &[&str]) -> Interface {
        let ports = if ports.is_empty() { &[name] } else { ports };
        let ports = ports.iter().map(|&port| port.to_owned()).collect();
        let beneath = Beneath { ports, ..Beneath::default() };
        Interface { name: name.to_owned(), driver: format!("driver of {name}"), feature, beneath }
    }

    fn port(name: &str, feature: Option<FeatureState>) -> Interface {
        let mut port = interface(name, feature, &[]);
        port.beneath.port_of = Some("bond0".to_owned());
        port
    }

    #[test]
    fn a_route_leads_to_the_port_that_encrypts() {
        let all = [
            interface("bond0", NEVER, &["eth0", "eth1", "eth2"]),
            port("eth0", NEVER),
            port("eth1", OFF),
            port("eth2", ON),
            interface("eth3", OFF, &[]),
            interface("lo", NEVER, &[]),
            interface("tun0", None, &[]),
        ];
        let found: Vec<_> = routes(&all)
            .into_iter()
            .map(|route| format!("{} {} {} {}", route.interface, route.adapter, route.driver, route.is_on))
            .collect();
        assert_eq!(found, ["bond0 eth2 driver of eth2 true", "eth3 eth3 driver of eth3 false"]);
    }

    #[test]
    fn what_is_foreseen_follows_version_key_driver_and_release() {
        use {
            Cipher::{Aes128Gcm, Aes256Gcm},
            Version::{Tls12, Tls13},
        };
        let (version_lacks, cipher_lacks) = (Some("version_not_in_nic"), Some("cipher_not_in_nic"));
        for (driver, version, cipher, (major, minor), expected) in [
            ("mlx5_core", Tls13, Aes128Gcm, (7, 2), version_lacks),
            ("mlx5_core", Tls13, Aes128Gcm, (7, 3), None),
            ("mlx5_core", Tls12, Aes128Gcm, (5, 10), None),
            ("mlx5_core", Tls12, Aes256Gcm, (5, 19), cipher_lacks),
            ("mlx5_core", Tls12, Aes256Gcm, (6, 0), None),
            ("cxgb4", Tls12, Aes256Gcm, (6, 12), cipher_lacks),
            ("cxgb4", Tls12, Aes128Gcm, (6, 12), None),
        ] {
            let interface = Interface { driver: driver.to_owned(), ..interface("eth0", ON, &[]) };
            let [route] = &routes(&[interface])[..] else { panic!("one route") };
            let release = Release { major, minor };
            let foreseen = route.foreseen(Combination { version, cipher }, release);
            let lack = foreseen.map(|(lack, _)| lack.label());
            assert_eq!(lack, expected, "{driver} {version} {cipher} {release}");
            let is_beyond = version == Tls13 && minor == 3;
            assert_eq!(Route::is_beyond_knowledge(version, release), is_beyond, "{version} {release}");
        }
        assert!(!Route::is_beyond_knowledge(Tls12, Release { major: 8, minor: 0 }));
    }

    #[test]
    fn an_obstacle_is_a_lack_before_all_others() {
        let obstacles = [
            Obstacle::BondMode { bond: "bond0".to_owned(), mode: "balance-rr".to_owned() },
            Obstacle::BondPolicy { bond: "bond0".to_owned(), policy: "layer2".to_owned() },
            Obstacle::NoBond { interface: "bond0".to_owned(), kind: "vlan".to_owned() },
        ];
        for (obstacle, label) in obstacles.into_iter().zip(["bond_mode", "bond_policy", "upper_device"]) {
            let mut bond = interface("bond0", NEVER, &["eth0"]);
            bond.beneath.obstacle = Some(obstacle);
            let [route] = &routes(&[bond, port("eth0", OFF)])[..] else { panic!("one route") };
            for combination in Combination::ALL {
                assert_eq!(route.never_takes(combination).unwrap().label(), label);
            }
        }
    }
}
