//! IPsec's ESP between the ends of a veth pair, by the kernel, with keys that are set by hand (`ip xfrm`): what TLS is held against.
//!
//! AES-256-GCM with a tag of 16 bytes (RFC 4106). Nobody negotiates: both ends get the same two keys, one a direction.

use std::fmt::{self, Display};
use std::net::Ipv4Addr;

use super::namespace::Namespace;
use crate::error::{Error, Result};
use crate::secret;

/// What ESP seals of a packet (RFC 4303, section 3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Esp {
    /// What it carries.
    Transport,
    /// All of it, in another packet.
    Tunnel,
}

/// AES-256's key, and the four bytes of salt behind it (RFC 4106, section 8.1).
const KEY_BYTES: usize = 32 + 4;

impl Esp {
    /// As `ip xfrm` and the names of servers have it.
    pub(crate) fn mode(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Tunnel => "tunnel",
        }
    }

    /// Has the kernel seal all that goes between the two addresses, and refuse what comes in the clear.
    pub(super) fn apply(
        self,
        server: &Namespace,
        server_address: Ipv4Addr,
        client: &Namespace,
        client_address: Ipv4Addr,
    ) -> Result<()> {
        let (server, client) = ((server, server_address.to_string()), (client, client_address.to_string()));
        for (number, (sender, from), (receiver, to)) in
            [("0x101", &server, &client), ("0x102", &client, &server)]
        {
            let key = random_key()?;
            for (namespace, direction) in [(sender, "out"), (receiver, "in")] {
                let sealing = ["replay-window", "64", "aead", "rfc4106(gcm(aes))", &key, "128"];
                let state = ["proto", "esp", "spi", number];
                self.tell(namespace, "state", from, to, &[&state[..], &self.end(), &sealing].concat())?;
                let policy = ["dir", direction, "tmpl", "src", from, "dst", to, "proto", "esp"];
                self.tell(namespace, "policy", from, to, &[&policy[..], &self.end()].concat())?;
            }
        }
        Ok(())
    }

    fn end(self) -> [&'static str; 4] {
        ["reqid", "1", "mode", self.mode()]
    }

    /// Adds a `state` or a `policy` for what goes from one address to the other.
    fn tell(self, namespace: &Namespace, what: &str, from: &str, to: &str, rest: &[&str]) -> Result<()> {
        let words = [&["xfrm", what, "add", "src", from, "dst", to], rest].concat();
        namespace.ip(&words).map_err(|error| {
            // The command has the key in it.
            let said = error.to_string();
            let said = said.rsplit("failed: ").next().unwrap_or_default();
            Error::Machine(format!(
                "{self}: ip xfrm {what}: {said} (the kernel needs esp4, xfrm_user, gcm and seqiv; as root: modprobe -a esp4 \
                 xfrm_user gcm seqiv)"
            ))
        })
    }
}

impl Display for Esp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ESP in {} mode (AES-256-GCM)", self.mode())
    }
}

/// A new key as `ip` takes it.
fn random_key() -> Result<String> {
    match secret::hexadecimal(KEY_BYTES) {
        Ok(digits) => Ok(format!("0x{digits}")),
        Err(error) => Err(Error::Machine(format!("no random bytes for a key: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Network, NetworkKind};
    use std::process::Stdio;

    #[test]
    fn keys_are_new_and_as_long_as_they_have_to_be() {
        let (first, second) = (random_key().unwrap(), random_key().unwrap());
        assert_ne!(first, second);
        assert_eq!(first.len(), "0x".len() + 2 * KEY_BYTES);
    }

    /// Both modes carry bytes, sealed: the kernel counts them. A kernel without ESP is said to be one.
    #[test]
    fn what_goes_between_the_ends_is_sealed() {
        let NetworkKind::Veth { mtu_bytes } = NetworkKind::VETH else { unreachable!() };
        for esp in [Esp::Transport, Esp::Tunnel] {
            let network = match Network::veth(None, mtu_bytes, Some(esp)) {
                Ok(network) => network,
                Err(reason) => {
                    let reason = reason.to_string();
                    assert!(
                        reason.contains("only root may make") || reason.contains("modprobe -a esp4"),
                        "{reason}"
                    );
                    eprintln!("SKIPPED: what_goes_between_the_ends_is_sealed: {reason}");
                    return;
                }
            };
            let pings = network
                .client_command("ping")
                .args(["-c", "2", "-s", "3000", &network.server_address().to_string()])
                .stdout(Stdio::null())
                .status();
            if let Err(reason) = pings {
                eprintln!("SKIPPED: what_goes_between_the_ends_is_sealed: ping: {reason}");
                return;
            }
            assert!(pings.unwrap().success());
            let shown = network.client_command("ip").args(["-s", "xfrm", "state"]).output().unwrap();
            let shown = String::from_utf8(shown.stdout).unwrap();
            let carried = |line: &str| line.trim().split_once("(bytes), ")?.0.parse::<u64>().ok();
            let carried: Vec<u64> = shown.lines().filter_map(carried).collect();
            assert_eq!(carried.len(), 2, "{shown}");
            assert!(carried.iter().all(|bytes| *bytes > 6000), "{shown}");
            assert!(network.used().path.ends_with(&esp.to_string()));
        }
    }
}
