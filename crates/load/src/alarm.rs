//! A timer that wakes `poll` to the microsecond: its own time limit is rounded up to the next millisecond, which would
//! make requests late that are due in between.

use std::{io, os::fd::AsRawFd, time::Duration};

use mio::{Interest, Registry, Token, unix::SourceFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A timer.
#[derive(Debug)]
pub(crate) struct Alarm(std::os::fd::OwnedFd);

impl Alarm {
    /// One that reports to `registry` as `token`.
    ///
    /// # Errors
    /// The kernel's: no descriptor is left.
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self(timer))
    }

    /// Rings once, after `delay`; what was set before is forgotten.
    ///
    /// # Errors
    /// The kernel's; none is known.
    pub(crate) fn set(&self, delay: Duration) -> io::Result<()> {
        // Zero would disarm it.
        let delay = delay.max(Duration::from_nanos(1));
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: i64::try_from(delay.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: delay.subsec_nanos().into(),
            },
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}
