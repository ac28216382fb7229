//! The limit of open files, and what the system says where it, or another of its own, is reached.

use rustix::{
    event::{EventfdFlags, eventfd},
    io::{DupFlags, Errno, dup3},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use std::{io, os::fd::OwnedFd};

/// Raises the soft limit of open files to the hard one and returns what it is now.
#[must_use]
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // Where raising is refused the old limit simply stays; the caller works with what is returned.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// A descriptor of something small that nobody uses, to be given up when another is needed. It needs no file system.
///
/// # Errors
/// The kernel's: there is none left.
pub fn spare_descriptor() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC)?)
}

/// The same in the place of `given_up`, whose number it gets: at no time can another take that number. What was open there is
/// closed.
///
/// # Errors
/// The kernel's; then `given_up` is closed, too.
pub fn spare_in_place_of(mut given_up: OwnedFd, spare: &OwnedFd) -> io::Result<OwnedFd> {
    dup3(spare, &mut given_up, DupFlags::CLOEXEC)?;
    Ok(given_up)
}

/// Whether the system refused because there is none left of something that others may give back: descriptors, memory,
/// buffers for the network.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    is_without_descriptor(error) || is_one_of(error, [Errno::NOMEM, Errno::NOBUFS])
}

/// Whether the process (`EMFILE`) or the system (`ENFILE`) has no descriptor left.
#[must_use]
pub fn is_without_descriptor(error: &io::Error) -> bool {
    is_one_of(error, [Errno::MFILE, Errno::NFILE])
}

fn is_one_of(error: &io::Error, errnos: [Errno; 2]) -> bool {
    errnos.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
