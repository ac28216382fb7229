//! From the listener's name to a connection.

use crate::StreamError;
use std::{
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

/// How long each address of the name is tried.
const TRIAL: Duration = Duration::from_secs(5);

/// The host as an address or name that can be resolved: brackets around IPv6 are taken off.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Connects to the first address of the name that takes the connection.
///
/// # Errors
/// [`StreamError::Unresolved`], [`StreamError::Unreachable`].
pub(crate) fn connect(host: &str, port: u16) -> Result<TcpStream, StreamError> {
    let unresolved = |reason: String| StreamError::Unresolved { host: host.to_owned(), reason };
    let addresses = (bare(host), port).to_socket_addrs().map_err(|error| unresolved(error.to_string()))?;
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, TRIAL) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = Some((address, error)),
        }
    }
    let (address, error) = last.ok_or_else(|| unresolved("the resolver knows none".to_owned()))?;
    Err(StreamError::Unreachable { listener: address.to_string(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_lead_to_a_listener() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "localhost"] {
            assert_eq!(connect(host, port).unwrap().peer_addr().unwrap(), listener.local_addr().unwrap());
        }
        drop(listener);
        assert!(matches!(connect("127.0.0.1", port), Err(StreamError::Unreachable { .. })));
        assert!(matches!(connect("no.such.host.invalid", port), Err(StreamError::Unresolved { .. })));
        assert_eq!(bare("[::1]"), "::1");
    }
}
