//! The CPU clocks of a process.
//!
//! `clock_getcpuclockid(3)` gives the exact one. How it divides into user mode and kernel is in the process' resource usage
//! (`KERN_PROC_PID`): sampled by the statistics clock, and scaled to the exact whole (`calcru`, sys/kern/kern_resource.c).

use super::process;
use crate::clock::ProcessClocks;
use std::{io, time::Duration};

/// Reads the clocks of the process `pid`.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] where there is no such process.
pub fn process_clocks(pid: u32) -> io::Result<ProcessClocks> {
    // 0 would be the clock of the calling process.
    let pid = libc::pid_t::try_from(pid).ok().filter(|&pid| pid > 0).ok_or(io::ErrorKind::NotFound)?;
    let run = run_time(pid)?;
    let usage = process::described(pid)?.ki_rusage;
    let duration = |time: libc::timeval| {
        Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default())
            + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or_default())
    };
    let sampled_user = duration(usage.ru_utime);
    Ok(ProcessClocks { run, sampled_user, sampled: sampled_user + duration(usage.ru_stime) })
}

fn run_time(pid: libc::pid_t) -> io::Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is memory for one clock's number, which the call fills in.
    match unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } {
        0 => {}
        libc::ESRCH => return Err(io::ErrorKind::NotFound.into()),
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to write to, and lives beyond the call.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        let error = io::Error::last_os_error();
        let is_gone = matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EINVAL));
        return Err(if is_gone { io::ErrorKind::NotFound.into() } else { error });
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Ok(Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default()))
}
