//! Sockets as the engines need them: listeners shared by port, sends that never raise SIGPIPE, `sendfile`.

pub use crate::system::socket::{
    acknowledged_between, acknowledged_bytes, acknowledged_of, begin_connections_again, begin_no_connections,
    clear_not_sent_low_water, discard, hold_small_segments, is_paced, not_sent_bytes, not_sent_low_water,
    received_segment_bytes, retransmitted_share, send, send_file, set_not_sent_low_water,
    unacknowledged_bytes,
};
pub use socket2::Socket;

use crate::system;
use rustix::{io::Errno, net::RecvFlags};
use socket2::{Domain, Protocol, SockRef, Type};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
};

/// Connections that the kernel may hold until they are accepted; it clamps this to `net.core.somaxconn`.
pub const BACKLOG: i32 = 4096;

/// Binds and listens. With `shared`, several sockets (one per worker) may listen on the same port, among which the
/// kernel divides connections.
///
/// # Errors
/// The kernel's: in use, not permitted, no such address.
pub fn listen(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if shared {
        system::socket::share_port(&socket)?;
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
    SockRef::from(socket).set_tcp_nodelay(true)?;
    match not_sent_low_water_bytes {
        Some(bytes) => set_not_sent_low_water(socket, bytes),
        // One that was set before is taken back.
        None => clear_not_sent_low_water(socket),
    }
}

/// Whether more bytes follow at once, so that the kernel may hold a part-filled segment back (`MSG_MORE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// More bytes follow at once.
    More,
    /// These are the last for now.
    Nothing,
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
    connect_prepared(address, source, |socket| {
        // Both before connecting: window scale and segment size are agreed on then.
        if let Some(bytes) = shape.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes as usize)?;
        }
        if let Some(bytes) = shape.segment_bytes {
            socket.set_tcp_mss(bytes)?;
        }
        Ok(())
    })
}

/// The same for a socket that `prepare` gives its options before anything is sent.
///
/// # Errors
/// Those of [`connect`] and of `prepare`.
pub fn connect_prepared(
    address: SocketAddr,
    source: Option<IpAddr>,
    prepare: impl FnOnce(&Socket) -> io::Result<()>,
) -> io::Result<Socket> {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    prepare(&socket)?;
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
pub(crate) mod tests {
    use super::*;
    use std::{
        io::Read,
        thread,
        time::{Duration, Instant},
    };

    /// Waits for what the kernel does in its own time.
    pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let give_up = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < give_up, "it never came: {what}");
            thread::sleep(Duration::from_millis(1));
        }
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
}
