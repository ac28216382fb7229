//! Receiving what the kernel has opened: `recvmsg` with the record's type as a control message.
//!
//! `recvmsg` never mixes records of different types (`tls_sw_recvmsg`, net/tls/tls_sw.c). With a buffer for control messages it
//! names the type of what it gives, application data included. An end of the connection has no type: that is how it is told
//! from records that are empty.

use super::sockets::ControlBuffer;
use crate::kernel_tls::Opened;
use std::{
    ffi::{c_int, c_void},
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
};

/// `ContentType.application_data`
const APPLICATION_DATA: u8 = 23;

pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Opened> {
    let mut control = ControlBuffer([0; 32]);
    let mut payload = libc::iovec { iov_base: buffer.as_mut_ptr().cast::<c_void>(), iov_len: buffer.len() };
    // SAFETY: a msghdr is made of integers and pointers; zeros are a valid value of it.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut payload;
    message.msg_iovlen = 1;
    let received = loop {
        message.msg_control = (&raw mut control).cast::<c_void>();
        message.msg_controllen = mem::size_of::<ControlBuffer>() as _;
        // SAFETY: `payload` is `buffer`, which nothing else refers to and which may hold any bytes; `control` is as long as
        // `msg_controllen` says, and aligned for a header. The kernel writes to both, no more than their lengths.
        let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
        if received >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break received;
        }
    };
    let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    Ok(opened(record_type(&message), bytes))
}

/// The type of the record, if the kernel named one.
fn record_type(message: &libc::msghdr) -> Option<u8> {
    /// `TLS_GET_RECORD_TYPE`, include/uapi/linux/tls.h.
    const RECORD_TYPE: c_int = 2;
    // SAFETY: `msg_control` and `msg_controllen` are what the kernel left: whole headers, within a buffer that is alive and
    // aligned for them. CMSG_FIRSTHDR is null where there is none; a header of this length has a byte of data behind it.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        if header.is_null()
            || (*header).cmsg_level != libc::SOL_TLS
            || (*header).cmsg_type != RECORD_TYPE
            || ((*header).cmsg_len as usize) < libc::CMSG_LEN(1) as usize
        {
            return None;
        }
        Some(*libc::CMSG_DATA(header))
    }
}

fn opened(content_type: Option<u8>, bytes: usize) -> Opened {
    match content_type {
        None if bytes == 0 => Opened::End,
        None | Some(APPLICATION_DATA) => Opened::Data(bytes),
        Some(content_type) => Opened::Control { content_type, bytes },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernel_tls::{Calls, DirectionKey, System},
        socket::connected_pair,
    };
    use linerate_suite::{Cipher, Version};
    use std::{io::Write, os::fd::AsFd};

    #[test]
    fn an_end_is_told_from_records_that_are_empty() {
        assert_eq!(opened(None, 0), Opened::End);
        assert_eq!(opened(Some(23), 0), Opened::Data(0));
        assert_eq!(opened(Some(21), 0), Opened::Control { content_type: 21, bytes: 0 });
        assert_eq!(opened(None, 7), Opened::Data(7));
    }

    /// A socket without a key gives what was sent, and names no type.
    #[test]
    fn a_socket_in_the_clear_gives_bytes_and_then_the_end() {
        let (ours, mut theirs) = connected_pair(None).unwrap();
        let mut buffer = [0; 16];
        let empty = receive(ours.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
        theirs.write_all(b"in the clear").unwrap();
        assert_eq!(receive(ours.as_fd(), &mut buffer[..6]).unwrap(), Opened::Data(6));
        assert_eq!(receive(ours.as_fd(), &mut buffer[6..]).unwrap(), Opened::Data(6));
        assert_eq!(&buffer[..12], b"in the clear");
        drop(theirs);
        assert_eq!(receive(ours.as_fd(), &mut buffer).unwrap(), Opened::End);
    }

    /// What one socket's kernel sealed the other's opens, with the type of each record.
    #[test]
    fn the_kernel_opens_what_the_kernel_sealed() {
        let (ours, theirs) = connected_pair(None).unwrap();
        if System.attach(ours.as_fd()).is_err() {
            eprintln!("SKIPPED the_kernel_opens_what_the_kernel_sealed: no tls module here");
            return;
        }
        System.attach(theirs.as_fd()).unwrap();
        let key = DirectionKey {
            version: Version::Tls13,
            cipher: Cipher::Aes128Gcm,
            key: &[1; 16],
            vector: &[2; 12],
            sequence: 5,
        };
        System.install(ours.as_fd(), &key).unwrap();
        System.install_receiving(theirs.as_fd(), &key).unwrap();
        System.expect_no_padding(theirs.as_fd(), true).unwrap();
        (&ours).write_all(b"some data").unwrap();
        System.send_control(ours.as_fd(), 21, &[1, 0]).unwrap();
        let mut buffer = [0; 100];
        assert_eq!(receive(theirs.as_fd(), &mut buffer).unwrap(), Opened::Data(9));
        assert_eq!(&buffer[..9], b"some data");
        let alert = receive(theirs.as_fd(), &mut buffer).unwrap();
        assert_eq!((alert, &buffer[..2]), (Opened::Control { content_type: 21, bytes: 2 }, &[1, 0][..]));
        drop(ours);
        assert_eq!(receive(theirs.as_fd(), &mut buffer).unwrap(), Opened::End);
    }
}
