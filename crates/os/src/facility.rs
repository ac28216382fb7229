//! What this machine is and lets us do, where no file of the kernel's tells: the hypervisor, and io_uring.

use std::io;

/// How the hypervisor calls itself (`KVMKVMKVM`, `Microsoft Hv`, `VMwareVMware`), asked of the processor. `None` where
/// the processor says that there is none, or cannot be asked (not x86-64).
#[must_use]
pub fn hypervisor() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        /// CPUID leaf 1, ECX: "a hypervisor is present", which no processor sets by itself.
        const PRESENT: u32 = 1 << 31;
        if cpuid(1).ecx & PRESENT == 0 {
            return None;
        }
        let answer = cpuid(0x4000_0000);
        let signature: Vec<u8> =
            [answer.ebx, answer.ecx, answer.edx].into_iter().flat_map(u32::to_le_bytes).collect();
        let signature = String::from_utf8_lossy(&signature).trim_matches(['\0', ' ']).to_owned();
        Some(if signature.is_empty() { "one that gives no name".to_owned() } else { signature })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "safe to call since a later Rust than the oldest that we support")]
fn cpuid(leaf: u32) -> std::arch::x86_64::CpuidResult {
    // SAFETY: every x86-64 processor has the instruction, and it changes nothing but the registers of its answer.
    unsafe { std::arch::x86_64::__cpuid(leaf) }
}

/// Whether this process may use io_uring.
///
/// # Errors
/// Why not: `EPERM` where a sandbox or `kernel.io_uring_disabled` forbids it, `ENOSYS` where the kernel has none.
pub fn io_uring() -> io::Result<()> {
    let no_parameters = std::ptr::null_mut::<libc::c_void>();
    let no_entries: libc::c_uint = 0;
    // SAFETY: the kernel refuses an address of no memory with EFAULT; it writes nothing, and makes nothing.
    if unsafe { libc::syscall(libc::SYS_io_uring_setup, no_entries, no_parameters) } >= 0 {
        // It cannot have been made without parameters.
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Permission is the first thing it looks at, the parameters come second.
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::EFAULT | libc::EINVAL)) => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_and_the_kernel_agree_on_a_hypervisor() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").expect("Linux");
        let flagged = cpuinfo.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
        if cfg!(target_arch = "x86_64") {
            assert_eq!(hypervisor().is_some(), flagged, "{:?}", hypervisor());
        } else {
            assert_eq!(hypervisor(), None);
        }
    }

    #[test]
    fn a_refusal_of_io_uring_is_the_kernel_s_or_a_sandbox_s() {
        if let Err(error) = io_uring() {
            assert!(
                matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EACCES)),
                "{error}"
            );
        }
        let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
        if disabled.trim() == "2" {
            assert!(io_uring().is_err(), "disabled for all");
        }
    }
}
