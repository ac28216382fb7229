//! What makes the records of a connection that was handed to the kernel, and what opens them: its own code, or an adapter.
//!
//! `TLS_TX` and `TLS_RX` succeed in either case and do not say which; where an adapter refuses, the kernel goes on in software.
//! What `ss --info` prints as `txconf` and `rxconf` does say it, for one socket: `sock_diag` with the socket's addresses and cookie
//! (`net/ipv4/inet_diag.c`, `tls_get_info` in `net/tls/tls_main.c`). Older kernels (6.1 and 6.12)
//! tell that only to a process with `CAP_NET_ADMIN`.

use crate::kernel_tls::{Carrier, Carriers};
use std::{io, os::fd::BorrowedFd};

/// What carries this socket's directions.
///
/// # Errors
/// The kernel's: it knows no such socket any more, or refuses netlink.
pub(super) fn of(socket: BorrowedFd<'_>) -> io::Result<Carriers> {
    use crate::linux::netlink;

    // SOCK_DIAG_BY_FAMILY of include/uapi/linux/sock_diag.h.
    const BY_FAMILY: u16 = 20;
    let answer = netlink::ask(Some(rustix::net::netlink::SOCK_DIAG), BY_FAMILY, &question(socket)?)?;
    Ok(parse(&answer).unwrap_or_default())
}

/// What the `tls` module says is in the answer only if TCP's own figures were asked for (`INET_DIAG_INFO`), as `ss --info` does.
const WITH_FIGURES_OF_TCP: u8 = 1 << (2 - 1);

/// `struct inet_diag_req_v2`: family, protocol, extensions, any state, and the socket.
fn question(socket: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    use rustix::net::{AddressFamily, getpeername, getsockname, ipproto, sockopt::socket_cookie};
    use std::net::{IpAddr, SocketAddr};

    let ours = SocketAddr::try_from(getsockname(socket)?)?;
    // A peer that is gone has no name any more.
    let theirs = getpeername(socket)?.map(SocketAddr::try_from).transpose()?;
    let theirs = theirs.ok_or(io::ErrorKind::NotConnected)?;
    let family = if ours.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut question = vec![family.as_raw() as u8, ipproto::TCP.as_raw().get() as u8, WITH_FIGURES_OF_TCP, 0];
    question.extend_from_slice(&u32::MAX.to_ne_bytes());
    for port in [ours.port(), theirs.port()] {
        question.extend_from_slice(&port.to_be_bytes());
    }
    for address in [ours.ip(), theirs.ip()] {
        let mut field = [0; 16];
        match address {
            IpAddr::V4(address) => field[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => field = address.octets(),
        }
        question.extend_from_slice(&field);
    }
    // Not bound to an interface; then the cookie, its lower half first.
    question.extend_from_slice(&[0; 4]);
    let cookie = socket_cookie(socket)?;
    for half in [cookie as u32, (cookie >> 32) as u32] {
        question.extend_from_slice(&half.to_ne_bytes());
    }
    Ok(question)
}

/// Finds what the `tls` module says in a `struct inet_diag_msg` and what follows it.
fn parse(answer: &[u8]) -> Option<Carriers> {
    use crate::linux::netlink::{attribute, short};

    const MESSAGE_BYTES: usize = 72;
    // INET_DIAG_ULP_INFO, INET_ULP_INFO_TLS; TLS_INFO_TXCONF, TLS_INFO_RXCONF, TLS_INFO_RX_NO_PAD.
    const ULP_INFO: u16 = 19;
    const TLS: u16 = 2;
    const SENDING: u16 = 3;
    const RECEIVING: u16 = 4;
    const NO_PADDING: u16 = 6;
    let protocol = attribute(answer.get(MESSAGE_BYTES..)?, ULP_INFO)?;
    let tls = attribute(protocol, TLS)?;
    let carrier = |direction| attribute(tls, direction).and_then(|value| short(value, 0)).and_then(of_number);
    Some(Carriers {
        sending: carrier(SENDING),
        receiving: carrier(RECEIVING),
        expects_no_padding: attribute(tls, NO_PADDING).is_some(),
    })
}

/// `TLS_CONF_SW`, `TLS_CONF_HW`.
fn of_number(number: u16) -> Option<Carrier> {
    const SOFTWARE: u16 = 2;
    const ADAPTER: u16 = 3;
    match number {
        SOFTWARE => Some(Carrier::Software),
        ADAPTER => Some(Carrier::Adapter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::netlink::push_attribute;
    use std::{net::TcpStream, os::fd::AsFd};

    #[test]
    fn the_carriers_are_told_by_txconf_and_rxconf() {
        let told = |sending: u16, receiving: u16, no_padding: bool| {
            let (mut tls, mut protocol, mut message) = (Vec::new(), Vec::new(), vec![0xEE; 72]);
            push_attribute(&mut tls, 1, &0x0304_u16.to_ne_bytes());
            push_attribute(&mut tls, 3, &sending.to_ne_bytes());
            push_attribute(&mut tls, 4, &receiving.to_ne_bytes());
            if no_padding {
                push_attribute(&mut tls, 6, &[]);
            }
            push_attribute(&mut protocol, 1, b"tls\0");
            push_attribute(&mut protocol, 0x8002, &tls);
            push_attribute(&mut message, 8, &[0]);
            push_attribute(&mut message, 0x8013, &protocol);
            (parse(&message).unwrap(), message)
        };
        let carriers =
            |sending, receiving, expects_no_padding| Carriers { sending, receiving, expects_no_padding };
        let (software, adapter) = (Some(Carrier::Software), Some(Carrier::Adapter));
        assert_eq!(told(2, 1, false).0, carriers(software, None, false));
        assert_eq!(told(3, 2, true).0, carriers(adapter, software, true));
        assert_eq!(told(1, 3, false).0, carriers(None, adapter, false));
        let whole = told(3, 2, true).1;
        for cut in 0..whole.len() - 2 {
            assert_ne!(parse(&whole[..cut]), parse(&whole), "{cut}");
        }
    }

    /// The kernel finds the socket that is asked for, of either family, and a plain one has no carrier.
    #[test]
    fn a_socket_is_found_by_its_addresses_and_cookie() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(address) else {
                eprintln!("SKIPPED a_socket_is_found_by_its_addresses_and_cookie: {address} cannot be had");
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            // A socket of the other family behind the one that takes both.
            let host = if address.starts_with("[::1]") { "::1" } else { "127.0.0.1" };
            let theirs = TcpStream::connect((host, port)).unwrap();
            let (ours, _) = listener.accept().unwrap();
            for socket in [&ours, &theirs] {
                match of(socket.as_fd()) {
                    Ok(carriers) => assert_eq!(carriers, Carriers::default()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        eprintln!(
                            "SKIPPED a_socket_is_found_by_its_addresses_and_cookie: this kernel has no inet_diag"
                        );
                        return;
                    }
                    Err(error) => panic!("{address}: {error}"),
                }
            }
        }
    }
}
