//! IPsec's ESP, as the alternative to TLS: what both ends agree on, and the guest's end of it, which is its kernel's.
//!
//! Keys are set by hand; nobody negotiates. The host's end is [`super::esp_peer`].

use std::net::Ipv4Addr;

use anyhow::Result;
use linerate_bench::network::{VETH_CLIENT, VETH_SERVER};
use serde::{Deserialize, Serialize};

use super::output_of;

/// The server's address, of which all packets are protected.
pub(in crate::guest) const ESP_SERVER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);
/// The client's.
pub(in crate::guest) const ESP_CLIENT: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 2);

/// What ESP protects of a packet (RFC 4303, section 3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// What it carries.
    Transport,
    /// All of it, in another packet between the ends of the tunnel.
    Tunnel,
}

/// AES-256-GCM's key, and the four bytes of salt behind it (RFC 4106, section 8.1).
pub(in crate::guest) type KeyMaterial = [u8; 32 + 4];

/// Both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::guest) struct Association {
    /// Transport or tunnel.
    pub(in crate::guest) mode: Mode,
    /// MTU of the adapter, in bytes. The client's device has the same: the server allows for what ESP adds.
    pub(in crate::guest) mtu_bytes: u32,
    /// From server to client.
    pub(in crate::guest) to_client: Vec<u8>,
    /// From client to server.
    pub(in crate::guest) to_server: Vec<u8>,
}

/// Number of the association from server to client (SPI).
pub(in crate::guest) const SPI_TO_CLIENT: u32 = 0x101;
/// That from client to server.
pub(in crate::guest) const SPI_TO_SERVER: u32 = 0x102;

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Tunnel => "tunnel",
        }
    }
}

impl Association {
    /// New keys.
    pub(in crate::guest) fn make(mode: Mode, mtu_bytes: u32) -> Result<Self> {
        let key = || -> Result<Vec<u8>> {
            let mut key: KeyMaterial = [0; 36];
            aws_lc_rs::rand::fill(&mut key)?;
            Ok(key.to_vec())
        };
        Ok(Self { mode, mtu_bytes, to_client: key()?, to_server: key()? })
    }

    /// Gives the guest's adapter the protected address, and has its kernel protect what goes from there to the client's.
    pub(in crate::guest) fn set_up_in_guest(&self, interface: &str) -> Result<()> {
        output_of("modprobe", &["-a", "esp4", "esp4_offload", "xfrm_user", "seqiv", "gcm"])?;
        let (server, client) = (ESP_SERVER.to_string(), ESP_CLIENT.to_string());
        let (veth_server, veth_client) = (VETH_SERVER.to_string(), VETH_CLIENT.to_string());
        ip(&["address", "replace", &format!("{server}/32"), "dev", interface])?;
        ip(&["route", "replace", &client, "via", &veth_client, "dev", interface, "src", &server])?;
        ip(&["xfrm", "state", "flush"])?;
        ip(&["xfrm", "policy", "flush"])?;
        let (outer_server, outer_client) = match self.mode {
            Mode::Transport => (&server, &client),
            Mode::Tunnel => (&veth_server, &veth_client),
        };
        let mode = self.mode.name();
        let directions = [
            ("out", (&server, &client), (outer_server, outer_client), SPI_TO_CLIENT, &self.to_client),
            ("in", (&client, &server), (outer_client, outer_server), SPI_TO_SERVER, &self.to_server),
        ];
        for (direction, (from, to), (outer_from, outer_to), spi, key) in directions {
            let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            let state = format!(
                "xfrm state add src {outer_from} dst {outer_to} proto esp spi {spi} reqid 1 mode {mode} replay-window 64"
            );
            let mut arguments: Vec<&str> = state.split(' ').collect();
            let key = format!("0x{key}");
            arguments.extend(["aead", "rfc4106(gcm(aes))", &key, "128"]);
            ip(&arguments)?;
            let policy = format!(
                "xfrm policy add src {from}/32 dst {to}/32 dir {direction} \
                 tmpl src {outer_from} dst {outer_to} proto esp reqid 1 mode {mode}"
            );
            ip(&policy.split(' ').collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// How many bytes the guest's kernel has sealed and opened under the keys that it has now.
    pub(in crate::guest) fn carried_bytes() -> Result<u64> {
        // Of each association `lifetime current:`, and on the next line `  123(bytes), 4(packets)`; limits are `(INF)(bytes)`.
        let shown = output_of("ip", &["-s", "xfrm", "state"])?;
        let carried = |line: &str| line.trim().split_once("(bytes), ")?.0.parse::<u64>().ok();
        Ok(shown.lines().filter_map(carried).sum())
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    output_of("ip", arguments).map(|_| ())
}
