//! What the engines ask of sockets, as FreeBSD has it.

use super::{
    kernel_tls::{
        self,
        layout::{TCP_FUNCTION_NAME_LEN_MAX, TCP_FUNCTION_SET_BYTES},
    },
    tcp_info::Info,
};
use crate::socket::Follows;
use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags},
};
use socket2::Socket;
use std::{
    ffi::c_int,
    fs::File,
    io, mem,
    os::fd::{AsFd, AsRawFd},
};

/// Has several sockets listen on the same port, among which the kernel divides connections (`SO_REUSEPORT_LB`).
/// `SO_REUSEPORT` would give all of them to one.
///
/// # Errors
/// The kernel's.
pub(crate) fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port_lb(true)
}

/// FreeBSD's listeners have no filter that drops segments with SYN: a listener that is closed ends the connections that wait
/// in its queue.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`], always.
pub fn begin_no_connections(_: &impl AsFd) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Takes [`begin_no_connections`] back, which does nothing here.
pub fn begin_connections_again(_: &impl AsFd) {}

fn set_option(socket: &impl AsFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the options set here take one `int`, whose address and size are given; it is read before the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            mem::size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The room from which on a socket is writable by default (`so_snd.sb_lowat`, sys/kern/uipc_sockbuf.c).
const LEAST_ROOM_BYTES: c_int = 2048;

/// FreeBSD has no mark for what was not sent (`TCP_NOTSENT_LOWAT`). It has one for the room (`SO_SNDLOWAT`): a full socket is
/// writable again once so many bytes fit, which spares the small sends that a lower mark would wake for.
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn set_not_sent_low_water(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX).max(LEAST_ROOM_BYTES);
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDLOWAT, bytes)
}

/// The mark of a socket; 0 is the system's own.
///
/// # Errors
/// The kernel's.
pub fn not_sent_low_water(socket: &impl AsFd) -> io::Result<u32> {
    let mut bytes: c_int = 0;
    let mut length = mem::size_of::<c_int>() as libc::socklen_t;
    // SAFETY: `bytes` is `length` bytes that the kernel may fill in; it writes no more.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_SNDLOWAT,
            (&raw mut bytes).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(if bytes == LEAST_ROOM_BYTES { 0 } else { bytes.unsigned_abs() })
}

/// Takes [`set_not_sent_low_water`] back.
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn clear_not_sent_low_water(socket: &impl AsFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDLOWAT, LEAST_ROOM_BYTES)
}

/// Holds segments that are not full back (`TCP_NOPUSH`), or lets them go: for the length of a long response, so that
/// none of the calls that it is sent by ends in a small segment. Letting go sends what waits (`tcp_default_ctloutput`).
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn hold_small_segments(socket: &impl AsFd, held: bool) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_NOPUSH, held.into())
}

/// Sends what the socket takes without waiting. Never raises SIGPIPE. FreeBSD gives programs no `MSG_MORE`: a part-filled
/// segment leaves at once, unless [`hold_small_segments`] holds it.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] on a full socket; else the connection is gone.
pub fn send(socket: &impl AsFd, bytes: &[u8], _: Follows) -> io::Result<usize> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match rustix::net::send(socket, bytes, flags) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Whether this connection's congestion control spaces what it sends in time. On FreeBSD such ones are TCP stacks of their own,
/// BBR and RACK (`TCP_FUNCTION_BLK`, tcp(4)).
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn is_paced(socket: &impl AsFd) -> io::Result<bool> {
    let stack = stack(socket)?;
    Ok(stack.contains("bbr") || stack.contains("rack"))
}

/// The name of the TCP stack that a connection is in: `freebsd`, `rack`, `bbr`.
fn stack(socket: &impl AsFd) -> io::Result<String> {
    let mut set = [0_u8; TCP_FUNCTION_SET_BYTES];
    let mut length = set.len() as libc::socklen_t;
    // SAFETY: `set` is `length` bytes that the kernel may fill in; it writes no more.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_FUNCTION_BLK,
            (&raw mut set).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let name = set[..TCP_FUNCTION_NAME_LEN_MAX].split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Throws up to `scratch.len()` of the bytes that arrived away, without waiting, and says how many: 0 once the peer has
/// closed its side. FreeBSD copies them into `scratch`: `MSG_TRUNC` is for datagrams there.
///
/// # Errors
/// As [`crate::socket::receive`].
pub fn discard(socket: &impl AsFd, scratch: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::net::recv(socket, &mut *scratch, RecvFlags::DONTWAIT) {
            Err(Errno::INTR) => {}
            other => return Ok(other?.0),
        }
    }
}

/// Sends up to `length_bytes` of `file` from `offset` on, from the page cache into the socket.
/// Returns the bytes sent; fewer than the socket has room for means that the file ends there.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] on a full socket; else the connection is gone or the file unreadable.
pub fn send_file(socket: &impl AsFd, file: &File, offset: u64, length_bytes: usize) -> io::Result<usize> {
    kernel_tls::send_file(&kernel_tls::Kernel, socket.as_fd(), file, offset, length_bytes)
}

/// Bytes that were sent and that the peer's system has not acknowledged yet, those that still wait in our kernel
/// included. It shrinks while nothing is sent if, and only if, the peer takes something. `None` where the system does
/// not tell.
#[must_use]
pub fn unacknowledged_bytes(socket: &impl AsFd) -> Option<u64> {
    use rustix::ioctl::{Getter, ioctl};
    // SAFETY: FIONWRITE takes no argument but a pointer to one `int`, which the kernel fills in (sys/kern/sys_socket.c); it
    // fails, with nothing written, on what is no socket.
    let bytes =
        unsafe { ioctl(socket, Getter::<{ libc::FIONWRITE as rustix::ioctl::Opcode }, c_int>::new()) };
    bytes.ok().and_then(|bytes| u64::try_from(bytes).ok())
}

/// Bytes that wait in our kernel and were not sent at all, because the peer's window, the congestion control or its pacing
/// hold them back. `None` where the system does not tell.
#[must_use]
pub fn not_sent_bytes(socket: &impl AsFd) -> Option<u64> {
    // In this order: what is acknowledged in between makes it less.
    let in_flight_bytes = Info::of(socket)?.in_flight_bytes();
    Some(unacknowledged_bytes(socket)?.saturating_sub(in_flight_bytes.into()))
}

/// The sequence number of the first byte that the peer's system has not acknowledged: FreeBSD tells that, and not where numbers
/// began. It grows by what is acknowledged, and begins again behind 2^32 - 1: [`acknowledged_between`]. `None` where the system does
/// not tell.
#[must_use]
pub fn acknowledged_bytes(socket: &impl AsFd) -> Option<u64> {
    Info::of(socket).map(|info| info.first_unacknowledged().into())
}

/// What was acknowledged between two answers of [`acknowledged_bytes`] of one connection, if that was less than 4 GiB.
#[must_use]
pub fn acknowledged_between(before_bytes: u64, now_bytes: u64) -> u64 {
    // Both are sequence numbers, of 32 bits.
    (now_bytes as u32).wrapping_sub(before_bytes as u32).into()
}

/// Bytes that the peer's system has acknowledged of a connection on which `sent_bytes` were sent.
#[must_use]
pub fn acknowledged_of(socket: &impl AsFd, sent_bytes: u64) -> Option<u64> {
    Some(sent_bytes.saturating_sub(unacknowledged_bytes(socket)?))
}

/// The part (0 to 1) of the bytes sent on a connection that were sent again. `None`: FreeBSD tells segments, and not of how many.
#[must_use]
pub fn retransmitted_share(_: &impl AsFd) -> Option<f64> {
    None
}

/// Bytes of data in the segments that arrive. `None` where the system does not tell.
#[must_use]
pub fn received_segment_bytes(socket: &impl AsFd) -> Option<u32> {
    Info::of(socket).map(|info| info.received_segment_bytes())
}
