//! The interfaces of this jail or machine, and by which a connection leaves.

use crate::adapter::Interface;
use std::{
    collections::BTreeMap,
    ffi::CStr,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::AsFd,
    ptr, slice,
};

/// What `getifaddrs` gives, given back when it is dropped.
struct Addresses {
    first: *mut libc::ifaddrs,
}

impl Addresses {
    fn new() -> io::Result<Self> {
        let mut first = ptr::null_mut();
        // SAFETY: `first` is memory for one pointer, which the call fills in.
        if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { first })
    }

    /// Name and address of each entry that has an address.
    fn each(&self, mut take: impl FnMut(String, &libc::sockaddr)) {
        let mut next = self.first;
        // SAFETY: the list ends with null; its entries, their names (which end with NUL) and addresses stay until it is freed,
        // which `self` does when it is dropped.
        while let Some(entry) = unsafe { next.as_ref() } {
            // SAFETY: as above.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
            // SAFETY: as above; an entry without an address has null.
            if let Some(address) = unsafe { entry.ifa_addr.as_ref() } {
                take(name, address);
            }
            next = entry.ifa_next;
        }
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        // SAFETY: what `getifaddrs` gave, once.
        unsafe { libc::freeifaddrs(self.first) };
    }
}

/// All interfaces, sorted by name.
///
/// # Errors
/// The kernel's.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut found = BTreeMap::new();
    Addresses::new()?.each(|name, address| {
        if c_family(address) != libc::AF_LINK {
            return;
        }
        let link = ptr::from_ref(address).cast::<libc::sockaddr_dl>();
        // SAFETY: an address of this family is a `sockaddr_dl`, as long as its first byte says: the kernel made it.
        let (index, name_bytes, address_bytes, data) = unsafe {
            (
                (*link).sdl_index,
                usize::from((*link).sdl_nlen),
                usize::from((*link).sdl_alen),
                (&raw const (*link).sdl_data).cast::<u8>(),
            )
        };
        // SAFETY: behind its fixed part it has the name and then the address, of these lengths.
        let address = unsafe { slice::from_raw_parts(data.add(name_bytes), address_bytes) }.to_vec();
        found.insert(name.clone(), Interface { name, index: index.into(), address });
    });
    Ok(found.into_values().collect())
}

/// The name of the interface by which the kernel sends from `local` to `peer`: the one that has the address `local`, or the
/// loopback where `peer` is an address of this machine, too. Routes may say otherwise: this is to be taken for what is likely.
///
/// # Errors
/// The kernel's; [`io::ErrorKind::AddrNotAvailable`] where no interface has the address.
pub fn towards(_: impl AsFd, local: IpAddr, peer: IpAddr) -> io::Result<String> {
    let (local, peer) = (local.to_canonical(), peer.to_canonical());
    let (mut sends, mut is_own, mut loopback) = (None, false, None);
    Addresses::new()?.each(|name, address| {
        let Some(address) = ip_address(address) else { return };
        if address.is_loopback() {
            loopback.get_or_insert_with(|| name.clone());
        }
        is_own |= address == peer;
        if address == local {
            sends.get_or_insert(name);
        }
    });
    if is_own { loopback.or(sends) } else { sends }.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

fn c_family(address: &libc::sockaddr) -> libc::c_int {
    address.sa_family.into()
}

fn ip_address(address: &libc::sockaddr) -> Option<IpAddr> {
    match c_family(address) {
        libc::AF_INET => {
            // SAFETY: an address of this family is a `sockaddr_in`: the kernel made it.
            let address = unsafe { &*ptr::from_ref(address).cast::<libc::sockaddr_in>() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: an address of this family is a `sockaddr_in6`: the kernel made it.
            let address = unsafe { &*ptr::from_ref(address).cast::<libc::sockaddr_in6>() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}
