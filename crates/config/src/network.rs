//! Addresses and networks, as `10.0.0.0/8` and `2001:db8::/32` write them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::Error;
use crate::choice::shortened;

/// Every address whose first bits are these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// All bits behind the prefix are 0.
    address: IpAddr,
    prefix_bits: u32,
}

impl Network {
    /// Whether it holds `address`. One of IPv4 that is written in IPv6 (`::ffff:192.0.2.1`, as sockets for both families
    /// tell it) is one of IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && first_bits(address, self.prefix_bits) == self.address
    }
}

fn width_bits(address: IpAddr) -> u32 {
    if address.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS }
}

/// The address with 0 behind its first `bits`.
fn first_bits(address: IpAddr, bits: u32) -> IpAddr {
    let rest_bits = width_bits(address) - bits;
    match address {
        IpAddr::V4(address) => {
            Ipv4Addr::from_bits(address.to_bits() & u32::MAX.checked_shl(rest_bits).unwrap_or(0)).into()
        }
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & u128::MAX.checked_shl(rest_bits).unwrap_or(0)).into()
        }
    }
}

impl FromStr for Network {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (address_text, bits_text) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let malformed = || {
            let text = shortened(text);
            Error::value(format!(
                "\"{text}\" is no address or network: write 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32"
            ))
        };
        let address: IpAddr = address_text.parse().map_err(|_| malformed())?;
        let prefix_bits = match bits_text {
            None => width_bits(address),
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|&bits| bits <= width_bits(address)).ok_or_else(malformed)?
            }
            Some(_) => return Err(malformed()),
        };
        let network = Network { address: first_bits(address, prefix_bits), prefix_bits };
        if network.address != address {
            return Err(Error::value(format!(
                "\"{text}\" has bits behind its prefix: the network is {network}, the address alone is {address}"
            )));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn networks_hold_what_begins_as_they_do() {
        for (text, within, without) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("192.0.2.128/25", "192.0.2.255", "192.0.2.127"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::1", "::1", "::2"),
            ("::/0", "2001:db8::1", "127.0.0.1"),
            ("192.0.2.0/24", "::ffff:192.0.2.9", "::ffff:192.0.3.9"),
        ] {
            assert!(network(text).contains(within.parse().unwrap()), "{text} {within}");
            assert!(!network(text).contains(without.parse().unwrap()), "{text} {without}");
        }
        assert_eq!(network("10.0.0.0/8").to_string(), "10.0.0.0/8");
        assert_eq!(network("::1").to_string(), "::1/128");
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in
            ["", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/+8", "localhost", "10.0.0/8", "[::1]", "/8"]
        {
            let message = text.parse::<Network>().unwrap_err().to_string();
            assert!(message.contains("is no address or network"), "{text:?}: {message}");
        }
        let message = "10.1.0.0/8".parse::<Network>().unwrap_err().to_string();
        assert_eq!(
            message,
            "\"10.1.0.0/8\" has bits behind its prefix: the network is 10.0.0.0/8, the address alone is 10.1.0.0"
        );
    }
}
