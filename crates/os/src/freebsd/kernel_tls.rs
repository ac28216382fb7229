//! Kernel TLS as FreeBSD has it (ktls(4)) is not used yet: connections stay with the user engine.

use crate::{
    kernel_tls::{Calls, Carriers, DirectionKey, HandedOver, Opened, Statistic, System},
    socket::{self, Follows},
};
use linerate_suite::{Cipher, Version};
use std::{fs::File, io, os::fd::BorrowedFd};

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The counts of Linux' `tls` module.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`], always.
pub fn statistics() -> io::Result<Vec<Statistic>> {
    unsupported()
}

/// Whether [`Calls::receive`] failed because the next key is missing: it never does so here.
#[must_use]
pub fn lacks_next_key(_: &io::Error) -> bool {
    false
}

impl Calls for System {
    fn attach(&self, _: BorrowedFd<'_>) -> io::Result<()> {
        unsupported()
    }

    fn install(&self, _: BorrowedFd<'_>, _: &DirectionKey<'_>) -> io::Result<()> {
        unsupported()
    }

    fn install_receiving(&self, _: BorrowedFd<'_>, _: &DirectionKey<'_>) -> io::Result<()> {
        unsupported()
    }

    fn expect_no_padding(&self, _: BorrowedFd<'_>, _: bool) -> io::Result<()> {
        unsupported()
    }

    fn receive(&self, _: BorrowedFd<'_>, _: &mut [u8]) -> io::Result<Opened> {
        unsupported()
    }

    fn sequence(&self, _: BorrowedFd<'_>, _: Version, _: Cipher) -> io::Result<u64> {
        unsupported()
    }

    fn carriers(&self, _: BorrowedFd<'_>) -> io::Result<Carriers> {
        unsupported()
    }

    fn set_zero_copy(&self, _: BorrowedFd<'_>, _: bool) -> io::Result<()> {
        unsupported()
    }

    fn send_control(&self, _: BorrowedFd<'_>, _: u8, _: &[u8]) -> io::Result<()> {
        unsupported()
    }

    fn taken_bytes(&self, _: BorrowedFd<'_>) -> io::Result<u64> {
        unsupported()
    }

    fn leaves_by(&self, socket: BorrowedFd<'_>) -> io::Result<String> {
        let both = socket2::SockRef::from(&socket);
        let addresses = both.local_addr()?.as_socket().zip(both.peer_addr()?.as_socket());
        let (local, peer) = addresses.ok_or(io::ErrorKind::Unsupported)?;
        crate::adapter::towards(socket, local.ip(), peer.ip())
    }

    fn handed_over(&self) -> io::Result<HandedOver> {
        unsupported()
    }

    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8], follows: Follows) -> io::Result<usize> {
        socket::send(&socket, bytes, follows)
    }

    fn send_file(
        &self,
        socket: BorrowedFd<'_>,
        file: &File,
        offset: u64,
        length_bytes: usize,
    ) -> io::Result<usize> {
        socket::send_file(&socket, file, offset, length_bytes)
    }
}
