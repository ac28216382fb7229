//! The CPU clocks of a process.
//!
//! Linux gives every process three clocks that any other may read (`clock_getcpuclockid(3)`, clock_getres(2)). They
//! are exact to what the scheduler has booked: a thread that is running at this moment may lack up to a timer tick
//! (1 to 10 ms).

use crate::clock::ProcessClocks;
use std::{io, time::Duration};

/// Reads the clocks of the process `pid`.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] where there is no such process.
pub fn process_clocks(pid: u32) -> io::Result<ProcessClocks> {
    Ok(ProcessClocks {
        run: read(pid, Clock::Run)?,
        sampled_user: read(pid, Clock::SampledUser)?,
        sampled: read(pid, Clock::Sampled)?,
    })
}

/// The kinds of CPU clocks by their numbers in the kernel (include/linux/posix-timers.h: `CPUCLOCK_PROF`, `_VIRT`,
/// `_SCHED`).
#[derive(Clone, Copy)]
enum Clock {
    Sampled = 0,
    SampledUser = 1,
    Run = 2,
}

/// `PID_MAX_LIMIT` of the kernel.
const GREATEST_PROCESS: libc::pid_t = 1 << 22;

fn read(pid: u32, clock: Clock) -> io::Result<Duration> {
    let not_found = || io::Error::from(io::ErrorKind::NotFound);
    // 0 would be the clock of the calling process, and greater ids than the kernel gives would be other clocks.
    let pid = libc::pid_t::try_from(pid)
        .ok()
        .filter(|pid| (1..=GREATEST_PROCESS).contains(pid))
        .ok_or_else(not_found)?;
    // The number of a process's clock is the complement of its id, above three bits for the kind.
    let id: libc::clockid_t = (!pid << 3) | clock as libc::clockid_t;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to write to, and lives beyond the call.
    if unsafe { libc::clock_gettime(id, &raw mut time) } != 0 {
        let error = io::Error::last_os_error();
        // The kernel calls the number of a process that is not there an invalid argument.
        return Err(if error.raw_os_error() == Some(libc::EINVAL) { not_found() } else { error });
    }
    Ok(Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_still_counts() {
        let own = std::process::id();
        let before = process_clocks(own).expect("alive");
        std::thread::spawn(|| {
            let begin = thread_time();
            while thread_time() - begin < Duration::from_millis(60) {
                std::hint::spin_loop();
            }
        })
        .join()
        .expect("no panic");
        let after = process_clocks(own).expect("alive");
        assert!(after.run - before.run >= Duration::from_millis(60), "{before:?} {after:?}");
        assert!(after.sampled_user <= after.sampled);
    }

    /// CPU time of the calling thread: the machine may be shared, wall time says nothing.
    fn thread_time() -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid timespec for the kernel to write to.
        assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    #[test]
    fn a_process_that_is_not_there_is_not_found() {
        for pid in [0, u32::MAX, i32::MAX as u32] {
            assert_eq!(process_clocks(pid).expect_err("none").kind(), io::ErrorKind::NotFound, "{pid}");
        }
    }
}
