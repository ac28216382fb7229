//! Where connections are taken: `https://`, `http://` and `redirect://` listeners, and the admin address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::choice::{choose, shortened};
use crate::{Error, Origin};

/// What a listener does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// Serves over TLS.
    Tls,
    /// Serves in the clear.
    Plaintext,
    /// Answers in the clear with a redirect to the same place on the first TLS listener's port.
    Redirect,
    /// Serves NFS; with TLS if the client asks for it in the clear (RFC 9289).
    Nfs,
}

impl ListenerKind {
    /// The scheme that names it in the configuration.
    #[must_use]
    pub fn scheme(self) -> &'static str {
        match self {
            ListenerKind::Tls => "https",
            ListenerKind::Plaintext => "http",
            ListenerKind::Redirect => "redirect",
            ListenerKind::Nfs => "nfs",
        }
    }
}

/// One socket to listen on.
///
/// Each listener is of its own family only (`IPV6_V6ONLY`), so that `0.0.0.0:443` and `[::]:443` stand side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Address and port; port 0 takes any free one.
    pub address: SocketAddr,
    /// What is done with a connection.
    pub kind: ListenerKind,
    /// False for the IPv6 half of `*:PORT` and `localhost:PORT`: a machine without IPv6 goes on without it.
    pub required: bool,
    /// Where it was said.
    pub origin: Origin,
}

impl fmt::Display for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.kind.scheme(), self.address)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    /// `*`: every address of both families.
    Any,
    /// `localhost`: the loopback addresses of both families.
    Localhost,
    /// One address.
    Address(SocketAddr),
}

/// A listener as it is written: `[https://|http://|redirect://|nfs://]HOST:PORT`, HOST an IP address, `localhost` or `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    kind: ListenerKind,
    host: Host,
    port: u16,
}

impl ListenAddress {
    /// `localhost:PORT` over TLS.
    pub(crate) fn localhost(port: u16) -> Self {
        ListenAddress { kind: ListenerKind::Tls, host: Host::Localhost, port }
    }

    /// `*:PORT` over TLS.
    pub(crate) fn any(port: u16) -> Self {
        ListenAddress { kind: ListenerKind::Tls, host: Host::Any, port }
    }

    /// The same for NFS, if no scheme says otherwise.
    #[must_use]
    pub fn for_nfs(self) -> Self {
        ListenAddress {
            kind: if self.kind == ListenerKind::Tls { ListenerKind::Nfs } else { self.kind },
            ..self
        }
    }

    /// The sockets it stands for: two for `*` and `localhost`, else one.
    #[must_use]
    pub fn listeners(self, origin: &Origin) -> Vec<Listener> {
        let of = |address: SocketAddr, required: bool| Listener {
            address,
            kind: self.kind,
            required,
            origin: origin.clone(),
        };
        let both = |version4: Ipv4Addr, version6: Ipv6Addr| {
            vec![of((version4, self.port).into(), true), of((version6, self.port).into(), false)]
        };
        match self.host {
            Host::Any => both(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED),
            Host::Localhost => both(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST),
            Host::Address(address) => vec![of(address, true)],
        }
    }
}

impl FromStr for ListenAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        const SCHEMES: [(&str, ListenerKind); 4] = [
            ("https", ListenerKind::Tls),
            ("http", ListenerKind::Plaintext),
            ("redirect", ListenerKind::Redirect),
            ("nfs", ListenerKind::Nfs),
        ];
        let (kind, address) = match text.split_once("://") {
            Some((scheme, address)) => (choose("scheme", scheme, &SCHEMES, "")?, address),
            None => (ListenerKind::Tls, text),
        };
        let (host, port) = parse_host_port(address).ok_or_else(|| {
            let hint = address_hint(address);
            Error::value(format!(
                "\"{}\" is no address to listen on{hint}: write HOST:PORT, HOST being an IP address ([..] around IPv6), \
                 localhost or *; http:// or redirect:// in front for plaintext, nfs:// for NFS",
                shortened(text)
            ))
        })?;
        Ok(ListenAddress { kind, host, port })
    }
}

fn parse_host_port(address: &str) -> Option<(Host, u16)> {
    if let Ok(address) = address.parse::<SocketAddr>() {
        return Some((Host::Address(address), address.port()));
    }
    let (host, port) = address.split_once(':')?;
    let host = match host {
        "*" => Host::Any,
        "localhost" => Host::Localhost,
        _ => return None,
    };
    Some((host, parse_port(port)?))
}

/// Plain digits: `str::parse` would also take a sign.
fn parse_port(digits: &str) -> Option<u16> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Whether what stands behind the last colon, or all of it, is a number that no port has.
fn has_port_out_of_range(address: &str) -> bool {
    let digits = address.rsplit(':').next().unwrap_or(address);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && parse_port(digits).is_none()
}

/// The commonest slips, named.
fn address_hint(address: &str) -> &'static str {
    if address.parse::<Ipv6Addr>().is_ok() {
        " (IPv6 addresses need brackets and a port)"
    } else if has_port_out_of_range(address) {
        " (the port is out of range: 0 to 65535 are possible)"
    } else if parse_port(address.trim_start_matches(':')).is_some() {
        " (the host is missing)"
    } else if address.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
        || ["*", "localhost"].contains(&address)
    {
        " (the port is missing)"
    } else if address.ends_with('/') {
        " (nothing may follow the port)"
    } else {
        match address.rsplit_once(':') {
            Some((_, port)) if parse_port(port).is_none() => " (the port is no number)",
            Some((host, _)) if host.contains(char::is_alphabetic) && !host.contains([':', '[', '/']) => {
                " (names other than localhost are not looked up)"
            }
            _ => "",
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.kind.scheme();
        match self.host {
            Host::Any => write!(formatter, "{scheme}://*:{}", self.port),
            Host::Localhost => write!(formatter, "{scheme}://localhost:{}", self.port),
            Host::Address(address) => write!(formatter, "{scheme}://{address}"),
        }
    }
}

/// The admin listener's address as it is written: `PORT` (on 127.0.0.1), `localhost:PORT` or `ADDRESS:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminAddress(pub SocketAddr);

impl FromStr for AdminAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(port) = parse_port(text.strip_prefix("localhost:").unwrap_or(text)) {
            return Ok(AdminAddress((Ipv4Addr::LOCALHOST, port).into()));
        }
        text.parse().map(AdminAddress).map_err(|_| {
            let hint = if has_port_out_of_range(text) { address_hint(text) } else { "" };
            let text = shortened(text);
            Error::value(format!(
                "\"{text}\" is no admin address{hint}: write PORT (on 127.0.0.1) or ADDRESS:PORT"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(text: &str) -> Vec<String> {
        let address: ListenAddress = text.parse().unwrap();
        assert_eq!(address.to_string().parse::<ListenAddress>().unwrap(), address);
        address
            .listeners(&Origin::Default)
            .iter()
            .map(|listener| format!("{listener}{}", if listener.required { "" } else { "?" }))
            .collect()
    }

    #[test]
    fn addresses_become_sockets() {
        assert_eq!(sockets("0.0.0.0:443"), ["https://0.0.0.0:443"]);
        assert_eq!(sockets("https://[::]:443"), ["https://[::]:443"]);
        assert_eq!(sockets("http://127.0.0.1:0"), ["http://127.0.0.1:0"]);
        assert_eq!(sockets("redirect://*:80"), ["redirect://0.0.0.0:80", "redirect://[::]:80?"]);
        assert_eq!(sockets("localhost:8443"), ["https://127.0.0.1:8443", "https://[::1]:8443?"]);
    }

    #[test]
    fn slips_are_named() {
        for (text, words) in [
            ("8443", "(the host is missing)"),
            (":8443", "(the host is missing)"),
            ("127.0.0.1", "(the port is missing)"),
            ("[::1]", "(the port is missing)"),
            ("*", "(the port is missing)"),
            ("::1", "(IPv6 addresses need brackets and a port)"),
            ("http://*:80/", "(nothing may follow the port)"),
            ("example.org:443", "\"example.org:443\" is no address"),
            ("*:65536", "(the port is out of range: 0 to 65535 are possible)"),
            ("[::1]:99999999999999999999", "(the port is out of range"),
            ("65536", "(the port is out of range"),
            ("*:+1", "\"*:+1\" is no address"),
            ("", "\"\" is no address"),
            ("htps://*:443", "did you mean \"https\"?"),
        ] {
            let message = text.parse::<ListenAddress>().unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
    }

    #[test]
    fn the_admin_listener_stays_on_loopback_unless_told() {
        for (text, address) in [
            ("9443", "127.0.0.1:9443"),
            ("localhost:9443", "127.0.0.1:9443"),
            ("0.0.0.0:9443", "0.0.0.0:9443"),
            ("[::1]:9443", "[::1]:9443"),
        ] {
            assert_eq!(text.parse::<AdminAddress>().unwrap().0.to_string(), address);
        }
        for text in ["", "localhost", "example.org:9443", "-1"] {
            assert!(text.parse::<AdminAddress>().is_err(), "{text:?}");
        }
        for text in ["65536", "0.0.0.0:65536"] {
            let message = text.parse::<AdminAddress>().unwrap_err().to_string();
            assert!(message.contains("the port is out of range"), "{text}: {message}");
        }
    }
}
