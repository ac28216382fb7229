//! Netlink: one question to the kernel, one answer.
//!
//! Layouts are those of `include/uapi/linux/netlink.h`: numbers in the byte order of the machine, parts padded to four
//! bytes.

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::io;

/// `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// `NLM_F_REQUEST`
const REQUEST: u16 = 1;
/// `NLMSG_ERROR`
const ERROR: u16 = 2;
/// The kernel makes no answer to a single question longer than a page or two.
const ANSWER_BYTES: usize = 16 * 1024;

/// Asks for one thing, and returns what follows the header of the answer. `kind` is the message's type; no protocol is that of routes (`NETLINK_ROUTE`, 0).
///
/// # Errors
/// The kernel's: of the socket (`EAFNOSUPPORT` where a sandbox has no `AF_NETLINK`), or its answer to the question.
pub(crate) fn ask(protocol: Option<Protocol>, kind: u16, question: &[u8]) -> io::Result<Vec<u8>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    let mut message = Vec::with_capacity(HEADER_BYTES + question.len());
    let length = u32::try_from(HEADER_BYTES + question.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    message.extend_from_slice(&length.to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&REQUEST.to_ne_bytes());
    // Number and sender: the socket is asked once, and the kernel fills in who it is.
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(question);
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = vec![0; ANSWER_BYTES];
    let (received, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(received);
    parse(&answer)
}

fn parse(answer: &[u8]) -> io::Result<Vec<u8>> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let length = number(answer, 0).ok_or_else(malformed)? as usize;
    let kind = short(answer, 4).ok_or_else(malformed)?;
    let body = answer.get(HEADER_BYTES..length).ok_or_else(malformed)?;
    if kind != ERROR {
        return Ok(body.to_vec());
    }
    // struct nlmsgerr begins with the error's number, below zero.
    match number(body, 0).map(u32::cast_signed) {
        Some(number @ ..0) => Err(io::Error::from_raw_os_error(-number)),
        _ => Err(malformed()),
    }
}

/// The attributes of `bytes`, type and value, as far as they are whole. Types come without the bits that say how a value
/// is to be read.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(short(rest, 0)?);
        let kind = short(rest, 2)? & 0x3FFF;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of one attribute.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// Appends an attribute.
pub(crate) fn push_attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    // Values here are addresses and numbers: their length fits.
    message.extend_from_slice(&((4 + value.len()) as u16).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// The 32-bit number at a place.
pub(crate) fn number(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(place..place + 4)?.try_into().ok()?))
}

/// The 16-bit number at a place.
pub(crate) fn short(bytes: &[u8], place: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(place..place + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_end_where_they_are_broken() {
        let mut message = Vec::new();
        push_attribute(&mut message, 1, b"abc");
        push_attribute(&mut message, 0x8002, &7_u32.to_ne_bytes());
        assert_eq!(message.len(), 16);
        let all: Vec<_> = attributes(&message).collect();
        assert_eq!(all, [(1, &b"abc"[..]), (2, &7_u32.to_ne_bytes()[..])]);
        assert_eq!(attribute(&message, 3), None);
        // One that claims more than there is, and one that claims less than its own header.
        assert_eq!(attributes(&message[..14]).count(), 1);
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
        assert_eq!(attributes(&[]).count(), 0);
    }

    #[test]
    fn an_error_is_the_kernels() {
        let mut answer = Vec::new();
        answer.extend_from_slice(&20_u32.to_ne_bytes());
        answer.extend_from_slice(&ERROR.to_ne_bytes());
        answer.extend_from_slice(&[0; 10]);
        answer.extend_from_slice(&(-2_i32).to_ne_bytes());
        assert_eq!(parse(&answer).unwrap_err().raw_os_error(), Some(2));
        for cut in 0..20 {
            assert!(parse(&answer[..cut]).is_err(), "{cut}");
        }
    }
}
