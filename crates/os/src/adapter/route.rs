//! By which interface a connection leaves, and which adapters stand behind it.

use std::{fs, io, net::IpAddr, path::Path};

/// Interfaces that stand upon others can do so in some layers (a VLAN on a bond): deeper than this nobody builds.
const LAYERS: usize = 8;

/// The name of the interface by which the kernel sends from `local` to `peer`, by its routing table as it is now.
///
/// Rules that look at marks, users or ports may send a connection elsewhere: this is to be taken for what is likely.
///
/// # Errors
/// The kernel's: no route, or netlink is refused. [`io::ErrorKind::Unsupported`] outside Linux.
#[cfg(target_os = "linux")]
pub fn towards(local: IpAddr, peer: IpAddr) -> io::Result<String> {
    use crate::netlink;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

    // RTM_GETROUTE, RTA_DST, RTA_SRC and RTA_OIF of include/uapi/linux/rtnetlink.h.
    const GET_ROUTE: u16 = 26;
    const DESTINATION: u16 = 1;
    const SOURCE: u16 = 2;
    const INTERFACE: u16 = 4;
    /// `struct rtmsg`.
    const MESSAGE_BYTES: usize = 12;

    let (local, peer) = (local.to_canonical(), peer.to_canonical());
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let (family, bits) = if peer.is_ipv4() { (AddressFamily::INET, 32) } else { (AddressFamily::INET6, 128) };
    let mut question = vec![0; MESSAGE_BYTES];
    question[..3].copy_from_slice(&[family.as_raw() as u8, bits, bits]);
    netlink::push_attribute(&mut question, DESTINATION, &octets(peer));
    netlink::push_attribute(&mut question, SOURCE, &octets(local));
    let answer = netlink::ask(None, GET_ROUTE, &question)?;
    let interface = answer
        .get(MESSAGE_BYTES..)
        .and_then(|attributes| netlink::attribute(attributes, INTERFACE))
        .and_then(|value| netlink::number(value, 0))
        .ok_or(io::ErrorKind::InvalidData)?;
    // Any socket of this network namespace will do to ask for a name.
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(netdevice::index_to_name(socket, interface)?)
}

/// Refuses.
///
/// # Errors
/// Always: [`io::ErrorKind::Unsupported`].
#[cfg(not(target_os = "linux"))]
pub fn towards(_local: IpAddr, _peer: IpAddr) -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The interfaces that carry what is sent by this one: the ports of a bond or team, the interface below a VLAN, and so on
/// down; for one that stands upon nothing, itself. Sorted by name.
///
/// # Errors
/// Of reading `/sys/class/net`: there is no such interface, or no sysfs.
pub fn ports(interface: &str) -> io::Result<Vec<String>> {
    ports_below(Path::new("/sys/class/net"), interface)
}

fn ports_below(folder: &Path, interface: &str) -> io::Result<Vec<String>> {
    let (mut ports, mut upper) = (Vec::new(), vec![interface.to_owned()]);
    for _ in 0..LAYERS {
        let mut lower = Vec::new();
        for interface in upper {
            let below = directly_below(folder, &interface)?;
            if below.is_empty() { ports.push(interface) } else { lower.extend(below) }
        }
        upper = lower;
        if upper.is_empty() {
            break;
        }
    }
    ports.sort();
    ports.dedup();
    Ok(ports)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_and_vlans_resolve_to_their_ports() {
        let folder = std::env::temp_dir().join(format!("linerate-ports-{}", std::process::id()));
        let stack = |interface: &str, lower: &[&str]| {
            fs::create_dir_all(folder.join(interface)).unwrap();
            for name in lower {
                fs::create_dir(folder.join(interface).join(format!("lower_{name}"))).unwrap();
            }
        };
        stack("vlan7", &["bond0"]);
        stack("bond0", &["eth1", "eth0"]);
        stack("eth0", &[]);
        stack("eth1", &[]);
        // No kernel makes this; it must not be followed for ever all the same.
        stack("odd", &["odd"]);
        let ports = |interface| ports_below(&folder, interface);
        assert_eq!(ports("eth0").unwrap(), ["eth0"]);
        assert_eq!(ports("vlan7").unwrap(), ["eth0", "eth1"]);
        assert_eq!(ports("odd").unwrap(), [""; 0]);
        assert_eq!(ports("none").unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_local_leaves_by_loopback() {
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let address: IpAddr = address.parse().unwrap();
            match towards(address, address) {
                Ok(interface) => assert_eq!(interface, "lo", "{address}"),
                Err(error) if address.is_ipv6() => {
                    eprintln!("SKIPPED what_is_local_leaves_by_loopback: {address}: {error}");
                }
                Err(error) => panic!("{address}: {error}"),
            }
        }
    }
}
