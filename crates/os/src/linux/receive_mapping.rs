//! Receiving without a copy: the kernel puts the pages that segments arrived in into a mapping of ours
//! (`TCP_ZEROCOPY_RECEIVE`).
//!
//! Only whole pages can be mapped: 4096 bytes of data that begin where a page begins. That takes segments of as many bytes as
//! pages have, or a multiple (an MTU above 4096), and an adapter that puts headers elsewhere (header split). What cannot be
//! mapped is copied, as `recv` would; [`Obstacle`] says why.
//!
//! Sources: `tcp_zerocopy_receive` in `net/ipv4/tcp.c`, 5.11 and later; `struct tcp_zerocopy_receive` in
//! `include/uapi/linux/tcp.h`.

use crate::{receive_mapping::Received, socket};
use rustix::mm::{MapFlags, ProtFlags};
use std::{
    fmt, io, mem,
    os::fd::{AsFd, AsRawFd},
    ptr::{self, NonNull},
};

/// `struct tcp_zerocopy_receive`.
#[repr(C)]
#[derive(Default)]
struct Request {
    address: u64,
    length: u32,
    recv_skip_hint: u32,
    inq: u32,
    err: i32,
    copybuf_address: u64,
    copybuf_len: i32,
    flags: u32,
    msg_control: u64,
    msg_controllen: u64,
    msg_flags: u32,
    reserved: u32,
}

/// A mapping into which one connection's segments are put, and memory for what cannot be.
///
/// It keeps the connection open, whatever becomes of its socket: drop both.
pub struct ReceiveMapping {
    start: NonNull<u8>,
    length_bytes: usize,
    copy: Vec<u8>,
}

impl ReceiveMapping {
    /// A mapping of `length_bytes` for `socket`, rounded up to whole pages. What cannot be mapped is copied in parts of
    /// `copy_bytes` at most.
    ///
    /// # Errors
    /// The kernel's: it is no TCP socket, or one of a kernel that cannot do this (before Linux 4.18); no address space.
    pub fn new(socket: &impl AsFd, length_bytes: usize, copy_bytes: usize) -> io::Result<Self> {
        // The kernel's lengths have 32 bits.
        let length_bytes = length_bytes
            .clamp(1, 1 << 30)
            .checked_next_multiple_of(rustix::param::page_size())
            .ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a null hint lets the kernel choose an address that is not in use; nothing existing is replaced.
        let mapped = unsafe {
            rustix::mm::mmap(ptr::null_mut(), length_bytes, ProtFlags::READ, MapFlags::SHARED, socket, 0)
        }?;
        let start = NonNull::new(mapped.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length_bytes, copy: vec![0; copy_bytes.clamp(1, 1 << 30)] })
    }

    /// Receives what there is, without waiting; nothing at all once the peer has closed its side.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is nothing; `EOPNOTSUPP`, `EINVAL`, `ENOPROTOOPT`: the kernel cannot do this for
    /// this socket; else the connection is gone.
    pub fn receive(&mut self, socket: &impl AsFd) -> io::Result<Received<'_>> {
        let request = self.ask(socket)?;
        let mapped_bytes = (request.length as usize).min(self.length_bytes);
        let mut copied_bytes = usize::try_from(request.copybuf_len).unwrap_or(0).min(self.copy.len());
        if mapped_bytes == 0 && copied_bytes == 0 {
            // Nothing that could be mapped, nor a rest that is short; or nothing at all, or the end.
            let limit = match request.recv_skip_hint as usize {
                0 => self.copy.len(),
                hint => hint.min(self.copy.len()),
            };
            copied_bytes = socket::receive(socket, &mut self.copy[..limit])?;
        }
        // SAFETY: the kernel has put pages into the first `mapped_bytes` of the mapping, which lives as long as `self`. They stay
        // until the next request, for which `self` has to be borrowed anew. It is pages of received data alone that it puts
        // there (`can_map_frag`: no page of a file or of another process' memory), to which nobody writes.
        let mapped = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), mapped_bytes) };
        Ok(Received { mapped, copied: &self.copy[..copied_bytes] })
    }

    fn ask(&mut self, socket: &impl AsFd) -> io::Result<Request> {
        let mut request = Request {
            address: self.start.as_ptr() as u64,
            // Clamped when it was made.
            length: self.length_bytes as u32,
            copybuf_address: self.copy.as_mut_ptr() as u64,
            copybuf_len: self.copy.len() as i32,
            ..Request::default()
        };
        let mut length = mem::size_of::<Request>() as libc::socklen_t;
        // SAFETY: `request` is `length` bytes of plain numbers, which the kernel reads and fills in. Its addresses are those of our
        // mapping, whose pages the kernel replaces, and of memory that nothing else refers to, into which it copies; both are as
        // long as is said there. No reference into either exists: `receive` borrows `self` exclusively.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_ZEROCOPY_RECEIVE,
                (&raw mut request).cast(),
                &raw mut length,
            )
        };
        if result == 0 {
            // An error of copying leaves the bytes where they are: the next call tells.
            return Ok(request);
        }
        match io::Error::last_os_error() {
            // Behind the last byte, once the peer has closed its side: a `recv` says so.
            error if error.raw_os_error() == Some(libc::EIO) => Ok(Request::default()),
            error => Err(error),
        }
    }
}

impl Drop for ReceiveMapping {
    fn drop(&mut self) {
        // SAFETY: exactly our own mapping, to which no reference outlives `self`.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length_bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

// SAFETY: like a Box<[u8]>, it owns its memory and hands out nothing but plain references to it.
unsafe impl Send for ReceiveMapping {}

impl fmt::Debug for ReceiveMapping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a mapping of {} received bytes", self.length_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pages::Pages,
        socket::{Follows, connected_pair},
        zero_copy::{Notices, ZeroCopySend},
    };
    use std::{
        io::Write,
        time::{Duration, Instant},
    };

    const TOTAL_BYTES: usize = 300_001;

    fn content() -> Vec<u8> {
        (0..TOTAL_BYTES).map(|index| (index % 251) as u8).collect()
    }

    /// Everything that `send` sends, and how much of it was mapped.
    fn received(mut send: impl FnMut(&std::net::TcpStream, &mut usize)) -> (Vec<u8>, usize) {
        let (ours, theirs) = connected_pair(None).unwrap();
        let mut mapping = ReceiveMapping::new(&theirs, 60_000, 10_000).unwrap();
        let (mut all, mut mapped_bytes, mut sent_bytes) = (Vec::new(), 0, 0);
        let deadline = Instant::now() + Duration::from_secs(20);
        while all.len() < TOTAL_BYTES {
            send(&ours, &mut sent_bytes);
            match mapping.receive(&theirs) {
                Ok(received) => {
                    mapped_bytes += received.mapped.len();
                    all.extend_from_slice(received.mapped);
                    all.extend_from_slice(received.copied);
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
            }
            assert!(Instant::now() < deadline, "it stalled at {}", all.len());
        }
        drop(ours);
        loop {
            match mapping.receive(&theirs) {
                Ok(received) => {
                    assert_eq!(received, Received { mapped: &[], copied: &[] }, "the end");
                    break;
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
            }
            assert!(Instant::now() < deadline);
        }
        (all, mapped_bytes)
    }

    #[test]
    fn every_byte_arrives_in_order_mapped_or_not() {
        let content = content();
        let (all, _) = received(|mut ours, sent_bytes| {
            let end = (*sent_bytes + 23_456).min(TOTAL_BYTES);
            if let Ok(bytes) = ours.write(&content[*sent_bytes..end]) {
                *sent_bytes += bytes;
            }
        });
        assert!(all == content);
    }

    /// Loopback copies what was lent into pages of its own: those can be mapped, but for the end of each segment.
    #[test]
    fn pages_that_were_lent_are_mapped_where_they_arrive() {
        let content = content();
        let mut pages = Pages::new(TOTAL_BYTES).unwrap();
        pages[..TOTAL_BYTES].copy_from_slice(&content);
        let mut notices = None;
        let (all, mapped_bytes) = received(|ours, sent_bytes| {
            let notices = notices.get_or_insert_with(|| Notices::of(ours).unwrap());
            let end = (*sent_bytes + 40_960).min(TOTAL_BYTES);
            if let Ok(bytes) = notices.send(ours.as_fd(), &pages, *sent_bytes..end, Follows::Nothing) {
                *sent_bytes += bytes;
            }
        });
        assert!(all == content);
        assert!(mapped_bytes > 0, "none of {TOTAL_BYTES} bytes was mapped");
    }

    #[test]
    fn what_is_no_tcp_socket_is_refused() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(ReceiveMapping::new(&socket, 4096, 4096).is_err());
    }
}
