//! Processes by `sysctl`.

use std::{io, mem, os::fd::AsFd, ptr};

/// What the kernel says of a process (`KERN_PROC_PID`).
///
/// # Errors
/// [`io::ErrorKind::NotFound`] where there is no such process; the kernel's.
pub(super) fn described(pid: libc::pid_t) -> io::Result<libc::kinfo_proc> {
    let names = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_PID, pid];
    let mut process = mem::MaybeUninit::<libc::kinfo_proc>::zeroed();
    let mut length = mem::size_of::<libc::kinfo_proc>();
    // SAFETY: four names are given as their count says; `process` has `length` bytes, and the kernel writes no more.
    let result = unsafe {
        libc::sysctl(
            names.as_ptr(),
            names.len() as libc::c_uint,
            process.as_mut_ptr().cast(),
            &raw mut length,
            ptr::null(),
            0,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was zeroed, which is a value of it (numbers and pointers), and the kernel has written a part or all of it.
    let process = unsafe { process.assume_init() };
    // For a process that is not there nothing is written; what is written begins with its own length.
    if length == 0 || process.ki_structsize as usize != mem::size_of::<libc::kinfo_proc>() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(process)
}

/// Memory of this process that is in memory, in bytes.
///
/// # Errors
/// The kernel's.
pub fn resident_bytes() -> io::Result<u64> {
    let own = libc::pid_t::try_from(std::process::id()).map_err(|_| io::ErrorKind::InvalidData)?;
    let pages = u64::try_from(described(own)?.ki_rssize).unwrap_or(0);
    Ok(pages * rustix::param::page_size() as u64)
}

/// Sets the soft limit of open files of another process (`KERN_PROC_RLIMIT`); its hard one stays.
///
/// # Errors
/// The kernel's: no such process, not permitted.
pub fn limit_open_files_of(pid: u32, open_files: u64) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let names = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_RLIMIT, pid, libc::RLIMIT_NOFILE];
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let mut length = mem::size_of::<libc::rlimit>();
    let count = names.len() as libc::c_uint;
    // SAFETY: five names are given as their count says; the kernel writes no more than the `length` bytes of `limit`.
    let read = unsafe {
        libc::sysctl(names.as_ptr(), count, (&raw mut limit).cast(), &raw mut length, ptr::null(), 0)
    };
    if read != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = libc::rlim_t::try_from(open_files).unwrap_or(libc::rlim_t::MAX);
    // SAFETY: as above; the kernel reads `limit`.
    let written = unsafe {
        let length = mem::size_of::<libc::rlimit>();
        libc::sysctl(
            names.as_ptr(),
            count,
            ptr::null_mut(),
            ptr::null_mut(),
            (&raw const limit).cast(),
            length,
        )
    };
    if written == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// FreeBSD's networks are jails', which a thread cannot enter.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`], always.
pub fn enter_network(_: impl AsFd) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
