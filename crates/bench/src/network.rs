//! Where server and client meet: this machine's own network, a loopback or a veth pair in network namespaces, or the
//! software adapter of a guest; and by which congestion control and queue discipline the server's end sends.
//!
//! Both ends of a veth pair get a namespace of their own, so that neither the machine's addresses nor its firewall have a
//! say. A namespace has its own `net.ipv4.tcp_congestion_control`: the machine's stays as it is. Namespaces are removed
//! with the [`Network`], and those that a killed run left behind when the next one begins.

mod esp;
mod namespace;
mod sending;

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};
use crate::result::NetworkUsed;
pub use esp::Esp;
use namespace::{Namespace, run_ip};
pub use sending::Sending;

/// The server's address on a veth pair and on the software adapter.
pub const VETH_SERVER: Ipv4Addr = Ipv4Addr::new(10, 213, 77, 1);
/// The client's.
pub const VETH_CLIENT: Ipv4Addr = Ipv4Addr::new(10, 213, 77, 2);
/// The software adapter's port at the server's end.
pub const ADAPTER: &str = "lrnic0";
/// The port of a veth pair, at either end.
const VETH: &str = "veth0";
/// The MTU of a veth pair, in bytes, unless another is asked for.
const VETH_MTU_BYTES: u32 = 1500;
/// Those that IPv4 has room for.
const MTUS_BYTES: std::ops::RangeInclusive<u32> = 68..=65_535;

/// Which network a load goes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkKind {
    /// The machine's own: the address that servers were told to listen on.
    #[default]
    Host,
    /// A loopback in a namespace of its own.
    Loopback,
    /// A veth pair between two namespaces.
    Veth {
        /// Of both ends, in bytes.
        mtu_bytes: u32,
    },
}

impl NetworkKind {
    /// A veth pair with Ethernet's MTU.
    pub const VETH: Self = Self::Veth { mtu_bytes: VETH_MTU_BYTES };

    /// From the word of an experiment: `host`, `loopback`, `veth`, `veth-9000`. Nothing where it is none of these.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "host" => Some(Self::Host),
            "loopback" => Some(Self::Loopback),
            "veth" => Some(Self::VETH),
            _ => {
                let mtu_bytes = word.strip_prefix("veth-")?.parse().ok()?;
                MTUS_BYTES.contains(&mtu_bytes).then_some(Self::Veth { mtu_bytes })
            }
        }
    }
}

/// A network that is up; dropped, it is taken down.
#[derive(Debug)]
pub struct Network {
    path: NetworkPath,
}

#[derive(Debug)]
enum NetworkPath {
    Host { address: IpAddr, interface: Option<String> },
    Loopback(Namespace),
    Veth { server: Namespace, client: Namespace, mtu_bytes: u32, esp: Option<Esp> },
    Adapter { client: Namespace },
}

impl Network {
    /// The machine's own network, with servers at `address`. `interface` is the one whose counters show the load; without
    /// it, the one that has the address.
    #[must_use]
    pub fn host(address: IpAddr, interface: Option<String>) -> Self {
        let interface = interface.or_else(|| interface_of(address));
        Self { path: NetworkPath::Host { address, interface } }
    }

    /// A loopback in a namespace of its own, whose sockets send as `sending` says.
    ///
    /// # Errors
    /// [`Error::Machine`], with what it takes.
    pub fn loopback(sending: Option<&Sending>) -> Result<Self> {
        let namespace = Namespace::make("loopback")?;
        namespace.ip(&["link", "set", "lo", "up"])?;
        if let Some(sending) = sending {
            sending.apply(&namespace, "lo")?;
        }
        Ok(Self { path: NetworkPath::Loopback(namespace) })
    }

    /// A veth pair between two namespaces, both of whose ends send as `sending` says; what goes between them is sealed by the
    /// kernel's ESP where that is asked for.
    ///
    /// # Errors
    /// [`Error::Machine`], with what it takes.
    pub fn veth(sending: Option<&Sending>, mtu_bytes: u32, esp: Option<Esp>) -> Result<Self> {
        let mtu = mtu_bytes.to_string();
        let (server, client) = (Namespace::make("server")?, Namespace::make("client")?);
        let pair = ["link", "add", VETH, "netns", server.name(), "mtu", &mtu, "type", "veth"];
        let peer = ["peer", "name", VETH, "mtu", &mtu, "netns", client.name()];
        run_ip(&[pair.as_slice(), peer.as_slice()].concat())?;
        for (namespace, address) in [(&server, VETH_SERVER), (&client, VETH_CLIENT)] {
            namespace.bring_up(VETH, address)?;
            if let Some(sending) = sending {
                sending.apply(namespace, VETH)?;
            }
        }
        if let Some(esp) = esp {
            esp.apply(&server, VETH_SERVER, &client, VETH_CLIENT)?;
        }
        Ok(Self { path: NetworkPath::Veth { server, client, mtu_bytes, esp } })
    }

    /// Loads the software adapter with these parameters, and has its far end be the client's. The module stays until the
    /// guest ends.
    ///
    /// # Errors
    /// [`Error::Machine`], with the command that failed.
    pub fn through_adapter(module: &Path, parameters: &[String]) -> Result<Self> {
        let failed = |said: String| Error::Machine(format!("insmod {}: {said}", module.display()));
        let loaded = Command::new("insmod").arg(module).args(parameters).output();
        let loaded = loaded.map_err(|error| failed(error.to_string()))?;
        if !loaded.status.success() {
            return Err(failed(String::from_utf8_lossy(&loaded.stderr).trim().to_owned()));
        }
        let client = Namespace::make("client")?;
        run_ip(&["link", "set", "lrnic1", "netns", client.name()])?;
        run_ip(&["address", "add", &format!("{VETH_SERVER}/30"), "dev", ADAPTER])?;
        run_ip(&["link", "set", ADAPTER, "up"])?;
        client.bring_up("lrnic1", VETH_CLIENT)?;
        Ok(Self { path: NetworkPath::Adapter { client } })
    }

    /// Where servers listen.
    #[must_use]
    pub fn server_address(&self) -> IpAddr {
        match &self.path {
            NetworkPath::Host { address, .. } => *address,
            NetworkPath::Loopback(_) => Ipv4Addr::LOCALHOST.into(),
            NetworkPath::Veth { .. } | NetworkPath::Adapter { .. } => VETH_SERVER.into(),
        }
    }

    /// The interface whose counters show the load, as the server's process sees it.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        match &self.path {
            NetworkPath::Host { interface, .. } => interface.as_deref(),
            NetworkPath::Loopback(_) => Some("lo"),
            NetworkPath::Veth { .. } => Some(VETH),
            NetworkPath::Adapter { .. } => Some(ADAPTER),
        }
    }

    /// Whether an address that is free on this machine is free at the server's end, too.
    pub(crate) fn shares_ports(&self) -> bool {
        matches!(self.path, NetworkPath::Host { .. } | NetworkPath::Adapter { .. })
    }

    /// `command` as it is run at the server's end.
    #[must_use]
    pub fn at_server(&self, command: Vec<String>) -> Vec<String> {
        match &self.path {
            NetworkPath::Host { .. } | NetworkPath::Adapter { .. } => command,
            NetworkPath::Loopback(namespace) | NetworkPath::Veth { server: namespace, .. } => {
                namespace.around(command)
            }
        }
    }

    /// `command` as it is run at the client's end.
    #[must_use]
    pub fn at_client(&self, command: Vec<String>) -> Vec<String> {
        match &self.path {
            NetworkPath::Host { .. } => command,
            NetworkPath::Loopback(namespace)
            | NetworkPath::Veth { client: namespace, .. }
            | NetworkPath::Adapter { client: namespace } => namespace.around(command),
        }
    }

    /// A command that runs `program` at the client's end.
    #[must_use]
    pub fn client_command(&self, program: impl AsRef<OsStr>) -> Command {
        let words = self.at_client(vec![program.as_ref().to_string_lossy().into_owned()]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// What it is, and how its server's end sends, as the kernel says it now.
    #[must_use]
    pub fn used(&self) -> NetworkUsed {
        let path = match &self.path {
            NetworkPath::Host { address, .. } if address.is_loopback() => "loopback".to_owned(),
            NetworkPath::Host { address, interface: Some(interface) } => format!("{address} on {interface}"),
            NetworkPath::Host { address, interface: None } => address.to_string(),
            NetworkPath::Loopback(_) => "loopback in a namespace".to_owned(),
            NetworkPath::Veth { mtu_bytes, esp, .. } => {
                let sealed = esp.map(|esp| format!(", {esp}")).unwrap_or_default();
                format!("veth pair between namespaces, MTU {mtu_bytes}{sealed}")
            }
            NetworkPath::Adapter { .. } => "software adapter, its far end in a namespace".to_owned(),
        };
        let words = |command: &[&str]| self.at_server(command.iter().map(ToString::to_string).collect());
        NetworkUsed {
            path,
            congestion_control: sending::congestion_control_in(&words(&["cat", sending::CONGESTION_CONTROL])),
            queue_discipline: match self.interface() {
                Some(interface) => {
                    sending::queue_discipline_in(&words(&["tc", "qdisc", "show", "dev", interface]))
                }
                None => crate::result::Reading::NotAvailable("the interface is not known".to_owned()),
            },
        }
    }
}

/// The interface that has the address.
fn interface_of(address: IpAddr) -> Option<String> {
    if address.is_loopback() {
        return Some("lo".to_owned());
    }
    let output = Command::new("ip").args(["-oneline", "address"]).output().ok()?;
    interface_in(&String::from_utf8_lossy(&output.stdout), address)
}

/// `2: eth0    inet 192.0.2.7/24 brd ...`
fn interface_in(text: &str, address: IpAddr) -> Option<String> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (name, _family, network) = (words.next()?, words.next()?, words.next()?);
        let has_it = network.split('/').next()?.parse::<IpAddr>().ok()? == address;
        has_it.then(|| name.split('@').next().unwrap_or(name).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_its_word() {
        for (word, kind) in [
            ("host", NetworkKind::Host),
            ("loopback", NetworkKind::Loopback),
            ("veth", NetworkKind::Veth { mtu_bytes: 1500 }),
            ("veth-9000", NetworkKind::Veth { mtu_bytes: 9000 }),
        ] {
            assert_eq!(NetworkKind::parse(word), Some(kind));
        }
        for word in ["", "vet", "veth-", "veth-67", "veth-65536", "veth-x"] {
            assert_eq!(NetworkKind::parse(word), None, "{word}");
        }
    }

    #[test]
    fn the_interface_is_the_one_with_the_address() {
        let text = "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n\
                    2: eth0    inet 192.0.2.7/24 brd 192.0.2.255 scope global eth0\n\
                    5: veth1@if4    inet6 2001:db8::7/64 scope global\n";
        assert_eq!(interface_in(text, "192.0.2.7".parse().unwrap()).as_deref(), Some("eth0"));
        assert_eq!(interface_in(text, "2001:db8::7".parse().unwrap()).as_deref(), Some("veth1"));
        assert_eq!(interface_in(text, "192.0.2.8".parse().unwrap()), None);
    }

    /// What a namespace may not choose is chosen all the same, and the machine's settings are what they were.
    #[test]
    fn a_namespace_sends_as_it_is_told() {
        let setting = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        let machine = || {
            // Other tests may be choosing.
            let _alone = sending::lock_allowed().unwrap();
            ["tcp_congestion_control", "tcp_allowed_congestion_control"].map(setting)
        };
        let before = machine();
        for control in setting("tcp_available_congestion_control").split_ascii_whitespace() {
            let sending = Sending { congestion_control: control.to_owned(), queue_discipline: None };
            let veth = |sending| Network::veth(sending, VETH_MTU_BYTES, None);
            for made in [Network::loopback(Some(&sending)), veth(Some(&sending))] {
                let network = match made {
                    Ok(network) => network,
                    Err(reason) => {
                        eprintln!("SKIPPED: a_namespace_sends_as_it_is_told: {reason}");
                        return;
                    }
                };
                assert_eq!(
                    network.used().congestion_control,
                    crate::result::Reading::Value(control.to_owned())
                );
                let mut echo = network.client_command("cat");
                let said = echo.arg(sending::CONGESTION_CONTROL).output().unwrap();
                assert_eq!(String::from_utf8(said.stdout).unwrap().trim(), control);
            }
        }
        assert_eq!(machine(), before);
        let unknown = Sending { congestion_control: "nonesuch".to_owned(), queue_discipline: None };
        let error = Network::loopback(Some(&unknown)).unwrap_err().to_string();
        assert!(error.contains("no congestion control nonesuch (it has: "), "{error}");
    }
}
