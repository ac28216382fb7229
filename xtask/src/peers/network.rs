//! Where client and server meet: loopback, a veth pair between two network namespaces, or the software adapter.
//!
//! Both ends of the pair get a namespace of their own, so that neither the machine's addresses nor its firewall
//! have a say. The namespaces are removed at the end, and leftovers of a killed run at the next start.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Serialize;

/// The server's address on the veth pair.
pub(crate) const VETH_SERVER: Ipv4Addr = Ipv4Addr::new(10, 213, 77, 1);
/// The client's.
pub(crate) const VETH_CLIENT: Ipv4Addr = Ipv4Addr::new(10, 213, 77, 2);
/// The software adapter's port at the server's end.
pub(crate) const ADAPTER: &str = "lrnic0";
const SERVER_NAMESPACE: &str = "linerate-peers-server";
const CLIENT_NAMESPACE: &str = "linerate-peers-client";

/// Which network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Network {
    /// 127.0.0.1.
    Loopback,
    /// A veth pair, MTU 1500.
    Veth,
    /// The software adapter (nic/README.md), its far end in a namespace of its own. In a guest only.
    Adapter,
}

impl Network {
    /// As the report names it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Veth => "veth pair between namespaces, MTU 1500",
            Self::Adapter => "software adapter, its far end in a namespace",
        }
    }
}

/// A network that is up; dropped, it is taken down.
#[derive(Debug)]
pub(crate) struct Link {
    network: Network,
}

impl Link {
    /// Brings the network up.
    pub(crate) fn up(network: Network) -> Result<Self> {
        if network == Network::Veth {
            if !rustix::process::geteuid().is_root() {
                bail!("--network veth makes network namespaces, which only root may do");
            }
            remove_namespaces();
            // Made before the first command, so that a failure half-way is cleaned up as well.
            let link = Self { network };
            make_veth().context("cannot make the veth pair (is iproute2 installed?)")?;
            return Ok(link);
        }
        Ok(Self { network })
    }

    /// Loads the software adapter with these parameters, and has its far end be the client's. It stays until the guest ends.
    pub(crate) fn through_adapter(module: &Path, parameters: &[String]) -> Result<Self> {
        make_adapter(module, parameters).context("cannot set the software adapter up")?;
        Ok(Self { network: Network::Adapter })
    }

    /// Which network this is.
    pub(crate) fn network(&self) -> Network {
        self.network
    }

    /// Where servers listen.
    pub(crate) fn server_address(&self) -> IpAddr {
        match self.network {
            Network::Loopback => Ipv4Addr::LOCALHOST.into(),
            Network::Veth | Network::Adapter => VETH_SERVER.into(),
        }
    }

    /// A command that runs `program` at the server's end.
    pub(crate) fn server_command(&self, program: impl AsRef<OsStr>) -> Command {
        match self.network {
            Network::Loopback | Network::Adapter => Command::new(program),
            Network::Veth => command_in(SERVER_NAMESPACE, program.as_ref()),
        }
    }

    /// A command that runs `program` at the client's end.
    pub(crate) fn client_command(&self, program: impl AsRef<OsStr>) -> Command {
        match self.network {
            Network::Loopback => Command::new(program),
            Network::Veth | Network::Adapter => command_in(CLIENT_NAMESPACE, program.as_ref()),
        }
    }
}

/// `ip netns exec` replaces itself by the program, so the process id is the program's.
fn command_in(namespace: &str, program: &OsStr) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.network == Network::Veth {
            remove_namespaces();
        }
    }
}

fn make_veth() -> Result<()> {
    let server = format!("{VETH_SERVER}/30");
    let client = format!("{VETH_CLIENT}/30");
    ip(&["netns", "add", SERVER_NAMESPACE])?;
    ip(&["netns", "add", CLIENT_NAMESPACE])?;
    let pair = ["link", "add", "veth0", "netns", SERVER_NAMESPACE, "mtu", "1500", "type", "veth"];
    let peer = ["peer", "name", "veth0", "mtu", "1500", "netns", CLIENT_NAMESPACE];
    ip(&[pair.as_slice(), peer.as_slice()].concat())?;
    for (namespace, address) in [(SERVER_NAMESPACE, &server), (CLIENT_NAMESPACE, &client)] {
        ip(&["-n", namespace, "address", "add", address, "dev", "veth0"])?;
        ip(&["-n", namespace, "link", "set", "lo", "up"])?;
        ip(&["-n", namespace, "link", "set", "veth0", "up"])?;
    }
    Ok(())
}

fn make_adapter(module: &Path, parameters: &[String]) -> Result<()> {
    let loaded = Command::new("insmod").arg(module).args(parameters).output().context("cannot run insmod")?;
    if !loaded.status.success() {
        bail!("insmod: {}", String::from_utf8_lossy(&loaded.stderr).trim());
    }
    let (server, client) = (format!("{VETH_SERVER}/30"), format!("{VETH_CLIENT}/30"));
    ip(&["netns", "add", CLIENT_NAMESPACE])?;
    ip(&["link", "set", "lrnic1", "netns", CLIENT_NAMESPACE])?;
    ip(&["address", "add", &server, "dev", ADAPTER])?;
    ip(&["link", "set", ADAPTER, "up"])?;
    ip(&["-n", CLIENT_NAMESPACE, "address", "add", &client, "dev", "lrnic1"])?;
    ip(&["-n", CLIENT_NAMESPACE, "link", "set", "lo", "up"])?;
    ip(&["-n", CLIENT_NAMESPACE, "link", "set", "lrnic1", "up"])
}

fn remove_namespaces() {
    for namespace in [SERVER_NAMESPACE, CLIENT_NAMESPACE] {
        // Fails when there is none, which is the usual case.
        let _ = Command::new("ip").args(["netns", "delete", namespace]).output();
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(arguments).output().context("cannot run `ip`")?;
    if !output.status.success() {
        bail!("`ip {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
