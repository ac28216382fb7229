//! Listening sockets handed over by the service manager (`sd_listen_fds(3)`).

use std::{
    net::TcpListener,
    os::fd::{FromRawFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
};

/// The first descriptor that systemd passes.
const FIRST_DESCRIPTOR: i32 = 3;

/// Takes the listening sockets that were handed over, in their order; empty if there are none, or at a second call.
#[must_use]
pub fn listeners() -> Vec<TcpListener> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let for_us = std::env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    let count = std::env::var("LISTEN_FDS").ok().and_then(|count| count.parse::<i32>().ok()).unwrap_or(0);
    if !for_us || count <= 0 || TAKEN.swap(true, Ordering::SeqCst) {
        return Vec::new();
    }
    let mut listeners = Vec::new();
    for descriptor in FIRST_DESCRIPTOR..FIRST_DESCRIPTOR.saturating_add(count) {
        if !is_open(descriptor) {
            continue;
        }
        // SAFETY: the service manager's protocol gives us ownership of these descriptors; they were found open just
        // now, and TAKEN keeps anyone from taking them twice.
        let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // They are inherited on purpose by us, by nobody we start.
        let _ = rustix::io::fcntl_setfd(&owned, rustix::io::FdFlags::CLOEXEC);
        let listener = TcpListener::from(owned);
        if listener.set_nonblocking(true).is_ok() && listener.local_addr().is_ok() {
            listeners.push(listener);
        }
    }
    listeners
}

fn is_open(descriptor: i32) -> bool {
    // SAFETY: F_GETFD only asks; a descriptor that isn't open gives EBADF.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) >= 0 }
}
