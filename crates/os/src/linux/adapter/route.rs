//! By which interface a connection leaves.

use std::{io, net::IpAddr, os::fd::AsFd};

/// The name of the interface by which the kernel sends from `local` to `peer`, by its routing table as it is now. Any
/// `socket` of this network namespace will do to ask for a name.
///
/// Rules that look at marks, users or ports may send a connection elsewhere: this is to be taken for what is likely.
///
/// # Errors
/// The kernel's: no route, or netlink is refused.
pub fn towards(socket: impl AsFd, local: IpAddr, peer: IpAddr) -> io::Result<String> {
    use crate::linux::netlink;
    use rustix::net::{AddressFamily, netdevice};

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
    Ok(netdevice::index_to_name(socket, interface)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_local_leaves_by_loopback() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let address: IpAddr = address.parse().unwrap();
            match towards(&socket, address, address) {
                Ok(interface) => assert_eq!(interface, "lo", "{address}"),
                Err(error) if address.is_ipv6() => {
                    eprintln!("SKIPPED what_is_local_leaves_by_loopback: {address}: {error}");
                }
                Err(error) => panic!("{address}: {error}"),
            }
        }
    }
}
