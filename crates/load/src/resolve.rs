//! From a host name to the one address that a run talks to, and local addresses for more connections than one has ports.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs},
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use linerate_os::socket::{self, Socket, SocketShape};

use crate::LoadError;

/// How long each address of a name that has several is tried.
const TRIAL: Duration = Duration::from_secs(3);

/// The address for a host. Of a name with several addresses (localhost is often ::1 first, where few servers listen) the
/// first that takes a connection; that connection is closed again.
///
/// # Errors
/// [`LoadError::Unresolved`].
pub(crate) fn address(host: &str, port: u16) -> Result<SocketAddr, LoadError> {
    let unresolved = |reason: String| LoadError::Unresolved { host: host.to_owned(), reason };
    let addresses: Vec<SocketAddr> =
        (host, port).to_socket_addrs().map_err(|error| unresolved(error.to_string()))?.collect();
    match addresses.as_slice() {
        [] => Err(unresolved("the resolver knows none".to_owned())),
        [only] => Ok(*only),
        [first, ..] => Ok(addresses
            .iter()
            .copied()
            .find(|address| TcpStream::connect_timeout(address, TRIAL).is_ok())
            .unwrap_or(*first)),
    }
}

/// The local address that connections leave from: the kernel's choice, until its ports have run out. A server on
/// 127.0.0.0/8 is then approached from 127.0.0.2, 127.0.0.3 and so on, which have ports of their own.
#[derive(Debug, Default)]
pub(crate) struct LocalAddresses {
    /// The last byte of the address; 0 stands for the kernel's choice.
    last_byte: AtomicU8,
}

impl LocalAddresses {
    /// Begins to connect.
    ///
    /// # Errors
    /// The kernel's: [`io::ErrorKind::AddrNotAvailable`] when all ports of all addresses are taken.
    pub(crate) fn connect(&self, address: SocketAddr, shape: SocketShape) -> io::Result<Socket> {
        let is_loopback = matches!(address.ip(), IpAddr::V4(ip) if ip.is_loopback());
        loop {
            let last_byte = self.last_byte.load(Ordering::Relaxed);
            let source = (last_byte > 0).then(|| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last_byte)));
            match socket::connect(address, source.filter(|_| is_loopback), shape) {
                // Binding finds no port as EADDRINUSE, connecting as EADDRNOTAVAIL.
                Err(error)
                    if is_loopback
                        && last_byte < 254
                        && [io::ErrorKind::AddrNotAvailable, io::ErrorKind::AddrInUse]
                            .contains(&error.kind()) =>
                {
                    let next = last_byte.max(1) + 1;
                    // Another thread may have gone on already.
                    let _ = self.last_byte.compare_exchange(
                        last_byte,
                        next,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    return Err(io::ErrorKind::AddrNotAvailable.into());
                }
                other => return other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_they_are_and_names_tried() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(address("127.0.0.1", port).unwrap(), listener.local_addr().unwrap());
        // ::1, where localhost has it, does not listen.
        assert_eq!(address("localhost", port).unwrap(), listener.local_addr().unwrap());
        assert!(matches!(address("no.such.host.invalid", 1), Err(LoadError::Unresolved { .. })));
    }
}
