//! The plaintext engine: files by `sendfile`, straight from the page cache. It is also the yardstick that the price of TLS
//! is measured with. The kernel engine sends by the same steps.
//!
//! What `sendfile` puts into a socket is not a copy: until the peer has acknowledged it the kernel sends from the file's
//! pages, as they are then. Nobody can call back what was overwritten meanwhile and has arrived; but a response without its
//! end is not whole. Its last bytes are therefore copied, and go only after the file was found unchanged behind all that
//! went before (INV-FILE-1). A response that has no more than that is copied as a whole: its head, the file's bytes, and one
//! `send`.

use crate::{
    Piece, Pieces,
    source::{Change, Moment, Read, Source, read},
};
use linerate_os::{
    file::{ResidentRead, read_resident},
    kernel_tls::Calls,
    socket::Follows,
};
use std::{
    io::{self, IoSliceMut},
    ops::Range,
    os::fd::BorrowedFd,
};

/// How far a turn got.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// So many bytes went into the socket, as many as were asked for.
    Sent(u64),
    /// So many went, and the socket is full. Asking again at once would feed a peer that drains it meanwhile by
    /// little pieces, and wake it for each: that doubled the price of a byte. The kernel says when there is real room.
    Full(u64),
    /// These bytes of the file are not in memory.
    Cold(Range<u64>),
    /// The file is not what it was when the response began (INV-FILE-1).
    Changed(Change),
}

/// Pages are probed this far apart: the kernel reads ahead in runs at least as long.
const PROBE_STEP_BYTES: u64 = 128 * 1024;

/// The end of a response, which is copied.
pub const LAST_BYTES: usize = 16 * 1024;

/// Sends the next of `pieces`, at most `limit_bytes`, without waiting, and strikes it off.
pub fn step(
    calls: &(impl Calls + ?Sized),
    socket: BorrowedFd<'_>,
    pieces: &mut Pieces<'_>,
    source: Option<Source<'_>>,
    limit_bytes: u64,
) -> io::Result<Step> {
    let before_last_bytes = pieces.remaining_bytes().saturating_sub(LAST_BYTES as u64);
    if before_last_bytes == 0 {
        return send_the_last(calls, socket, pieces, source, limit_bytes);
    }
    match pieces.upcoming(limit_bytes).next() {
        None => Ok(Step::Sent(0)),
        Some(Piece::Bytes(bytes)) => {
            let follows =
                if pieces.remaining_bytes() > bytes.len() as u64 { Follows::More } else { Follows::Nothing };
            strike_off(pieces, calls.send(socket, bytes, follows), bytes.len() as u64)
        }
        Some(Piece::File(range)) => {
            let source = source.ok_or(io::ErrorKind::InvalidInput)?;
            let range = range.start..range.end.min(range.start + before_last_bytes);
            if let Some(cold) = cold_part(source, &range)? {
                return Ok(Step::Cold(cold));
            }
            let asked_bytes = range.end - range.start;
            // Bounded by `limit_bytes`, which is far below usize::MAX.
            let sent = calls.send_file(socket, source.file, range.start, asked_bytes as usize);
            // A file that ends early gives less, too, and leaves a socket that will never report room.
            if sent.is_ok()
                && let Some(change) = source.change(Moment::Midway)?
            {
                return Ok(Step::Changed(change));
            }
            match sent {
                Ok(0) => Ok(Step::Changed(Change::CutShort(range.start))),
                sent => strike_off(pieces, sent, asked_bytes),
            }
        }
    }
}

/// Sends what is left of a response from a copy, if the file was not changed since the response began.
fn send_the_last(
    calls: &(impl Calls + ?Sized),
    socket: BorrowedFd<'_>,
    pieces: &mut Pieces<'_>,
    source: Option<Source<'_>>,
    limit_bytes: u64,
) -> io::Result<Step> {
    let mut memory = [0; LAST_BYTES];
    let mut copied_bytes = 0;
    for piece in pieces.upcoming(limit_bytes) {
        // All that remains fits.
        let place = &mut memory[copied_bytes..copied_bytes + piece.length_bytes() as usize];
        copied_bytes += place.len();
        match piece {
            Piece::Bytes(bytes) => place.copy_from_slice(bytes),
            Piece::File(range) => {
                let source = source.ok_or(io::ErrorKind::InvalidInput)?;
                match read(source.file, &mut [IoSliceMut::new(place)], range.start)? {
                    Read::Whole => {}
                    Read::Until(bytes) => return Ok(Step::Cold(range.start + bytes as u64..range.end)),
                    Read::Truncated(bytes) => {
                        return Ok(Step::Changed(Change::CutShort(range.start + bytes as u64)));
                    }
                }
            }
        }
    }
    let left_bytes = pieces.remaining_bytes() - copied_bytes as u64;
    if pieces.holds_file()
        && let Some(source) = source
        && let Some(change) = source.change(Moment::with_left(left_bytes))?
    {
        return Ok(Step::Changed(change));
    }
    let follows = if left_bytes > 0 { Follows::More } else { Follows::Nothing };
    strike_off(pieces, calls.send(socket, &memory[..copied_bytes], follows), copied_bytes as u64)
}

/// Strikes off what a call has sent.
fn strike_off(pieces: &mut Pieces<'_>, sent: io::Result<usize>, asked_bytes: u64) -> io::Result<Step> {
    match sent {
        Ok(bytes) => {
            let bytes = bytes as u64;
            pieces.advance(bytes);
            Ok(if bytes < asked_bytes { Step::Full(bytes) } else { Step::Sent(bytes) })
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Step::Full(0)),
        Err(error) => Err(error),
    }
}

/// The part of `range` from the first probed page on that is not in memory (INV-COLD-1).
fn cold_part(source: Source<'_>, range: &Range<u64>) -> io::Result<Option<Range<u64>>> {
    let mut position = range.start;
    while position < range.end {
        let mut probe = [0];
        if read_resident(source.file, &mut [IoSliceMut::new(&mut probe)], position)?
            == ResidentRead::WouldWait
        {
            return Ok(Some(position..range.end));
        }
        position = (position / PROBE_STEP_BYTES + 1) * PROBE_STEP_BYTES;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_os::{kernel_tls::System, socket::connected_pair};
    use std::{
        fs::File,
        io::{Read, Write},
        net::TcpStream,
        os::{fd::AsFd, unix::fs::FileExt},
        time::{Duration, SystemTime},
    };

    const FILE_BYTES: u64 = 100_003;

    fn content() -> Vec<u8> {
        (0..FILE_BYTES).map(|index| (index % 251) as u8).collect()
    }

    /// A file that was last modified long ago.
    fn file() -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content()).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        file
    }

    /// Steps until so much is left, or the file has changed; whatever is received goes to `received`.
    fn send(
        ours: &TcpStream,
        theirs: &mut TcpStream,
        pieces: &mut Pieces<'_>,
        source: Source<'_>,
        received: &mut Vec<u8>,
        until_left_bytes: u64,
    ) -> Option<Change> {
        while pieces.remaining_bytes() > until_left_bytes {
            match step(&System, ours.as_fd(), pieces, Some(source), 7_001).unwrap() {
                Step::Changed(change) => return Some(change),
                Step::Cold(range) => panic!("{range:?} is in memory, as it was written just now"),
                Step::Sent(_) => {}
                Step::Full(_) => {
                    let mut buffer = [0; 5_003];
                    if let Ok(bytes) = theirs.read(&mut buffer) {
                        received.extend_from_slice(&buffer[..bytes]);
                    }
                }
            }
        }
        None
    }

    #[test]
    fn every_byte_arrives_in_order_at_any_length() {
        for length in [0, 1, 16_383, 16_384, 16_385, 32_769, FILE_BYTES] {
            let (ours, mut theirs) = connected_pair(Some(8192)).unwrap();
            let file = file();
            let list =
                [Piece::Bytes(b"head"), Piece::File(0..length), Piece::Bytes(b"--"), Piece::File(7..11)];
            let mut pieces = Pieces::new(&list);
            let source = Source::of(&file).unwrap();
            let mut received = Vec::new();
            assert_eq!(send(&ours, &mut theirs, &mut pieces, source, &mut received, 0), None);
            drop(ours);
            theirs.set_nonblocking(false).unwrap();
            theirs.read_to_end(&mut received).unwrap();
            let body = content();
            assert!(
                received == [b"head", &body[..length as usize], b"--", &body[7..11]].concat(),
                "{length}"
            );
        }
    }

    /// INV-FILE-1: what went before may be of the changed file, so the end does not go.
    #[test]
    fn the_end_of_a_changed_file_does_not_leave() {
        for told in [Change::Overwritten, Change::CutShort(FILE_BYTES - 1)] {
            // In the middle, and when there is nothing left to be read but the end.
            for left_bytes in [FILE_BYTES / 2, LAST_BYTES as u64] {
                let (ours, mut theirs) = connected_pair(Some(8192)).unwrap();
                let file = file();
                // The last piece is no file's, but says that all before it is whole.
                let list = [Piece::Bytes(b"head"), Piece::File(0..FILE_BYTES), Piece::Bytes(b"--")];
                let mut pieces = Pieces::new(&list);
                let source = Source::of(&file).unwrap();
                let mut received = Vec::new();
                assert_eq!(send(&ours, &mut theirs, &mut pieces, source, &mut received, left_bytes), None);
                match told {
                    Change::Overwritten => assert_eq!(file.write_at(b"other", 3).unwrap(), 5),
                    Change::CutShort(length_bytes) => file.set_len(length_bytes).unwrap(),
                }
                let changed = send(&ours, &mut theirs, &mut pieces, source, &mut received, 0);
                assert_eq!(changed, Some(told), "{left_bytes}");
                assert!(!pieces.is_done());
            }
        }
    }
}
