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

    #[test]
    fn a_thread_that_works_costs_and_one_that_sleeps_does_not() {
        let cost = |work: fn()| {
            std::thread::spawn(move || {
                work();
                let cpu = current_thread().expect("Linux tells");
                cpu.user_s + cpu.system_s
            })
            .join()
            .expect("no panic")
        };
        let busy = cost(|| {
            let started = Instant::now();
            while started.elapsed() < Duration::from_millis(200) {
                std::hint::spin_loop();
            }
        });
        let idle = cost(|| std::thread::sleep(Duration::from_millis(200)));
        assert!(idle < 0.02 && idle < busy && busy < 0.3, "idle {idle}, busy {busy}");
    }
}
