//! What the calling thread has cost.

use std::io;

/// CPU time in seconds, as the kernel divides it between user mode and itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadCpu {
    /// In user mode.
    pub user_s: f64,
    /// In the kernel.
    pub system_s: f64,
}

/// CPU time of the calling thread since it began.
///
/// # Errors
/// The kernel's; none is known.
pub fn current_thread() -> io::Result<ThreadCpu> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the second argument points to memory for one `rusage`, which the kernel fills in if it returns 0.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call returned 0, so all of it was written.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(ThreadCpu { user_s: seconds(usage.ru_utime), system_s: seconds(usage.ru_stime) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// By the order of events: one thread works until it has used 50 ms, another waits for its end.
    #[test]
    fn a_thread_that_works_costs_and_one_that_waits_does_not() {
        let cpu_s = || {
            let cpu = current_thread().expect("Linux tells");
            cpu.user_s + cpu.system_s
        };
        let waiting = std::thread::spawn(move || {
            let busy = std::thread::spawn(move || {
                let give_up = Instant::now() + Duration::from_secs(60);
                while cpu_s() < 0.05 {
                    assert!(Instant::now() < give_up, "its time is not counted");
                }
                cpu_s()
            });
            (busy.join().expect("no panic"), cpu_s())
        });
        let (busy_s, waited_s) = waiting.join().expect("no panic");
        assert!(waited_s < busy_s / 2.0, "waiting {waited_s}, busy {busy_s}");
    }
}
