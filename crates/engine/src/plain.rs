//! The plaintext engine: heads by `send`, files by `sendfile`, straight from the page cache. It is also the yardstick
//! that the price of TLS is measured with. The kernel engine sends by the same steps.

use crate::{Piece, Pieces, source::Source};
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
    /// The file ends at this offset, earlier than it did when the response began (INV-FILE-1).
    Truncated(u64),
}

/// Pages are probed this far apart: the kernel reads ahead in runs at least as long.
const PROBE_STEP_BYTES: u64 = 128 * 1024;

/// Sends the next of `pieces`, at most `limit_bytes`, without waiting, and strikes it off.
pub fn step(
    calls: &(impl Calls + ?Sized),
    socket: BorrowedFd<'_>,
    pieces: &mut Pieces<'_>,
    source: Option<Source<'_>>,
    limit_bytes: u64,
) -> io::Result<Step> {
    let Some(piece) = pieces.upcoming(limit_bytes).next() else { return Ok(Step::Sent(0)) };
    let asked_bytes = piece.length_bytes();
    let end = if let Piece::File(range) = &piece { range.end } else { 0 };
    let sent = match piece {
        Piece::Bytes(bytes) => {
            let follows =
                if pieces.remaining_bytes() > bytes.len() as u64 { Follows::More } else { Follows::Nothing };
            calls.send(socket, bytes, follows)
        }
        Piece::File(range) => {
            let Some(source) = source else { return Err(io::ErrorKind::InvalidInput.into()) };
            if let Some(cold) = cold_part(source, &range)? {
                return Ok(Step::Cold(cold));
            }
            // Bounded by `limit_bytes`, which is far below usize::MAX.
            match calls.send_file(socket, source.file, range.start, (range.end - range.start) as usize) {
                Ok(0) => return Ok(Step::Truncated(range.start)),
                other => other,
            }
        }
    };
    match sent {
        Ok(bytes) => {
            let bytes = bytes as u64;
            pieces.advance(bytes);
            // A file that ends early gives less, too, and leaves a socket that will never report room: the next turn
            // finds the end.
            let ends =
                || source.is_some_and(|source| source.file.metadata().is_ok_and(|status| status.len() < end));
            Ok(if bytes < asked_bytes && !ends() { Step::Full(bytes) } else { Step::Sent(bytes) })
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
