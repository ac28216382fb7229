//! What stands beneath an interface, and whether Linux hands connections down to it.
//!
//! When kernel TLS is switched on for a connection, the kernel looks for an adapter that can take it: the route's
//! interface, or, where that is a bond, the port that the bond names (`netdev_sk_get_lowest_dev`, net/core/dev.c). Bonds
//! are the only ones that name one (`ndo_sk_get_lower_dev`), and only where the connection alone decides the port
//! (`bond_sk_check`, drivers/net/bonding/bond_main.c). Everything else that stands upon others ends the search: VLANs,
//! bridges, teams. Seen so on Linux 6.1 and 7.3 with the software adapter (`tests/guest`, `upper_devices`).

use crate::adapter::{Beneath, Obstacle};
use std::{fs, io, path::Path};

/// Interfaces that stand upon others can do so in some layers (a VLAN on a bond): deeper than this nobody builds.
const LAYERS: usize = 8;
/// Bond modes that choose the port by a hash of the connection.
const MODES: [&str; 2] = ["balance-xor", "802.3ad"];
/// The one policy whose hash a socket tells all of.
const POLICY: &str = "layer3+4";

/// Looks beneath an interface of `folder` (`/sys/class/net`).
///
/// # Errors
/// Of reading the folder: there is no such interface, or no sysfs.
pub fn beneath(folder: &Path, interface: &str) -> io::Result<Beneath> {
    let (mut found, mut upper) = (Beneath::default(), vec![interface.to_owned()]);
    for _ in 0..LAYERS {
        let mut lower = Vec::new();
        for interface in upper {
            let below = directly_below(folder, &interface)?;
            if below.is_empty() {
                found.ports.push(interface);
                continue;
            }
            found.obstacle = found.obstacle.or_else(|| obstacle(folder, interface));
            lower.extend(below);
        }
        upper = lower;
        if upper.is_empty() {
            break;
        }
    }
    found.ports.sort();
    found.ports.dedup();
    found.port_of = bond_above(folder, interface);
    Ok(found)
}

/// What `lower_…` links name.
fn directly_below(folder: &Path, interface: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder.join(interface))? {
        let name = entry?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_prefix("lower_")).map(str::to_owned));
    }
    Ok(names)
}

/// What keeps connections from the interfaces directly beneath this one.
fn obstacle(folder: &Path, interface: String) -> Option<Obstacle> {
    // "balance-xor 2": the name, and the kernel's number.
    let setting = |name: &str| {
        let text = fs::read_to_string(folder.join(&interface).join("bonding").join(name)).ok()?;
        text.split_ascii_whitespace().next().map(str::to_owned)
    };
    let Some(mode) = setting("mode") else {
        let kind = fs::read_to_string(folder.join(&interface).join("uevent")).unwrap_or_default();
        let kind = kind.lines().find_map(|line| line.strip_prefix("DEVTYPE=")).unwrap_or_default().to_owned();
        return Some(Obstacle::NoBond { interface, kind });
    };
    if !MODES.contains(&mode.as_str()) {
        return Some(Obstacle::BondMode { bond: interface, mode });
    }
    let policy = setting("xmit_hash_policy").unwrap_or_default();
    (policy != POLICY).then_some(Obstacle::BondPolicy { bond: interface, policy })
}

/// The bond that an interface is a port of.
fn bond_above(folder: &Path, interface: &str) -> Option<String> {
    let folder = folder.join(interface);
    if !folder.join("bonding_slave").exists() {
        return None;
    }
    Some(fs::read_link(folder.join("master")).ok()?.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::fs::symlink, path::PathBuf};

    /// Files as sysfs has them. Taken away when dropped.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("linerate-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn stack(&self, interface: &str, lower: &[&str]) -> &Self {
            fs::create_dir_all(self.0.join(interface)).unwrap();
            for name in lower {
                fs::create_dir(self.0.join(interface).join(format!("lower_{name}"))).unwrap();
            }
            self
        }

        fn bond(&self, bond: &str, mode: &str, policy: &str, ports: &[&str]) -> &Self {
            self.stack(bond, ports);
            let settings = self.0.join(bond).join("bonding");
            fs::create_dir(&settings).unwrap();
            fs::write(settings.join("mode"), mode).unwrap();
            fs::write(settings.join("xmit_hash_policy"), policy).unwrap();
            for port in ports {
                self.stack(port, &[]);
                fs::create_dir(self.0.join(port).join("bonding_slave")).unwrap();
                symlink(format!("../{bond}"), self.0.join(port).join("master")).unwrap();
            }
            self
        }

        fn kind(&self, interface: &str, kind: &str) -> &Self {
            fs::write(self.0.join(interface).join("uevent"), format!("DEVTYPE={kind}\nIFINDEX=5\n")).unwrap();
            self
        }

        #[track_caller]
        fn beneath(&self, interface: &str) -> Beneath {
            beneath(&self.0, interface).unwrap()
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn bonds_and_vlans_resolve_to_their_ports() {
        let tree = Tree::new("ports");
        tree.stack("vlan7", &["bond0"]).bond("bond0", "802.3ad 4\n", "layer3+4 1\n", &["eth1", "eth0"]);
        // No kernel makes this; it must not be followed for ever all the same.
        tree.stack("odd", &["odd"]);
        assert_eq!(tree.beneath("eth0").ports, ["eth0"]);
        assert_eq!(tree.beneath("vlan7").ports, ["eth0", "eth1"]);
        assert_eq!(tree.beneath("odd").ports, [""; 0]);
        assert_eq!(tree.beneath("eth1").port_of.as_deref(), Some("bond0"));
        assert_eq!(tree.beneath("bond0").port_of, None);
        assert_eq!(beneath(&tree.0, "none").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// `bond_sk_check`, case by case.
    #[test]
    fn linux_looks_beneath_bonds_that_choose_by_the_connection() {
        let tree = Tree::new("obstacles");
        for (bond, mode, policy, fits) in [
            ("bond0", "balance-xor 2\n", "layer3+4 1\n", Ok(())),
            ("bond1", "802.3ad 4\n", "layer3+4 1\n", Ok(())),
            ("bond2", "802.3ad 4\n", "layer2 0\n", Err("policy")),
            ("bond3", "balance-xor 2\n", "encap3+4 4\n", Err("policy")),
            ("bond4", "active-backup 1\n", "layer3+4 1\n", Err("mode")),
            ("bond5", "balance-rr 0\n", "layer2 0\n", Err("mode")),
            ("bond6", "balance-tlb 5\n", "layer3+4 1\n", Err("mode")),
        ] {
            tree.bond(bond, mode, policy, &[&format!("{bond}p0"), &format!("{bond}p1")]);
            let expected = match fits {
                Ok(()) => None,
                Err("mode") => Some(Obstacle::BondMode {
                    bond: bond.to_owned(),
                    mode: mode.split(' ').next().unwrap().to_owned(),
                }),
                Err(_) => Some(Obstacle::BondPolicy {
                    bond: bond.to_owned(),
                    policy: policy.split(' ').next().unwrap().to_owned(),
                }),
            };
            assert_eq!(tree.beneath(bond).obstacle, expected, "{mode} {policy}");
        }
    }

    #[test]
    fn linux_looks_beneath_nothing_else() {
        let tree = Tree::new("no-bonds");
        tree.bond("bond0", "802.3ad 4\n", "layer2 0\n", &["eth0", "eth1"]);
        tree.stack("bond0.7", &["bond0"]).kind("bond0.7", "vlan");
        tree.stack("br0", &["eth0"]).kind("br0", "bridge").stack("team0", &["eth0"]);
        let obstacle = |interface: &str| match tree.beneath(interface).obstacle {
            Some(Obstacle::NoBond { interface, kind }) => (interface, kind),
            other => panic!("{interface}: {other:?}"),
        };
        // The one above comes first, whatever is wrong with the bond.
        assert_eq!(obstacle("bond0.7"), ("bond0.7".to_owned(), "vlan".to_owned()));
        assert_eq!(obstacle("br0"), ("br0".to_owned(), "bridge".to_owned()));
        assert_eq!(obstacle("team0"), ("team0".to_owned(), String::new()));
        assert_eq!(tree.beneath("eth0").obstacle, None);
    }
}
