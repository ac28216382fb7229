//! Counters of Linux' perf events (`perf_event_open(2)`).

use crate::perf::{Event, Of};
use std::io;
use std::{fs::File, io::Read as _, os::fd::FromRawFd as _};

/// A counter that is running, from 0.
#[derive(Debug)]
pub struct Counter {
    event: File,
}

/// `struct perf_event_attr` as its first version had it; the kernel takes what is missing for 0.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    source: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

/// Bit 1 of the flags: threads and processes that are started later are counted too.
const INHERIT: u64 = 1 << 1;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const WITH_TIMES: u64 = 1 | 2;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

impl Counter {
    /// Begins to count, in user mode and in the kernel.
    ///
    /// # Errors
    /// The kernel's: `ENOENT` or `EOPNOTSUPP` where nothing counts such events (a virtual machine without
    /// performance counters), `EACCES` or `EPERM` where this user may not (`kernel.perf_event_paranoid`), `ESRCH`
    /// where the thread has ended, `EMFILE`, `ENOSYS`.
    pub fn start(event: Event, of: Of) -> io::Result<Self> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let (thread, core, flags) = match of {
            Of::Thread(thread) => (libc::pid_t::try_from(thread).map_err(invalid)?, -1, INHERIT),
            Of::Core(core) => (-1, libc::c_int::try_from(core).map_err(invalid)?, 0),
        };
        let attributes = Attributes {
            source: event.source,
            size: size_of::<Attributes>() as u32,
            config: event.config,
            read_format: WITH_TIMES,
            flags,
            ..Attributes::default()
        };
        let no_group: libc::c_int = -1;
        // SAFETY: the kernel reads `size` bytes of the attributes, which live beyond the call; all other arguments
        // are plain numbers, each of the width that the system call has.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                thread,
                core,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        let descriptor = libc::c_int::try_from(descriptor).map_err(invalid)?;
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        Ok(Self { event: unsafe { File::from_raw_fd(descriptor) } })
    }

    /// What has been counted. Where there are more events than counters in the processor, they take turns, and what
    /// was counted is scaled up to the whole time. `None` if the event never had its turn.
    ///
    /// # Errors
    /// The kernel's.
    pub fn value(&self) -> io::Result<Option<u64>> {
        let mut bytes = [0; 24];
        (&self.event).read_exact(&mut bytes)?;
        let [count, enabled, running] = std::array::from_fn(|word| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[8 * word..8 * (word + 1)]);
            u64::from_ne_bytes(number)
        });
        Ok(scaled(count, enabled, running))
    }
}

/// A count that was running for a part of the time in which it was wanted.
fn scaled(count: u64, enabled_ns: u64, running_ns: u64) -> Option<u64> {
    if running_ns >= enabled_ns {
        // Also 0 of 0: a thread that never ran.
        return Some(count);
    }
    let whole = u128::from(count) * u128::from(enabled_ns) / u128::from(running_ns).max(1);
    if running_ns == 0 { None } else { Some(u64::try_from(whole).unwrap_or(u64::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_scaled_to_the_time_they_were_wanted_for() {
        assert_eq!(scaled(100, 10, 10), Some(100));
        assert_eq!(scaled(0, 0, 0), Some(0), "never ran");
        assert_eq!(scaled(100, 40, 10), Some(400), "a quarter of the turns");
        assert_eq!(scaled(0, 10, 0), None, "never had its turn");
        assert_eq!(scaled(u64::MAX, u64::MAX, 1), Some(u64::MAX));
    }

    #[test]
    fn threads_that_are_started_later_are_counted() {
        let counter = match Counter::start(Event::TASK_CLOCK, Of::Thread(own_thread())) {
            Ok(counter) => counter,
            Err(error) => {
                eprintln!("SKIPPED threads_that_are_started_later_are_counted: perf events: {error}");
                return;
            }
        };
        let before = counter.value().expect("open").expect("counted");
        let spin = || {
            let begin = std::time::Instant::now();
            let clocks = || crate::clock::process_clocks(std::process::id()).expect("alive").run;
            let used = clocks();
            while clocks() - used < std::time::Duration::from_millis(30) {
                assert!(begin.elapsed().as_secs() < 20, "no time on any core");
            }
        };
        std::thread::spawn(spin).join().expect("no panic");
        let counted_ns = counter.value().expect("open").expect("counted") - before;
        assert!(counted_ns > 5_000_000, "{counted_ns} ns");
    }

    fn own_thread() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
    }

    #[test]
    fn an_event_that_nothing_counts_is_refused() {
        let nothing = Event { source: u32::MAX, config: 0 };
        let error = Counter::start(nothing, Of::Thread(own_thread())).expect_err("no such source");
        assert!(error.raw_os_error().is_some(), "{error}");
    }
}
