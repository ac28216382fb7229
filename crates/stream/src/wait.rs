//! Waits for a socket, up to a moment.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use std::{
    io,
    os::fd::AsFd,
    time::{Duration, Instant},
};

/// Waits until the socket is ready. False once `deadline` has passed.
///
/// # Errors
/// The kernel's.
pub(crate) fn until(socket: &impl AsFd, flags: PollFlags, deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut [PollFd::new(socket, flags)], Some(&timespec(left))) {
            Ok(0) if left.is_zero() => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until the socket can be written, however long that takes. Shutting the socket down ends it.
///
/// # Errors
/// The kernel's.
pub(crate) fn for_room(socket: &impl AsFd) -> io::Result<()> {
    without_end(socket, PollFlags::OUT)
}

/// The same until something can be received.
///
/// # Errors
/// The kernel's.
pub(crate) fn for_bytes(socket: &impl AsFd) -> io::Result<()> {
    without_end(socket, PollFlags::IN)
}

fn without_end(socket: &impl AsFd, flags: PollFlags) -> io::Result<()> {
    for_any(socket, flags).map(|_| ())
}

/// Waits until the socket is ready in one of these ways, or has failed or messages in its error queue, and tells in which.
///
/// # Errors
/// The kernel's.
pub(crate) fn for_any(socket: &impl AsFd, flags: PollFlags) -> io::Result<PollFlags> {
    loop {
        let mut sockets = [PollFd::new(socket, flags)];
        match poll(&mut sockets, None) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(sockets[0].revents()),
        }
    }
}

/// As the kernel takes it; never more than a day.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    let duration = duration.min(Duration::from_secs(86_400));
    // Both fit: it is at most a day.
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}
