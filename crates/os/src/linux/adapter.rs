//! What a network adapter's driver says of itself, as ethtool(8) asks for it (`SIOCETHTOOL`).

mod beneath;
mod interfaces;
mod route;

pub use beneath::beneath;
pub use interfaces::{interfaces, shows};
pub use route::towards;

use crate::adapter::{Channels, Driver, FeatureState};
use std::{collections::BTreeMap, io};

/// Asks for the driver of an interface.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for what cannot be a name, the kernel's (`ENODEV`, `EOPNOTSUPP`).
pub fn driver(interface: &str) -> io::Result<Driver> {
    let mut request = vec![0; DRIVER_WORDS];
    request[0] = command::DRIVER;
    // SAFETY: the request has the length of struct ethtool_drvinfo, which is what the kernel writes.
    unsafe { call(interface, &mut request)? };
    let bytes = bytes(&request);
    // struct ethtool_drvinfo: after the command four texts of 32 bytes.
    let text = |place: usize| text(&bytes[4 + 32 * place..4 + 32 * (place + 1)]);
    Ok(Driver { name: text(0), version: text(1), firmware: text(2), bus: text(3) })
}

/// The features of an interface by ethtool's names, whether each is switched on, and whether it can be switched.
///
/// # Errors
/// As those of [`driver`].
pub fn feature_states(interface: &str) -> io::Result<BTreeMap<String, FeatureState>> {
    // No kernel has anywhere near as many; the bound keeps a strange answer from asking for memory.
    let count = string_count(interface, FEATURE_NAMES)?;
    if count > 1024 {
        return Err(io::ErrorKind::InvalidData.into());
    }

    // struct ethtool_gstrings: command, set, count, then texts of 32 bytes.
    let mut names = vec![0; 3 + 8 * count];
    (names[0], names[1]) = (command::STRINGS, FEATURE_NAMES);
    // SAFETY: there is room for as many strings as the kernel has counted for this set, which is what it writes: the
    // number is a constant of the running kernel (NETDEV_FEATURE_COUNT).
    unsafe { call(interface, &mut names)? };

    // struct ethtool_gfeatures: command, number of blocks, then for each 32 features: available, requested, active,
    // never changed.
    let blocks = count.div_ceil(32);
    let mut states = vec![0; 2 + 4 * blocks];
    (states[0], states[1]) = (command::FEATURES, u32::try_from(blocks).unwrap_or_default());
    // SAFETY: there is room for as many blocks as the request says, and the kernel writes no more.
    unsafe { call(interface, &mut states)? };

    let names = bytes(&names[3..]);
    let bit = |feature: usize, word: usize| states[2 + 4 * (feature / 32) + word] >> (feature % 32) & 1 == 1;
    let state = |feature| FeatureState {
        on: bit(feature, 2),
        // What ethtool(8) calls fixed is not available to be switched, or was declared to never change.
        changeable: bit(feature, 0) && !bit(feature, 3),
    };
    Ok(names
        .chunks_exact(32)
        .map(text)
        .enumerate()
        .filter(|(_, name)| !name.is_empty())
        .map(|(feature, name)| (name, state(feature)))
        .collect())
}

/// Asks for the number of queues (`ethtool -l`).
///
/// # Errors
/// As those of [`driver`]; `EOPNOTSUPP` where the number cannot be asked for.
pub fn channels(interface: &str) -> io::Result<Channels> {
    // struct ethtool_channels: command, the most receiving, sending, other and combined, then the same four as they are.
    let mut request = vec![0; 9];
    request[0] = command::CHANNELS;
    // SAFETY: the request has the length of struct ethtool_channels, which is what the kernel writes.
    unsafe { call(interface, &mut request)? };
    Ok(Channels {
        most_sending: request[2],
        most_combined: request[4],
        sending: request[6],
        combined: request[8],
    })
}

/// What the driver has counted (`ethtool -S`): `tx_tls_encrypted_packets`, `tx_tls_ctx`, and whatever else it names.
///
/// # Errors
/// As those of [`driver`]; `EOPNOTSUPP` from drivers that count nothing.
pub fn statistics(interface: &str) -> io::Result<BTreeMap<String, u64>> {
    let count = string_count(interface, STATISTIC_NAMES)?;
    if count > STATISTICS_LIMIT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // The number depends on the driver's queues, and may grow between the question and the answer, which is as long as the
    // driver wants, whatever the request says: there is room for twice what any driver may count.
    let mut names = vec![0; 3 + 8 * 2 * STATISTICS_LIMIT];
    (names[0], names[1]) = (command::STRINGS, STATISTIC_NAMES);
    // SAFETY: a moment ago the driver counted at most STATISTICS_LIMIT, and there is room for twice as many texts.
    unsafe { call(interface, &mut names)? };

    // struct ethtool_stats: command, count, then numbers of 64 bits.
    let mut values = vec![0; 2 + 2 * 2 * STATISTICS_LIMIT];
    values[0] = command::STATISTICS;
    // SAFETY: as above, for numbers.
    unsafe { call(interface, &mut values)? };
    let told = names[2].min(values[1]) as usize;
    let (names, values) = (bytes(&names[3..]), bytes(&values[2..]));
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default();
    Ok(names.chunks_exact(32).map(text).zip(values.chunks_exact(8).map(number)).take(told).collect())
}

/// The number of names of a set.
fn string_count(interface: &str, set: u32) -> io::Result<usize> {
    // struct ethtool_sset_info: command, reserved, a mask of 64 bits, the number of strings of the one set.
    let mut request = vec![0; 5];
    request[0] = command::STRING_COUNT;
    let mask = (1_u64 << set).to_ne_bytes();
    for (half, word) in mask.chunks_exact(4).zip(&mut request[2..]) {
        *word = u32::from_ne_bytes([half[0], half[1], half[2], half[3]]);
    }
    // SAFETY: one bit of the mask is set, so the kernel writes the structure's head and one number.
    unsafe { call(interface, &mut request)? };
    Ok(request[4] as usize)
}

/// `struct ethtool_drvinfo` in words: command, five texts of 32 bytes, 12 bytes reserved, five numbers.
const DRIVER_WORDS: usize = 49;

/// More than any driver counts: about sixty for each of a few hundred queues.
const STATISTICS_LIMIT: usize = 32 * 1024;

/// `ETH_SS_STATS`.
const STATISTIC_NAMES: u32 = 1;

/// `ETH_SS_FEATURES`.
const FEATURE_NAMES: u32 = 4;

/// `ETHTOOL_G…` of include/uapi/linux/ethtool.h.
mod command {
    pub(super) const DRIVER: u32 = 0x03;
    pub(super) const STRINGS: u32 = 0x1b;
    pub(super) const STATISTICS: u32 = 0x1d;
    pub(super) const STRING_COUNT: u32 = 0x37;
    pub(super) const FEATURES: u32 = 0x3a;
    pub(super) const CHANNELS: u32 = 0x3c;
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A text that ends with its field or at the first NUL.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).trim().to_owned()
}

/// Lets the kernel read `request` and write its answer over it.
///
/// # Safety
/// The request must have room for what the kernel writes for its command.
unsafe fn call(interface: &str, request: &mut [u32]) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    // SAFETY: an ifreq is numbers, and a union of numbers and pointers: all zeros are a valid one.
    let mut parameters: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = interface.as_bytes();
    if name.is_empty() || name.len() >= parameters.ifr_name.len() || name.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, &byte) in parameters.ifr_name.iter_mut().zip(name) {
        *place = byte as libc::c_char;
    }
    parameters.ifr_ifru.ifru_data = request.as_mut_ptr().cast();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM.cloexec(), None)?;
    // SAFETY: `parameters` lives beyond the call and points to `request`, which is lent for writing and, as our caller
    // promises, has room for the answer.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut parameters) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::features;

    #[test]
    fn the_features_of_loopback_are_those_that_ethtool_shows() {
        const NAME: &str = "the_features_of_loopback_are_those_that_ethtool_shows";
        let features = match feature_states("lo") {
            Ok(features) => features,
            Err(error) => {
                eprintln!("SKIPPED {NAME}: no answer for lo: {error}");
                return;
            }
        };
        let is_on = FeatureState { on: true, changeable: false };
        assert_eq!(features.get("loopback"), Some(&is_on), "{features:?}");
        assert!(features.contains_key("tls-hw-tx-offload"), "{features:?}");
        let ethtool = ["ethtool", "/usr/sbin/ethtool", "/sbin/ethtool"]
            .into_iter()
            .find_map(|name| std::process::Command::new(name).args(["-k", "lo"]).output().ok());
        let Some(output) = ethtool.filter(|output| output.status.success()) else {
            eprintln!("SKIPPED {NAME}: the comparison, as there is no ethtool");
            return;
        };
        let mut compared = 0;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            // Names of its own, for groups of features, are no kernel's.
            let Some((name, state)) = line.trim().split_once(": ") else { continue };
            let Some(&FeatureState { on, changeable }) = features.get(name) else { continue };
            assert_eq!((on, changeable), (state.starts_with("on"), !state.ends_with("[fixed]")), "{line}");
            compared += 1;
        }
        assert!(compared > 20, "{compared} features compared");
    }

    #[test]
    fn what_is_no_interface_is_an_error() {
        for name in ["", "a-name-that-is-longer-than-any", "nul\0"] {
            assert_eq!(driver(name).expect_err("no name").kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert!(driver("linerate-none").is_err());
        assert!(features("linerate-none").is_err());
        assert!(channels("linerate-none").is_err());
    }

    #[test]
    fn texts_end_at_nul_or_with_their_field() {
        assert_eq!(text(b"mlx5_core\0\0rest"), "mlx5_core");
        assert_eq!(text(b"full"), "full");
        assert_eq!(text(b""), "");
        assert_eq!(text(&[0xff, b'a', 0]), "\u{fffd}a");
    }
}
