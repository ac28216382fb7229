//! Sockets as the engines need them: listeners shared by port, sends that never raise SIGPIPE, `sendfile`.

use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags},
};
pub use socket2::Socket;
use socket2::{Domain, Protocol, SockRef, Type};
use std::{
    fs::File,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
};

/// Connections that the kernel may hold until they are accepted; it clamps this to `net.core.somaxconn`.
pub const BACKLOG: i32 = 4096;

/// Binds and listens. With `shared`, several sockets (one per worker) may listen on the same port (`SO_REUSEPORT`).
///
/// # Errors
/// The kernel's: in use, not permitted, no such address.
pub fn listen(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if shared {
        socket.set_reuse_port(true)?;
    }
    if address.is_ipv6() {
        // Each family has its own listener, so that [::] and 0.0.0.0 can be configured side by side.
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    // Before the first connection can be made: it inherits the option when the kernel makes it, not when it is accepted.
    socket.set_tcp_nodelay(true)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Two sockets connected to each other over 127.0.0.1, neither of which waits. With `buffer_bytes` the first sends
/// from, and the second receives into, a buffer of about this size: it is soon full.
///
/// # Errors
/// The kernel's: no loopback interface, no port, no descriptor.
pub fn connected_pair(buffer_bytes: Option<usize>) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let theirs = Socket::new(Domain::IPV4, Type::STREAM.cloexec(), Some(Protocol::TCP))?;
    if let Some(bytes) = buffer_bytes {
        // Before connecting, which is when the window's scale is agreed.
        theirs.set_recv_buffer_size(bytes)?;
    }
    theirs.connect(&listener.local_addr()?.into())?;
    let own_address = theirs.local_addr()?.as_socket();
    loop {
        let (ours, peer) = listener.accept()?;
        // Somebody else on this machine may have been quicker.
        if Some(peer) != own_address {
            continue;
        }
        let ours = Socket::from(ours);
        if let Some(bytes) = buffer_bytes {
            ours.set_send_buffer_size(bytes)?;
        }
        for socket in [&ours, &theirs] {
            socket.set_nonblocking(true)?;
            socket.set_tcp_nodelay(true)?;
        }
        return Ok((ours.into(), theirs.into()));
    }
}

/// Sets on a listener what every connection it takes inherits: no delay of small segments (without that the end of a
/// response waits for the acknowledgement of the one before, which clients that pipeline delay by 40 ms), and
/// `not_sent_low_water_bytes`, below which a socket counts as writable (`TCP_NOTSENT_LOWAT`: bytes wait in the file,
/// where they cost no memory, not in the kernel; `None` is the system's own). Set once here, it costs no system call for each connection.
///
/// # Errors
/// The kernel's.
pub fn prepare_listener(socket: &impl AsFd, not_sent_low_water_bytes: Option<u32>) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    // 0 is the system's own mark, which takes back one that was set before.
    socket.set_tcp_notsent_lowat(not_sent_low_water_bytes.unwrap_or(0))
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

/// Sets the mark of [`prepare_listener`] on one connection.
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn set_not_sent_low_water(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    SockRef::from(socket).set_tcp_notsent_lowat(bytes)
}

/// Takes [`prepare_listener`]'s low water mark back for one connection. What the kernel seals it may hold back in
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

/// Whether more bytes follow at once, so that the kernel may hold a part-filled segment back (`MSG_MORE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// More bytes follow at once.
    More,
    /// These are the last for now.
    Nothing,
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

/// The most bytes of this connection that the kernel hands to a device in one piece: [`whole_segments`] of its own.
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn burst_bytes(socket: &impl AsFd) -> io::Result<usize> {
    Ok(whole_segments(segment_bytes(socket)?))
}

/// The most bytes of a segment, TCP's options taken off (`TCP_MAXSEG`, tcp(7)).
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn segment_bytes(socket: &impl AsFd) -> io::Result<usize> {
    Ok(SockRef::from(socket).tcp_mss()? as usize)
}

/// Whether this connection's congestion control spaces what it sends in time, as BBR does.
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn is_paced(socket: &impl AsFd) -> io::Result<bool> {
    Ok(rustix::net::sockopt::tcp_congestion(socket)?.starts_with("bbr"))
}

/// The most bytes that the kernel hands to a device in one piece: whole segments that together fit 64 KiB
/// (`tcp_xmit_size_goal`, net/ipv4/tcp.c) less the kernel's room for headers (`MAX_TCP_HEADER` and one byte,
/// include/net/tcp.h, in its largest configuration), or one segment where that is larger, as on loopback. A device that
/// takes larger pieces gets several of these.
#[must_use]
pub fn whole_segments(segment_bytes: usize) -> usize {
    const PIECE_BYTES: usize = 64 * 1024 - (320 + 1);
    let segment_bytes = segment_bytes.max(1);
    (PIECE_BYTES / segment_bytes).max(1) * segment_bytes
}

/// Receives what there is without waiting: 0 once the peer has closed its side.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when there is nothing; else the connection is gone.
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::net::recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Err(Errno::INTR) => {}
            other => return Ok(other?.0),
        }
    }
}

/// Throws up to `scratch.len()` of the bytes that arrived away, without waiting, and says how many: 0 once the peer has
/// closed its side. Linux does not even copy them (`MSG_TRUNC`, tcp(7)), so `scratch` is not written to there.
///
/// # Errors
/// As [`receive`].
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

/// What a connection asks of its socket beyond the kernel's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketShape {
    /// The receive buffer, as given to `SO_RCVBUF`: the kernel doubles it, for its own use.
    pub receive_buffer_bytes: Option<u32>,
    /// The largest segment that the peer is to send (`TCP_MAXSEG`).
    pub segment_bytes: Option<u32>,
}

/// Begins to connect, from `source` if one is given; the socket is writable once that is over, and
/// [`connect_result`] tells how it went. Small segments are sent at once.
///
/// # Errors
/// The kernel's: [`io::ErrorKind::AddrNotAvailable`] when no local port is free.
pub fn connect(address: SocketAddr, source: Option<IpAddr>, shape: SocketShape) -> io::Result<Socket> {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    // Both before connecting: window scale and segment size are agreed on then.
    if let Some(bytes) = shape.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    if let Some(bytes) = shape.segment_bytes {
        socket.set_tcp_mss(bytes)?;
    }
    if let Some(source) = source {
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(error),
        _ => Ok(socket),
    }
}

/// How a connection that was begun by [`connect`] came out, once its socket is writable.
///
/// # Errors
/// Why there is none.
pub fn connect_result(socket: &Socket) -> io::Result<()> {
    match socket.take_error()? {
        Some(error) => Err(error),
        None => Ok(()),
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

/// Whether the socket counts as writable: there is real room, and little waits unsent (`TCP_NOTSENT_LOWAT`). If it is
/// not, the kernel notes that a wake-up is wanted, as after a send that found no room, and wakes the thread that polls
/// (`tcp_poll`, net/ipv4/tcp.c, sets `SOCK_NOSPACE`). A socket with a fault counts as writable: the send will tell.
#[must_use]
pub fn is_writable(socket: &impl AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut sockets = [PollFd::new(socket, PollFlags::OUT)];
    let polled = poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    polled.map_or(true, |ready| ready > 0)
}

/// Whether something waits to be received: bytes, the peer's end, or a fault.
#[must_use]
pub fn is_readable(socket: &impl AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut sockets = [PollFd::new(socket, PollFlags::IN)];
    let polled = poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    polled.map_or(true, |ready| ready > 0)
}

/// Bytes that the peer's system has acknowledged since the connection was made. `None` where the system does not tell.
#[must_use]
pub fn acknowledged_bytes(socket: &impl AsFd) -> Option<u64> {
    /// `tcpi_bytes_acked`, since Linux 4.1, is the sixteenth: before it are 8 fields of one byte, 24 of four, and two
    /// pacing rates of eight.
    const ACKNOWLEDGED: usize = 15;
    tcp_info::<{ ACKNOWLEDGED + 1 }>(socket).map(|info| info[ACKNOWLEDGED])
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

/// The socket counts as readable once so many bytes have come, or the peer has ended (`SO_RCVLOWAT`, socket(7)). More
/// than will come is never woken for: the caller knows how many are certain.
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn set_receive_low_water(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: the option takes one `int`, whose address and size are given; it is read before the call returns.
    let result = unsafe {
        libc::setsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd()),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Tells the peer that nothing more will be sent, and lets it read what is under way (`shutdown(SHUT_WR)`).
///
/// # Errors
/// The kernel's, for a connection that is already gone.
pub fn finish_sending(socket: &impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(socket, rustix::net::Shutdown::Write)?)
}

/// Has the kernel throw away what still waits in the socket when it is closed, and reset the connection: no byte leaves
/// after that, not even one that was sent before and got lost (`SO_LINGER` of no time).
///
/// # Errors
/// The kernel's, for what is no socket.
pub fn reset_when_closed(socket: &impl AsFd) -> io::Result<()> {
    SockRef::from(socket).set_linger(Some(std::time::Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::Read,
        thread,
        time::{Duration, Instant},
    };

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

    /// Waits for what the kernel does in its own time.
    fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let give_up = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < give_up, "it never came: {what}");
            thread::sleep(Duration::from_millis(1));
        }
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
    fn what_waits_is_thrown_away_by_a_reset() {
        let (ours, mut theirs) = connected_pair(Some(4096)).unwrap();
        let mut sent_bytes = 0;
        while let Ok(bytes) = send(&ours, &[7; 65_536], Follows::Nothing) {
            sent_bytes += bytes;
        }
        reset_when_closed(&ours).unwrap();
        drop(ours);
        theirs.set_nonblocking(false).unwrap();
        theirs.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut received = Vec::new();
        let error = theirs.read_to_end(&mut received).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(received.len() < sent_bytes, "{} of {sent_bytes}", received.len());
    }

    #[test]
    fn a_refused_connection_is_told() {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = connect(address, None, SocketShape::default()).and_then(|socket| {
            until("how it came out", || is_writable(&socket));
            connect_result(&socket)
        });
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
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
