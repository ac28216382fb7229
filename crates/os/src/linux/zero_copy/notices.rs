//! `MSG_ZEROCOPY`: completions come as messages of the socket's error queue, each for a range of sends.

use crate::{
    pages::Pages,
    socket::Follows,
    zero_copy::{Completion, ZeroCopySend},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use std::{
    ffi::{c_int, c_void},
    io, mem,
    ops::Range,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::Duration,
};

/// A socket that was told that pages will be lent (`SO_ZEROCOPY`).
#[derive(Debug)]
pub struct Notices {
    _told: (),
}

impl Notices {
    /// Tells the socket. Of no effect on sends that lend nothing.
    ///
    /// # Errors
    /// The kernel's: before Linux 4.14 it knows no such option.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let on: c_int = 1;
        // SAFETY: the option takes one `int`, whose address and size are given; it is read before the call returns.
        let result = unsafe {
            libc::setsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ZEROCOPY,
                (&raw const on).cast(),
                mem::size_of::<c_int>() as libc::socklen_t,
            )
        };
        if result == 0 { Ok(Self { _told: () }) } else { Err(io::Error::last_os_error()) }
    }
}

impl ZeroCopySend for Notices {
    fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        memory: &Pages,
        range: Range<usize>,
        follows: Follows,
    ) -> io::Result<usize> {
        let bytes = memory.get(range).ok_or(io::ErrorKind::InvalidInput)?;
        let more = if follows == Follows::More { libc::MSG_MORE } else { 0 };
        let flags = libc::MSG_ZEROCOPY | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | more;
        loop {
            // SAFETY: `bytes` is readable for the length of the call. Behind it the kernel keeps the pages, not the address.
            let sent = unsafe {
                libc::send(socket.as_raw_fd(), bytes.as_ptr().cast::<c_void>(), bytes.len(), flags)
            };
            match usize::try_from(sent) {
                Ok(sent) => return Ok(sent),
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
    }

    fn completions(&mut self, socket: BorrowedFd<'_>, take: &mut dyn FnMut(Completion)) -> io::Result<()> {
        loop {
            match next_notice(socket) {
                Ok(Some(completion)) => take(completion),
                // A notice of another kind.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// A fault of the socket ends the wait, too: the next send will tell.
    fn wait(&mut self, socket: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
        // Notices in the error queue are POLLERR, which needs not be asked for.
        let mut sockets = [PollFd::new(&socket, PollFlags::empty())];
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        match poll(&mut sockets, Some(&limit)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Room for a `struct sock_extended_err` and the address behind it, aligned for a header.
#[repr(C, align(8))]
struct NoticeBuffer([u8; 128]);

/// Takes one message from the error queue.
fn next_notice(socket: BorrowedFd<'_>) -> io::Result<Option<Completion>> {
    let mut control = NoticeBuffer([0; 128]);
    // SAFETY: a msghdr is made of integers and pointers; zeros are a valid value of it.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    loop {
        message.msg_control = (&raw mut control).cast::<c_void>();
        message.msg_controllen = mem::size_of::<NoticeBuffer>() as _;
        // SAFETY: there is no room for data, and `control` is as long as `msg_controllen` says, and aligned for a header.
        let received = unsafe {
            libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
        };
        if received >= 0 {
            return Ok(notice(&message));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn notice(message: &libc::msghdr) -> Option<Completion> {
    const EXTENDED_ERROR_BYTES: usize = mem::size_of::<libc::sock_extended_err>();
    // SAFETY: `msg_control` and `msg_controllen` are what the kernel left: whole headers, within a buffer that is alive and
    // aligned for them. CMSG_FIRSTHDR is null where there is none. CMSG_LEN only computes. A header of that length has a
    // `sock_extended_err` behind it, which is made of integers, and read without regard to its alignment.
    let told = unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        let is_error = !header.is_null()
            && matches!(
                ((*header).cmsg_level, (*header).cmsg_type),
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
            )
            && (*header).cmsg_len as usize >= libc::CMSG_LEN(EXTENDED_ERROR_BYTES as u32) as usize;
        is_error.then(|| libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().read_unaligned())
    }?;
    completion(&told)
}

fn completion(told: &libc::sock_extended_err) -> Option<Completion> {
    /// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED`, include/uapi/linux/errqueue.h.
    const ORIGIN: u8 = 5;
    const COPIED: u8 = 1;
    (told.ee_errno == 0 && told.ee_origin == ORIGIN).then_some(Completion {
        first: told.ee_info,
        last: told.ee_data,
        copied: told.ee_code & COPIED != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::connected_pair;
    use std::{
        io::Read,
        net::{TcpListener, TcpStream},
        time::Instant,
    };

    fn pages_of(bytes: &[u8]) -> Pages {
        let mut pages = Pages::new(bytes.len()).unwrap();
        pages[..bytes.len()].copy_from_slice(bytes);
        pages
    }

    /// Sends all of `pages` in calls of `call_bytes`, reads it at the other end, and gives what was completed.
    fn through(
        ours: &TcpStream,
        theirs: &mut TcpStream,
        pages: &Pages,
        call_bytes: usize,
    ) -> Vec<Completion> {
        theirs.set_nonblocking(false).unwrap();
        let mut notices = Notices::of(ours).unwrap();
        let (mut sent_bytes, mut sends) = (0, 0);
        let mut received = vec![0; pages.len()];
        let mut completed = Vec::new();
        while sent_bytes < pages.len() {
            let range = sent_bytes..(sent_bytes + call_bytes).min(pages.len());
            let bytes = notices.send(ours.as_fd(), pages, range, Follows::Nothing).unwrap();
            theirs.read_exact(&mut received[sent_bytes..sent_bytes + bytes]).unwrap();
            sent_bytes += bytes;
            sends += 1;
        }
        assert!(received[..] == pages[..]);
        let deadline = Instant::now() + Duration::from_secs(20);
        let count =
            |completed: &[Completion]| completed.iter().map(|one| one.last - one.first + 1).sum::<u32>();
        while count(&completed) < sends {
            notices.wait(ours.as_fd(), Duration::from_secs(1)).unwrap();
            notices.completions(ours.as_fd(), &mut |completion| completed.push(completion)).unwrap();
            assert!(Instant::now() < deadline, "{completed:?} of {sends}");
        }
        completed
    }

    /// Every send is completed once, in both families, and on loopback the kernel says that it copied.
    #[test]
    fn every_send_is_completed_once() {
        let content: Vec<u8> = (0..200_000_u32).map(|index| (index % 251) as u8).collect();
        let pages = pages_of(&content);
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                eprintln!("SKIPPED every_send_is_completed_once: {address} cannot be had");
                continue;
            };
            let mut theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (ours, _) = listener.accept().unwrap();
            let completed = through(&ours, &mut theirs, &pages, 30_000);
            let mut next = 0;
            for Completion { first, last, copied } in completed {
                assert_eq!(first, next, "{address}");
                assert!(last >= first && copied, "{address}");
                next = last + 1;
            }
        }
    }

    #[test]
    fn nothing_is_lent_outside_of_the_memory() {
        let (ours, _theirs) = connected_pair(None).unwrap();
        let pages = Pages::new(1).unwrap();
        let mut notices = Notices::of(&ours).unwrap();
        let beyond = notices.send(ours.as_fd(), &pages, 1..pages.len() + 1, Follows::Nothing);
        assert_eq!(beyond.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(!notices.wait(ours.as_fd(), Duration::ZERO).unwrap());
        notices.completions(ours.as_fd(), &mut |completion| panic!("{completion:?}")).unwrap();
    }

    #[test]
    fn notices_of_other_kinds_complete_nothing() {
        let told = |ee_errno, ee_origin, ee_code| libc::sock_extended_err {
            ee_errno,
            ee_origin,
            ee_type: 0,
            ee_code,
            ee_pad: 0,
            ee_info: u32::MAX,
            ee_data: 3,
        };
        let of = |copied| Some(Completion { first: u32::MAX, last: 3, copied });
        assert_eq!(completion(&told(0, 5, 0)), of(false));
        assert_eq!(completion(&told(0, 5, 1)), of(true));
        assert_eq!(completion(&told(0, libc::SO_EE_ORIGIN_ICMP, 0)), None);
        assert_eq!(completion(&told(113, 5, 0)), None);
    }
}
