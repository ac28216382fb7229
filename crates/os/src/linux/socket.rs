//! What the engines ask of sockets, as Linux has it.

use crate::socket::Follows;
use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags},
};
use socket2::{SockRef, Socket};
use std::{fs::File, io, os::fd::AsFd};

/// Has several sockets listen on the same port, among which the kernel divides connections (`SO_REUSEPORT`).
///
/// # Errors
/// The kernel's.
pub(crate) fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

/// Has the kernel drop every segment with SYN, which would begin a connection to this listener. Connections that have begun
/// complete and can be accepted. Closing a listener resets every connection that it has not handed over yet, and `shutdown`
/// does the same on Linux; after this call no new connection is among them. A client whose SYN was dropped tries again a
/// second later. Connections inherit the filter: [`begin_connections_again`].
///
/// # Errors
/// The kernel's, which may have no socket filters.
pub fn begin_no_connections(listener: &impl AsFd) -> io::Result<()> {
    use libc::{BPF_ABS, BPF_B, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET};
    use socket2::SockFilter;
    const FLAGS_OFFSET: u32 = 13;
    const SYN: u32 = 2;
    // A TCP socket's filter sees the segment from its own header on. The codes fit 16 bits.
    SockRef::from(listener).attach_filter(&[
        SockFilter::new((BPF_LD | BPF_B | BPF_ABS) as u16, 0, 0, FLAGS_OFFSET),
        SockFilter::new((BPF_JMP | BPF_JSET | BPF_K) as u16, 1, 0, SYN),
        SockFilter::new((BPF_RET | BPF_K) as u16, 0, 0, u32::MAX),
        SockFilter::new((BPF_RET | BPF_K) as u16, 0, 0, 0),
    ])
}

/// Takes [`begin_no_connections`] back: for a listener that is wanted again, and for a connection that inherited it, which
/// would pay for it with each segment.
pub fn begin_connections_again(socket: &impl AsFd) {
    // It fails only where there is no filter.
    let _ = SockRef::from(socket).detach_filter();
}

/// Sets the mark of [`crate::socket::prepare_listener`] on one connection.
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn set_not_sent_low_water(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    SockRef::from(socket).set_tcp_notsent_lowat(bytes)
}

/// The mark of a socket; 0 is the system's own.
///
/// # Errors
/// The kernel's.
pub fn not_sent_low_water(socket: &impl AsFd) -> io::Result<u32> {
    SockRef::from(socket).tcp_notsent_lowat()
}

/// Takes [`crate::socket::prepare_listener`]'s low water mark back for one connection. What the kernel seals it may hold back in
/// segments that are not full; below a low mark the socket would count as full of bytes that do not leave.
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn clear_not_sent_low_water(socket: &impl AsFd) -> io::Result<()> {
    SockRef::from(socket).set_tcp_notsent_lowat(0)
}

/// Holds segments that are not full back (`TCP_CORK`), or lets them go: for the length of a long response, so that
/// none of the calls that it is sent by ends in a small segment.
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn hold_small_segments(socket: &impl AsFd, held: bool) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_tcp_cork(socket, held)?)
}

/// Sends what the socket takes without waiting. Never raises SIGPIPE.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] on a full socket; else the connection is gone.
pub fn send(socket: &impl AsFd, bytes: &[u8], follows: Follows) -> io::Result<usize> {
    let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if follows == Follows::More {
        flags |= SendFlags::MORE;
    }
    loop {
        match rustix::net::send(socket, bytes, flags) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Whether this connection's congestion control spaces what it sends in time, as BBR does.
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn is_paced(socket: &impl AsFd) -> io::Result<bool> {
    Ok(rustix::net::sockopt::tcp_congestion(socket)?.starts_with("bbr"))
}

/// Throws up to `scratch.len()` of the bytes that arrived away, without waiting, and says how many: 0 once the peer has
/// closed its side. Linux does not even copy them (`MSG_TRUNC`, tcp(7)), so `scratch` is not written to there.
///
/// # Errors
/// As [`crate::socket::receive`].
pub fn discard(socket: &impl AsFd, scratch: &mut [u8]) -> io::Result<usize> {
    let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
    loop {
        match rustix::net::recv(socket, &mut *scratch, flags) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            // With MSG_TRUNC the second is what the kernel says, the first what is in the buffer.
            Ok((_, received)) => return Ok(received),
        }
    }
}

/// Sends up to `length_bytes` of `file` from `offset` on, from the page cache into the socket.
/// Returns the bytes sent; fewer than the socket has room for means that the file ends there.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] on a full socket; else the connection is gone or the file unreadable.
pub fn send_file(socket: &impl AsFd, file: &File, offset: u64, length_bytes: usize) -> io::Result<usize> {
    let mut position = offset;
    loop {
        match rustix::fs::sendfile(socket, file, Some(&mut position), length_bytes) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Bytes that were sent and that the peer's system has not acknowledged yet, those that still wait in our kernel
/// included. It shrinks while nothing is sent if, and only if, the peer takes something. `None` where the system does
/// not tell.
#[must_use]
pub fn unacknowledged_bytes(socket: &impl AsFd) -> Option<u64> {
    // tcp(7): SIOCOUTQ is TIOCOUTQ.
    queued_bytes::<{ libc::TIOCOUTQ as rustix::ioctl::Opcode }>(socket)
}

/// Bytes that wait in our kernel and were not sent at all, because the peer's window, the congestion control or its pacing
/// hold them back. `None` where the system does not tell.
#[must_use]
pub fn not_sent_bytes(socket: &impl AsFd) -> Option<u64> {
    // include/uapi/linux/sockios.h: SIOCOUTQNSD.
    queued_bytes::<0x894B>(socket)
}

fn queued_bytes<const REQUEST: rustix::ioctl::Opcode>(socket: &impl AsFd) -> Option<u64> {
    use rustix::ioctl::{Getter, ioctl};
    // SAFETY: both requests take no argument but a pointer to one `int`, which the kernel fills in (net/ipv4/tcp.c,
    // tcp_ioctl); they fail, with nothing written, on what is no connected socket.
    let bytes = unsafe { ioctl(socket, Getter::<REQUEST, libc::c_int>::new()) };
    bytes.ok().and_then(|bytes| u64::try_from(bytes).ok())
}

/// Bytes that the peer's system has acknowledged since the connection was made. `None` where the system does not tell.
#[must_use]
pub fn acknowledged_bytes(socket: &impl AsFd) -> Option<u64> {
    /// `tcpi_bytes_acked`, since Linux 4.1, is the sixteenth: before it are 8 fields of one byte, 24 of four, and two
    /// pacing rates of eight.
    const ACKNOWLEDGED: usize = 15;
    tcp_info::<{ ACKNOWLEDGED + 1 }>(socket).map(|info| info[ACKNOWLEDGED])
}

/// What was acknowledged between two answers of [`acknowledged_bytes`] of one connection.
#[must_use]
pub fn acknowledged_between(before_bytes: u64, now_bytes: u64) -> u64 {
    now_bytes.saturating_sub(before_bytes)
}

/// Bytes that the peer's system has acknowledged of a connection on which `sent_bytes` were sent.
#[must_use]
pub fn acknowledged_of(socket: &impl AsFd, _sent_bytes: u64) -> Option<u64> {
    acknowledged_bytes(socket)
}

/// The part (0 to 1) of the bytes sent on a connection that were sent again. `None` where the system does not tell (Linux
/// does since 4.19), or nothing was sent.
#[must_use]
pub fn retransmitted_share(socket: &impl AsFd) -> Option<f64> {
    let info = tcp_info::<{ BYTES_SENT + 2 }>(socket)?;
    let (sent, again) = (info[BYTES_SENT], info[BYTES_SENT + 1]);
    (sent > 0).then(|| again as f64 / sent as f64)
}

/// Bytes of data in the segments that arrive, by the kernel's estimate (`tcpi_rcv_mss`). `None` where the system does not
/// tell.
#[must_use]
pub fn received_segment_bytes(socket: &impl AsFd) -> Option<u32> {
    // Behind eight fields of one byte, and two of four: `tcpi_snd_mss`, `tcpi_rcv_mss`.
    let info = tcp_info::<3>(socket)?;
    let [_, _, _, _, received @ ..] = info[2].to_ne_bytes();
    Some(u32::from_ne_bytes(received))
}

/// Where `tcpi_bytes_sent` is, and `tcpi_bytes_retrans` behind it: ten words behind `tcpi_bytes_acked` (bytes received; six
/// fields of four bytes; the delivery rate; three times; two fields of four bytes).
const BYTES_SENT: usize = 25;

/// The beginning of `struct tcp_info` (include/uapi/linux/tcp.h), which only ever grows at its end, in words of eight
/// bytes; `None` where this kernel's is shorter.
pub(crate) fn tcp_info<const WORDS: usize>(socket: &impl AsFd) -> Option<[u64; WORDS]> {
    use std::os::fd::AsRawFd;
    let mut info = [0u64; WORDS];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: `info` is `length` bytes of plain numbers that the kernel may fill in; it writes no more than `length`,
    // and says in it how much that was (net/ipv4/tcp.c, do_tcp_getsockopt).
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    (result == 0 && length as usize == size_of_val(&info)).then_some(info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{SocketShape, connect, connect_result, is_readable, listen, tests::until};
    use std::{io::Read, net::TcpStream, time::Duration};

    /// A client that has begun to connect and was not heard of since: with `TCP_DEFER_ACCEPT` the kernel completes a
    /// connection when its first bytes come.
    #[test]
    fn who_has_begun_to_connect_completes_and_nobody_else_begins() {
        use std::{io::Write, os::fd::AsRawFd};
        let listener = listen("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address = listener.local_addr().unwrap();
        let seconds: libc::c_int = 60;
        // SAFETY: the kernel reads an integer of the length given.
        let set = unsafe {
            libc::setsockopt(
                listener.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_DEFER_ACCEPT,
                (&raw const seconds).cast(),
                size_of_val(&seconds) as libc::socklen_t,
            )
        };
        assert_eq!(set, 0);
        let mut half_open = TcpStream::connect(address).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        begin_no_connections(&listener).unwrap();
        let late = connect(address, None, SocketShape::default()).unwrap();
        half_open.write_all(b"first").unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        assert_eq!(peer, half_open.local_addr().unwrap());
        begin_connections_again(&accepted);
        // Nothing of the other has come, whose segment was sent before.
        let state = rustix::net::sockopt::socket_error(&late).unwrap();
        assert!(state.is_ok() && late.peer_addr().is_err(), "it is still connecting");
        drop(listener);
        (&accepted).write_all(b"answered").unwrap();
        drop(accepted);
        half_open.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut answer = Vec::new();
        half_open
            .read_to_end(&mut answer)
            .map(|_| ())
            .or_else(|error| {
                // What it sent was not read: that is a reset behind the answer.
                if error.kind() == io::ErrorKind::ConnectionReset { Ok(()) } else { Err(error) }
            })
            .unwrap();
        assert_eq!(answer, b"answered");
    }

    #[test]
    fn what_is_thrown_away_is_counted_and_not_written() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = connect(
            listener.local_addr().unwrap(),
            Some("127.0.0.9".parse().unwrap()),
            SocketShape::default(),
        )
        .unwrap();
        let (mut peer, address) = listener.accept().unwrap();
        assert_eq!(address.ip().to_string(), "127.0.0.9");
        connect_result(&ours).unwrap();
        std::io::Write::write_all(&mut peer, &[7; 10_001]).unwrap();
        let mut scratch = vec![1; 6000];
        let mut discarded = 0;
        while discarded < 10_001 {
            match discard(&ours, &mut scratch) {
                Ok(bytes) => discarded += bytes,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert_eq!(discarded, 10_001);
        assert!(scratch.iter().all(|&byte| byte == 1));
        drop(peer);
        until("the peer's end", || is_readable(&ours));
        assert_eq!(discard(&ours, &mut scratch).unwrap(), 0);
    }

    #[test]
    fn what_the_peer_has_not_taken_is_told() {
        let listener = listen("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ours = loop {
            match listener.accept() {
                Ok((ours, _)) => break ours,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        assert_eq!((unacknowledged_bytes(&ours), acknowledged_bytes(&ours)), (Some(0), Some(0)));
        let mut sent_bytes = 0;
        while let Ok(bytes) = send(&ours, &[7; 65_536], Follows::Nothing) {
            sent_bytes += bytes;
        }
        let full = unacknowledged_bytes(&ours).unwrap();
        assert!(0 < full && full <= sent_bytes as u64, "{full} of {sent_bytes}");
        until("two equal readings around that of the other count", || {
            let left = unacknowledged_bytes(&ours).unwrap();
            let acknowledged = acknowledged_bytes(&ours).unwrap();
            if unacknowledged_bytes(&ours) != Some(left) {
                return false;
            }
            assert!(0 < left && left <= full, "what its buffer had no room for is left: {left}");
            assert_eq!(acknowledged, sent_bytes as u64 - left);
            true
        });
        peer.read_exact(&mut vec![0; sent_bytes]).unwrap();
        until("all was taken", || unacknowledged_bytes(&ours) == Some(0));
        assert_eq!(acknowledged_bytes(&ours), Some(sent_bytes as u64));
        let info = tcp_info::<{ BYTES_SENT + 2 }>(&ours).unwrap();
        let (sent, again) = (info[BYTES_SENT], info[BYTES_SENT + 1]);
        assert_eq!(sent - again, sent_bytes as u64);
        assert_eq!(retransmitted_share(&ours), Some(again as f64 / sent as f64));
        let no_socket = std::fs::File::open("/dev/null").unwrap();
        assert_eq!((unacknowledged_bytes(&no_socket), acknowledged_bytes(&no_socket)), (None, None));
        assert_eq!(retransmitted_share(&no_socket), None);
    }
}
