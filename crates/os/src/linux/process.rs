//! Processes by `/proc`, `prlimit` and `setns`.

use rustix::{
    process::{Pid, Resource, Rlimit, getrlimit, prlimit},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};
use std::{io, os::fd::AsFd};

/// Memory of this process that is in memory (`VmRSS` of `/proc/self/status`), in bytes.
///
/// # Errors
/// There is no `/proc`, or it does not tell.
pub fn resident_bytes() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Sets the soft limit of open files of another process; its hard one becomes ours.
///
/// # Errors
/// The kernel's: no such process, not permitted.
pub fn limit_open_files_of(pid: u32, open_files: u64) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let limit = Rlimit { current: Some(open_files), ..getrlimit(Resource::Nofile) };
    prlimit(Some(pid), Resource::Nofile, limit)?;
    Ok(())
}

/// Moves the calling thread into a network namespace.
///
/// # Errors
/// The kernel's: not permitted, or it is none.
pub fn enter_network(namespace: impl AsFd) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}
