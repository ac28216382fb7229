//! Systems whose kernel TLS is not known here: nothing can be attached.

use super::{Cipher, SendingKey, Version};
use std::{io, os::fd::BorrowedFd};

pub(super) fn attach(_: BorrowedFd<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn install(_: BorrowedFd<'_>, _: &SendingKey<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn sequence(_: BorrowedFd<'_>, _: Version, _: Cipher) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn set_zero_copy(_: BorrowedFd<'_>, _: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn send_control(_: BorrowedFd<'_>, _: u8, _: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
