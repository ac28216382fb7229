//! What interfaces and their drivers say of themselves: `getifaddrs`, `SIOCGIFCAP`, and what drivers tell by `sysctl`.

mod interfaces;

pub use interfaces::{interfaces, towards};

use super::{kernel_tls::layout::SIOCGIFCAP, sysctl};
use crate::adapter::{Beneath, Channels, Driver, FeatureState};
use std::{
    collections::BTreeMap,
    ffi::{c_int, c_ulong},
    io, mem,
    os::fd::AsRawFd,
    path::Path,
};

/// The driver of an interface. Interfaces are named by it, with a number: `mce0`. One that was renamed is not recognised, and
/// has its new name for its driver's.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for what cannot be a name, the kernel's (`ENXIO`: no such interface).
pub fn driver(interface: &str) -> io::Result<Driver> {
    capabilities(interface)?;
    let name = interface.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let unit = interface.get(name.len()..).unwrap_or_default();
    let told = |place: &str| sysctl::text(&format!("dev.{name}.{unit}.{place}")).unwrap_or_default();
    Ok(Driver {
        name: name.to_owned(),
        version: sysctl::text("kern.osrelease").unwrap_or_default(),
        firmware: told("fw_version"),
        bus: told("%location"),
    })
}

/// What can be asked of an interface, and what is on (`SIOCGIFCAP`).
fn capabilities(interface: &str) -> io::Result<(c_int, c_int)> {
    // SAFETY: an ifreq is numbers, and a union of numbers and pointers: all zeros are a valid one.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let name = interface.as_bytes();
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, &byte) in request.ifr_name.iter_mut().zip(name) {
        *place = byte as libc::c_char;
    }
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM.cloexec(), None)?;
    // SAFETY: `request` lives beyond the call; the kernel reads the name in it, and writes two numbers.
    if unsafe { libc::ioctl(socket.as_raw_fd(), c_ulong::from(SIOCGIFCAP), &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has written `ifr_cap`: what can be had, and what is on.
    let [available, on] = unsafe { request.ifr_ifru.ifru_cap };
    Ok((available, on))
}

/// Capabilities by their names in ifconfig(8), and by those of ethtool for what the engines ask.
const NAMES: [(&str, c_int); 13] = [
    ("tls-hw-tx-offload", libc::IFCAP_TXTLS4 | libc::IFCAP_TXTLS6),
    ("tx-tcp-segmentation", libc::IFCAP_TSO4),
    ("tx-tcp6-segmentation", libc::IFCAP_TSO6),
    ("TXCSUM", libc::IFCAP_TXCSUM),
    ("TXCSUM_IPV6", libc::IFCAP_TXCSUM_IPV6),
    ("LRO", libc::IFCAP_LRO),
    ("TOE4", libc::IFCAP_TOE4),
    ("TOE6", libc::IFCAP_TOE6),
    ("TXRTLMT", libc::IFCAP_TXRTLMT),
    ("MEXTPG", libc::IFCAP_MEXTPG),
    ("TXTLS4", libc::IFCAP_TXTLS4),
    ("TXTLS6", libc::IFCAP_TXTLS6),
    ("TXTLS_RTLMT", libc::IFCAP_TXTLS_RTLMT),
];

/// The features of an interface, whether each is switched on, and whether it can be switched. Those that it does not have are off
/// and cannot be switched.
///
/// # Errors
/// As those of [`driver`].
pub fn feature_states(interface: &str) -> io::Result<BTreeMap<String, FeatureState>> {
    let (available, on) = capabilities(interface)?;
    let state = |bits| FeatureState { on: on & bits != 0, changeable: available & bits != 0 };
    Ok(NAMES.into_iter().map(|(name, bits)| (name.to_owned(), state(bits))).collect())
}

/// FreeBSD has no common question for the number of queues.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`], always.
pub fn channels(_: &str) -> io::Result<Channels> {
    Err(io::ErrorKind::Unsupported.into())
}

/// FreeBSD has no common question for what a driver has counted: each has a tree of its own below `dev.`.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`], always.
pub fn statistics(_: &str) -> io::Result<BTreeMap<String, u64>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There is no sysfs.
#[must_use]
pub fn shows(_: &Path, _: &[crate::adapter::Interface]) -> bool {
    false
}

/// Interfaces that stand upon others (lagg(4), vlan(4)) have the capabilities of those beneath, and hand connections down
/// themselves (`lagg_snd_tag_alloc`, `vlan_snd_tag_alloc`): there is nothing to look for.
///
/// # Errors
/// The kernel's: there is no such interface.
pub fn beneath(_: &Path, interface: &str) -> io::Result<Beneath> {
    capabilities(interface)?;
    Ok(Beneath { ports: vec![interface.to_owned()], ..Beneath::default() })
}
