//! Whether io_uring is permitted.

use std::io;

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
    use crate::facility::hypervisor;

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
