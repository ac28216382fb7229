//! The kernel itself.

use super::{CMSG_SPACE_1, KernelTls, Sockets, TlsEnable, layout};
use crate::{
    freebsd::sysctl,
    kernel_tls::{Calls, Carrier, Carriers, DirectionKey, Habits, HandedOver, Opened, Statistic, System},
    socket::{self, Follows},
};
use linerate_suite::{Cipher, Version};
use std::{
    ffi::{c_int, c_void},
    fs::File,
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
    sync::OnceLock,
};

/// FreeBSD's kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kernel;

fn outcome(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Sockets for Kernel {
    fn enable_sending(&self, socket: BorrowedFd<'_>, key: &TlsEnable<'_>) -> io::Result<()> {
        // SAFETY: `key` is a `struct tls_enable` of the length that is given, whose pointers are to bytes of the lengths in it;
        // all are borrowed for the call, which copies them (`ktls_copyin_tls_enable`).
        outcome(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                layout::TCP_TXTLS_ENABLE,
                key.address(),
                mem::size_of::<TlsEnable<'_>>() as libc::socklen_t,
            )
        })
    }

    fn sending_mode(&self, socket: BorrowedFd<'_>) -> io::Result<c_int> {
        let mut mode: c_int = layout::TCP_TLS_MODE_NONE;
        let mut length = mem::size_of::<c_int>() as libc::socklen_t;
        // SAFETY: `mode` is `length` bytes that the kernel may fill in; it writes no more.
        outcome(unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                layout::TCP_TXTLS_MODE,
                (&raw mut mode).cast(),
                &raw mut length,
            )
        })?;
        Ok(mode)
    }

    fn set_sending_mode(&self, socket: BorrowedFd<'_>, mode: c_int) -> io::Result<()> {
        // SAFETY: the option takes one `int`, whose address and size are given; it is read before the call returns.
        outcome(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                layout::TCP_TXTLS_MODE,
                (&raw const mode).cast(),
                mem::size_of::<c_int>() as libc::socklen_t,
            )
        })
    }

    fn send_message(&self, socket: BorrowedFd<'_>, bytes: &[u8], control: &[u8]) -> io::Result<usize> {
        /// Aligned for a header.
        #[repr(C, align(8))]
        struct Aligned([u8; CMSG_SPACE_1]);
        let mut aligned = Aligned([0; CMSG_SPACE_1]);
        let length = control.len().min(CMSG_SPACE_1);
        aligned.0[..length].copy_from_slice(&control[..length]);
        let mut payload =
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(), iov_len: bytes.len() };
        // SAFETY: a msghdr is made of integers and pointers; zeros are a valid value of it.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut payload;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut aligned).cast::<c_void>();
        message.msg_controllen = length as libc::socklen_t;
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the message points to `bytes` and to `aligned`, with their lengths; both are only read, and live beyond the call.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        socket::send(&socket, bytes, Follows::Nothing)
    }

    fn send_file(
        &self,
        socket: BorrowedFd<'_>,
        file: &File,
        offset: u64,
        length_bytes: usize,
        flags: c_int,
    ) -> (io::Result<()>, u64) {
        let Ok(offset) = libc::off_t::try_from(offset) else {
            return (Err(io::ErrorKind::InvalidInput.into()), 0);
        };
        let mut sent: libc::off_t = 0;
        // SAFETY: no headers are given, and `sent` is memory for the one number that the kernel writes.
        let result = outcome(unsafe {
            libc::sendfile(
                file.as_raw_fd(),
                socket.as_raw_fd(),
                offset,
                length_bytes,
                ptr::null_mut(),
                &raw mut sent,
                flags,
            )
        });
        (result, u64::try_from(sent).unwrap_or(0))
    }

    fn leaves_by(&self, socket: BorrowedFd<'_>) -> io::Result<String> {
        let both = socket2::SockRef::from(&socket);
        let addresses = both.local_addr()?.as_socket().zip(both.peer_addr()?.as_socket());
        let (local, peer) = addresses.ok_or(io::ErrorKind::Unsupported)?;
        crate::adapter::towards(socket, local.ip(), peer.ip())
    }
}

/// The counts of the whole machine (`kern.ipc.tls.stats.…`) by the last parts of their names, and the sessions that are active.
///
/// # Errors
/// The kernel's: it was built without kernel TLS.
pub fn statistics() -> io::Result<Vec<Statistic>> {
    const NAMES: [&str; 11] = [
        "stats.offload_total",
        "stats.enable_calls",
        "stats.active",
        "stats.switch_to_ifnet",
        "stats.switch_to_sw",
        "stats.switch_failed",
        "sw.gcm",
        "sw.chacha20",
        "ifnet.gcm",
        "ifnet.chacha20",
        "toe.gcm",
    ];
    sysctl::number("kern.ipc.tls.enable")?;
    let told = NAMES.into_iter().filter_map(|name| {
        let value = sysctl::number(&format!("kern.ipc.tls.{name}")).ok()?;
        Some(Statistic { name: name.to_owned(), value })
    });
    Ok(told.collect())
}

/// Kernel TLS is a part of the kernel.
pub const IS_A_MODULE: bool = false;

/// Whether [`Calls::receive`] failed because the next key is missing: it never does so here.
#[must_use]
pub fn lacks_next_key(_: &io::Error) -> bool {
    false
}

const CALLS: KernelTls<Kernel> = KernelTls(Kernel);

impl Calls for System {
    /// Records are no longer than `kern.ipc.tls.maxlen`, which is set at boot.
    fn habits(&self) -> Habits {
        static LONGEST_BYTES: OnceLock<u64> = OnceLock::new();
        let longest_bytes =
            LONGEST_BYTES.get_or_init(|| sysctl::number("kern.ipc.tls.maxlen").unwrap_or(u64::MAX).max(1));
        let habits = CALLS.habits();
        Habits { least_record_bytes: habits.least_record_bytes.min(*longest_bytes), ..habits }
    }

    fn attach(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        CALLS.attach(socket)
    }

    fn install(&self, socket: BorrowedFd<'_>, key: &DirectionKey<'_>) -> io::Result<()> {
        CALLS.install(socket, key)
    }

    fn install_receiving(&self, socket: BorrowedFd<'_>, key: &DirectionKey<'_>) -> io::Result<()> {
        CALLS.install_receiving(socket, key)
    }

    fn expect_no_padding(&self, socket: BorrowedFd<'_>, expected: bool) -> io::Result<()> {
        CALLS.expect_no_padding(socket, expected)
    }

    fn receive(&self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Opened> {
        CALLS.receive(socket, buffer)
    }

    fn sequence(&self, socket: BorrowedFd<'_>, version: Version, cipher: Cipher) -> io::Result<u64> {
        CALLS.sequence(socket, version, cipher)
    }

    fn carriers(&self, socket: BorrowedFd<'_>) -> io::Result<Carriers> {
        CALLS.carriers(socket)
    }

    fn set_carrier(&self, socket: BorrowedFd<'_>, carrier: Carrier) -> io::Result<()> {
        CALLS.set_carrier(socket, carrier)
    }

    fn leaves_by(&self, socket: BorrowedFd<'_>) -> io::Result<String> {
        CALLS.leaves_by(socket)
    }

    fn handed_over(&self) -> io::Result<HandedOver> {
        CALLS.handed_over()
    }

    fn set_zero_copy(&self, socket: BorrowedFd<'_>, allowed: bool) -> io::Result<()> {
        CALLS.set_zero_copy(socket, allowed)
    }

    fn send_control(&self, socket: BorrowedFd<'_>, content_type: u8, bytes: &[u8]) -> io::Result<()> {
        CALLS.send_control(socket, content_type, bytes)
    }

    fn taken_bytes(&self, socket: BorrowedFd<'_>) -> io::Result<u64> {
        CALLS.taken_bytes(socket)
    }

    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8], follows: Follows) -> io::Result<usize> {
        CALLS.send(socket, bytes, follows)
    }

    fn send_file(
        &self,
        socket: BorrowedFd<'_>,
        file: &File,
        offset: u64,
        length_bytes: usize,
    ) -> io::Result<usize> {
        CALLS.send_file(socket, file, offset, length_bytes)
    }
}
