//! Netlink: one question to the kernel, and its answer or answers.
//!
//! Layouts are those of `include/uapi/linux/netlink.h`: numbers in the byte order of the machine, parts padded to four
//! bytes.

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::{io, os::fd::OwnedFd};

/// `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// `NLM_F_REQUEST`
const REQUEST: u16 = 1;
/// `NLM_F_DUMP`
const DUMP: u16 = 0x300;
/// `NLMSG_ERROR`
const ERROR: u16 = 2;
/// `NLMSG_DONE`
const DONE: u16 = 3;
/// What the kernel puts into one reception at most (`NLMSG_GOODSIZE`, and no more than was asked for before).
const ANSWER_BYTES: usize = 32 * 1024;
/// More interfaces than this no machine has.
const ANSWERS_LIMIT: usize = 64 * 1024;

/// Asks for one thing, and returns what follows the header of the answer. `kind` is the message's type; no protocol is that of routes (`NETLINK_ROUTE`, 0).
///
/// # Errors
/// The kernel's: of the socket (`EAFNOSUPPORT` where a sandbox has no `AF_NETLINK`), or its answer to the question.
pub(crate) fn ask(protocol: Option<Protocol>, kind: u16, question: &[u8]) -> io::Result<Vec<u8>> {
    let socket = send_question(protocol, kind, REQUEST, question)?;
    let answer = receive(&socket)?;
    let (kind, body, _) = first(&answer)?;
    if kind == ERROR { Err(refusal(body)) } else { Ok(body.to_vec()) }
}

/// Asks about routes and interfaces for all that there is, and returns what follows the header of each answer.
///
/// # Errors
/// As those of [`ask`].
pub(crate) fn ask_for_all(kind: u16, question: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let socket = send_question(None, kind, REQUEST | DUMP, question)?;
    let mut answers = Vec::new();
    while answers.len() < ANSWERS_LIMIT {
        let received = receive(&socket)?;
        if take_all(&received, &mut answers)? {
            break;
        }
    }
    Ok(answers)
}

fn send_question(protocol: Option<Protocol>, kind: u16, flags: u16, question: &[u8]) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    let mut message = Vec::with_capacity(HEADER_BYTES + question.len());
    let length = u32::try_from(HEADER_BYTES + question.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    message.extend_from_slice(&length.to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&flags.to_ne_bytes());
    // Number and sender: the socket is asked once, and the kernel fills in the sender.
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(question);
    send(&socket, &message, SendFlags::empty())?;
    Ok(socket)
}

fn receive(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut answer = vec![0; ANSWER_BYTES];
    let (received, _) = recv(socket, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(received);
    Ok(answer)
}

/// Type and body of the first message, and what follows it.
fn first(answer: &[u8]) -> io::Result<(u16, &[u8], &[u8])> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let length = number(answer, 0).ok_or_else(malformed)? as usize;
    let kind = short(answer, 4).ok_or_else(malformed)?;
    let body = answer.get(HEADER_BYTES..length).ok_or_else(malformed)?;
    Ok((kind, body, answer.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// Takes the messages of one reception; true behind the last of all.
fn take_all(received: &[u8], answers: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    let mut rest = received;
    while !rest.is_empty() {
        let (kind, body, following) = first(rest)?;
        match kind {
            ERROR => return Err(refusal(body)),
            DONE => return Ok(true),
            _ => answers.push(body.to_vec()),
        }
        rest = following;
    }
    Ok(false)
}

/// `struct nlmsgerr` begins with the error's number, below zero.
fn refusal(body: &[u8]) -> io::Error {
    match number(body, 0).map(u32::cast_signed) {
        Some(number @ ..0) => io::Error::from_raw_os_error(number.saturating_neg()),
        _ => io::ErrorKind::InvalidData.into(),
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

    /// A message as the kernel makes it.
    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut message = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&[0; 10]);
        message.extend_from_slice(body);
        message.resize(message.len().next_multiple_of(4), 0);
        message
    }

    #[test]
    fn an_error_is_the_kernels() {
        let answer = message(ERROR, &(-2_i32).to_ne_bytes());
        assert_eq!(take_all(&answer, &mut Vec::new()).unwrap_err().raw_os_error(), Some(2));
        for cut in 1..20 {
            assert!(take_all(&answer[..cut], &mut Vec::new()).is_err(), "{cut}");
        }
        for number in [0, 2, i32::MIN] {
            assert_ne!(refusal(&number.to_ne_bytes()).raw_os_error(), Some(2), "{number}");
        }
    }

    #[test]
    fn many_answers_end_with_the_last_message() {
        let mut answers = Vec::new();
        let received = [message(16, b"odd"), message(16, b"four")].concat();
        assert!(!take_all(&received, &mut answers).unwrap(), "more may come");
        let received = [message(16, b"last"), message(DONE, &[0; 4]), message(16, b"never")].concat();
        assert!(take_all(&received, &mut answers).unwrap());
        assert_eq!(answers, [&b"odd"[..], b"four", b"last"]);
    }
}
