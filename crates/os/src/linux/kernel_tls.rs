//! Kernel TLS as Linux has it: the `tls` module.
//!
//! Sources: `include/uapi/linux/tls.h` and `Documentation/networking/tls.rst` of Linux; the behaviour that is cited is that of
//! `net/tls/tls_main.c` and `net/tls/tls_sw.c`, 6.1 to 7.2.

mod carrier;
mod receiving;
mod sockets;
mod statistics;

pub use statistics::statistics;

use crate::{
    kernel_tls::{Calls, Carrier, Carriers, DirectionKey, Habits, HandedOver, Opened, System},
    socket::{self, Follows},
};
use linerate_suite::{Cipher, Version};
use std::{fs::File, io, os::fd::BorrowedFd};

/// Kernel TLS is a module, which somebody has to load.
pub const IS_A_MODULE: bool = true;

/// Whether [`Calls::receive`] failed because the peer changed its key, and the next was not installed (`EKEYEXPIRED`).
#[must_use]
pub fn lacks_next_key(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EKEYEXPIRED)
}

impl Calls for System {
    fn habits(&self) -> Habits {
        Habits::LINUX
    }

    fn set_carrier(&self, _: BorrowedFd<'_>, _: Carrier) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn attach(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        sockets::attach(socket)
    }

    fn install(&self, socket: BorrowedFd<'_>, key: &DirectionKey<'_>) -> io::Result<()> {
        sockets::install(socket, sockets::SENDING, key)
    }

    fn install_receiving(&self, socket: BorrowedFd<'_>, key: &DirectionKey<'_>) -> io::Result<()> {
        sockets::install(socket, sockets::RECEIVING, key)
    }

    fn expect_no_padding(&self, socket: BorrowedFd<'_>, expected: bool) -> io::Result<()> {
        sockets::expect_no_padding(socket, expected)
    }

    fn receive(&self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Opened> {
        receiving::receive(socket, buffer)
    }

    fn sequence(&self, socket: BorrowedFd<'_>, version: Version, cipher: Cipher) -> io::Result<u64> {
        sockets::sequence(socket, version, cipher)
    }

    fn carriers(&self, socket: BorrowedFd<'_>) -> io::Result<Carriers> {
        carrier::of(socket)
    }

    fn leaves_by(&self, socket: BorrowedFd<'_>) -> io::Result<String> {
        let both = socket2::SockRef::from(&socket);
        let addresses = both.local_addr()?.as_socket().zip(both.peer_addr()?.as_socket());
        let (local, peer) = addresses.ok_or(io::ErrorKind::Unsupported)?;
        crate::adapter::towards(socket, local.ip(), peer.ip())
    }

    fn handed_over(&self) -> io::Result<HandedOver> {
        let statistics = statistics()?;
        let of = |name: &str| {
            statistics.iter().find(|statistic| statistic.name == name).map_or(0, |statistic| statistic.value)
        };
        Ok(HandedOver { to_adapters: of("TlsTxDevice"), to_software: of("TlsTxSw") })
    }

    fn set_zero_copy(&self, socket: BorrowedFd<'_>, allowed: bool) -> io::Result<()> {
        sockets::set_zero_copy(socket, allowed)
    }

    fn send_control(&self, socket: BorrowedFd<'_>, content_type: u8, bytes: &[u8]) -> io::Result<()> {
        sockets::send_control(socket, content_type, bytes)
    }

    fn taken_bytes(&self, socket: BorrowedFd<'_>) -> io::Result<u64> {
        // In this order: what is acknowledged in between is missing in both, so the sum is never too much.
        let acknowledged = socket::acknowledged_bytes(&socket).ok_or(io::ErrorKind::NotConnected)?;
        let rest = socket::unacknowledged_bytes(&socket).ok_or(io::ErrorKind::NotConnected)?;
        Ok(acknowledged + rest)
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
