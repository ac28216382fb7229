//! To which NUMA node ("domain") a CPU belongs.

use super::{kernel_tls::layout::CPU_WHICH_DOMAIN, sysctl};
use std::mem;

/// The NUMA node of a CPU, if the kernel tells (`cpuset_getaffinity` of each of the `vm.ndomains` domains).
#[must_use]
pub fn node_of(cpu: usize) -> Option<usize> {
    let domains = sysctl::number("vm.ndomains").ok()?.min(64);
    (0..usize::try_from(domains).ok()?).find(|&domain| has(domain, cpu))
}

fn has(domain: usize, cpu: usize) -> bool {
    if cpu >= libc::CPU_SETSIZE as usize {
        return false;
    }
    let Ok(domain) = libc::id_t::try_from(domain) else { return false };
    // SAFETY: a cpuset_t is made of integers; zeros are a valid value of it.
    let mut set: libc::cpuset_t = unsafe { mem::zeroed() };
    // SAFETY: `set` has the length that is given, and the kernel writes no more.
    let result = unsafe {
        libc::cpuset_getaffinity(
            libc::CPU_LEVEL_WHICH,
            CPU_WHICH_DOMAIN,
            domain,
            mem::size_of::<libc::cpuset_t>(),
            &raw mut set,
        )
    };
    // SAFETY: `cpu` is less than the number of bits that the set has.
    result == 0 && unsafe { libc::CPU_ISSET(cpu, &set) }
}
