//! The plaintext engine: files by `sendfile`, straight from the page cache. It is also the yardstick that the price of TLS
//! is measured with. The kernel engine sends by the same steps.
//!
//! What `sendfile` puts into a socket is not a copy: until the peer has acknowledged it the kernel sends from the file's
//! pages, as they are then. Nobody can call back what was overwritten meanwhile and has arrived; but a response without its
//! end is not whole. The end of a file's range therefore goes only after the file was found unchanged (INV-FILE-1). What is
//! small is copied as a whole: head, content, and one `send`.

use crate::{
    Fault, FileRange, Queue, Turn,
    pattern::Pattern,
    queue::{FilePart, Part},
    source::{Change, Moment, Read, read},
};
use linerate_os::{
    file::{ResidentRead, read_resident},
    kernel_tls::Calls,
    socket::Follows,
};
use std::{
    fs::File,
    io::{self, IoSliceMut},
    ops::Range,
    os::fd::BorrowedFd,
};

/// Pages are probed this far apart: the kernel reads ahead in runs at least as long.
const PROBE_STEP_BYTES: u64 = 128 * 1024;

/// What is copied together and leaves by one call, at most: whole responses up to this.
pub const COPIED_BYTES: usize = 16 * 1024;

/// What is generated together and leaves by one call, at most.
const GENERATED_BYTES: u64 = 128 * 1024;

/// The last page of a range, or what there is of it, where it is held back and copied.
pub(crate) const LAST_BYTES: usize = 4 * 1024;

/// How the end of a file's range leaves, if the range is longer than [`COPIED_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastPage {
    /// As a copy, behind a look at the file. Where the kernel seals what `sendfile` takes, nothing that went before can
    /// change any more, so a response that is whole is of one file.
    Copied,
    /// Like all that went before, by the last `sendfile`, which begins with the look. In the clear the socket holds the
    /// file's pages until they are acknowledged. A copied end would promise nothing more than that, and costs two calls.
    InPlace,
}

/// Sends what comes next in `queue`, at most `limit_bytes`, without waiting, and strikes it off.
///
/// # Errors
/// The socket's, the file's; [`Fault::Changed`] where what went before may be of another file than what was announced.
pub fn turn(
    calls: &(impl Calls + ?Sized),
    socket: BorrowedFd<'_>,
    queue: &mut Queue,
    limit_bytes: u64,
    last_page: LastPage,
) -> Result<Turn, Fault> {
    let (mut copied_bytes, mut copied_parts) = (0, 0);
    for part in queue.upcoming(limit_bytes) {
        let goes_on = matches!(&part, Part::File(part) if !part.is_end);
        if goes_on || copied_bytes + part.length_bytes() > COPIED_BYTES as u64 {
            break;
        }
        copied_bytes += part.length_bytes();
        copied_parts += 1;
    }
    let next = queue.upcoming(limit_bytes).next();
    let handed = match next {
        None => return Ok(Turn::Sent(0)),
        Some(Part::Bytes(bytes)) if copied_parts <= 1 => {
            let asked_bytes = bytes.len() as u64;
            Handed::Over { sent: calls.send(socket, bytes, follows(queue, asked_bytes)), asked_bytes }
        }
        Some(Part::File(part)) if copied_parts == 0 => send_file(calls, socket, &part, last_page)?,
        Some(Part::Pattern { pattern, range }) if copied_parts == 0 => {
            send_generated(calls, socket, queue, pattern, range)
        }
        // Memory is cleared first: no more of it than is mostly needed.
        Some(_) if copied_bytes <= LAST_BYTES as u64 => {
            send_copied::<LAST_BYTES>(calls, socket, queue, copied_bytes)?
        }
        Some(_) => send_copied::<COPIED_BYTES>(calls, socket, queue, copied_bytes)?,
    };
    let (sent, asked_bytes) = match handed {
        Handed::Over { sent, asked_bytes } => (sent, asked_bytes),
        Handed::Cold(range) => return Ok(Turn::Cold(range)),
    };
    match sent {
        Ok(bytes) => {
            let bytes = bytes as u64;
            queue.advance(bytes);
            Ok(if bytes < asked_bytes { Turn::Full(bytes) } else { Turn::Sent(bytes) })
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Turn::Full(0)),
        Err(error) => Err(Fault::Socket(error)),
    }
}

/// What became of bytes that were to be handed to the kernel.
enum Handed {
    /// They were, with this result.
    Over { sent: io::Result<usize>, asked_bytes: u64 },
    /// These are not in memory.
    Cold(FileRange),
}

/// Hands a part of a file to the kernel, but for an end that is to be copied.
fn send_file(
    calls: &(impl Calls + ?Sized),
    socket: BorrowedFd<'_>,
    part: &FilePart<'_>,
    last_page: LastPage,
) -> Result<Handed, Fault> {
    let Range { start, mut end } = part.range;
    if part.is_end && last_page == LastPage::Copied {
        // It is longer than what is copied, so something is left.
        end = (end - 1) / LAST_BYTES as u64 * LAST_BYTES as u64;
    }
    let file = part.source.file();
    if let Some(offset) = first_cold(file, &(start..end)).map_err(Fault::Unreadable)? {
        return Ok(Handed::Cold(part.behind(offset - start)));
    }
    if part.is_end
        && last_page == LastPage::InPlace
        && let Some(change) = part.source.change(Moment::AtTheEnd).map_err(Fault::Unreadable)?
    {
        return Err(change.into());
    }
    let asked_bytes = end - start;
    // Bounded by the caller's limit, which is far below usize::MAX.
    let sent = calls.send_file(socket, file, start, asked_bytes as usize);
    // A file that ends early gives less, and leaves a socket that will never report room.
    if let Ok(bytes) = sent
        && (bytes as u64) < asked_bytes
    {
        let change = part.source.change(Moment::Midway).map_err(Fault::Unreadable)?;
        if let Some(change) = change.or((bytes == 0).then_some(Change::CutShort(start))) {
            return Err(change.into());
        }
    }
    Ok(Handed::Over { sent, asked_bytes })
}

/// Sends a copy of the next `bytes`, if the files were not changed since their responses began.
fn send_copied<const ROOM_BYTES: usize>(
    calls: &(impl Calls + ?Sized),
    socket: BorrowedFd<'_>,
    queue: &Queue,
    bytes: u64,
) -> Result<Handed, Fault> {
    let mut memory = [0; ROOM_BYTES];
    let mut copied_bytes = 0;
    for part in queue.upcoming(bytes) {
        // All of them fit.
        let place = &mut memory[copied_bytes..copied_bytes + part.length_bytes() as usize];
        copied_bytes += place.len();
        match part {
            Part::Bytes(bytes) => place.copy_from_slice(bytes),
            Part::Pattern { pattern, range } => pattern.fill(range.start, place),
            Part::File(part) => {
                let read = read(part.source.file(), &mut [IoSliceMut::new(place)], part.range.start);
                match read.map_err(Fault::Unreadable)? {
                    Read::Whole => {}
                    Read::Until(bytes) => return Ok(Handed::Cold(part.behind(bytes as u64))),
                    Read::Truncated(bytes) => {
                        return Err(Change::CutShort(part.range.start + bytes as u64).into());
                    }
                }
            }
        }
    }
    queue.check_files(bytes)?;
    let sent = calls.send(socket, &memory[..copied_bytes], follows(queue, bytes));
    Ok(Handed::Over { sent, asked_bytes: bytes })
}

/// Generates the beginning of `range`, which comes next, in memory that the queue keeps, and sends that.
fn send_generated(
    calls: &(impl Calls + ?Sized),
    socket: BorrowedFd<'_>,
    queue: &mut Queue,
    pattern: Pattern,
    range: Range<u64>,
) -> Handed {
    let asked_bytes = (range.end - range.start).min(GENERATED_BYTES);
    let mut memory = queue.take_spare();
    memory.resize(asked_bytes as usize, 0);
    pattern.fill(range.start, &mut memory);
    let sent = calls.send(socket, &memory, follows(queue, asked_bytes));
    queue.keep_spare(memory);
    Handed::Over { sent, asked_bytes }
}

/// Whether something follows the next `bytes`.
fn follows(queue: &Queue, bytes: u64) -> Follows {
    if queue.remaining_bytes() > bytes { Follows::More } else { Follows::Nothing }
}

/// The first probed offset in `range` that is not in memory (INV-COLD-1).
///
/// # Errors
/// The file's.
pub fn first_cold(file: &File, range: &Range<u64>) -> io::Result<Option<u64>> {
    let mut position = range.start;
    while position < range.end {
        let mut probe = [0];
        if read_resident(file, &mut [IoSliceMut::new(&mut probe)], position)? == ResidentRead::WouldWait {
            return Ok(Some(position));
        }
        position = (position / PROBE_STEP_BYTES + 1) * PROBE_STEP_BYTES;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Piece, source::OpenFile};
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

    /// Takes turns until so much is left, or the file has changed; whatever is received goes to `received`. The
    /// limits are on either side of what is copied.
    fn send(
        ours: &TcpStream,
        theirs: &mut TcpStream,
        queue: &mut Queue,
        received: &mut Vec<u8>,
        until_left_bytes: u64,
        last_page: LastPage,
    ) -> Option<Change> {
        let mut limits_bytes = [40_009, 7_001, 20_011].into_iter().cycle();
        while queue.remaining_bytes() > until_left_bytes {
            match turn(&System, ours.as_fd(), queue, limits_bytes.next().unwrap(), last_page) {
                Err(Fault::Changed(change)) => return Some(change),
                Ok(Turn::Sent(_)) => {}
                Ok(Turn::Full(_)) => {
                    let mut buffer = [0; 5_003];
                    if let Ok(bytes) = theirs.read(&mut buffer) {
                        received.extend_from_slice(&buffer[..bytes]);
                    }
                }
                other => panic!("{other:?}: the file is in memory, as it was written just now"),
            }
        }
        None
    }

    #[test]
    fn every_byte_arrives_in_order_at_any_length() {
        let lengths = [0, 1, 4_095, 4_096, 4_097, 16_383, 16_384, 16_385, 32_769, FILE_BYTES];
        let with = |last_page| lengths.map(|length| (length, last_page));
        for (length, last_page) in [with(LastPage::Copied), with(LastPage::InPlace)].concat() {
            let (ours, mut theirs) = connected_pair(Some(8192)).unwrap();
            let file = OpenFile::of(file()).unwrap();
            let mut queue = Queue::from_iter([
                Piece::Bytes(b"head".to_vec()),
                Piece::file(&file, 0..length),
                Piece::Bytes(b"--".to_vec()),
                Piece::file(&file, 7..11),
            ]);
            let mut received = Vec::new();
            assert_eq!(send(&ours, &mut theirs, &mut queue, &mut received, 0, last_page), None);
            drop(ours);
            theirs.set_nonblocking(false).unwrap();
            theirs.read_to_end(&mut received).unwrap();
            let body = content();
            assert!(
                received == [b"head", &body[..length as usize], b"--", &body[7..11]].concat(),
                "{length}, {last_page:?}"
            );
        }
    }

    #[test]
    fn generated_bytes_arrive_at_any_length_beside_others() {
        let pattern = Pattern::new(5);
        for length in [0, 1, 16_384, 16_385, 131_072, 131_073, 500_001] {
            let (ours, mut theirs) = connected_pair(Some(8192)).unwrap();
            let mut queue = Queue::from_iter([
                Piece::Bytes(b"head".to_vec()),
                Piece::Pattern { pattern, range: 7..7 + length },
                Piece::Bytes(b"--".to_vec()),
                Piece::Pattern { pattern, range: 100..103 },
            ]);
            let mut received = Vec::new();
            assert_eq!(send(&ours, &mut theirs, &mut queue, &mut received, 0, LastPage::InPlace), None);
            drop(ours);
            theirs.set_nonblocking(false).unwrap();
            theirs.read_to_end(&mut received).unwrap();
            let end = 4 + length as usize;
            assert_eq!((&received[..4], &received[end..end + 2]), (&b"head"[..], &b"--"[..]), "{length}");
            assert_eq!(pattern.check(7, &received[4..end]), Ok(()), "{length}");
            assert_eq!((pattern.check(100, &received[end + 2..]), received.len()), (Ok(()), end + 5));
        }
    }

    /// INV-FILE-1: what went before may be of the changed file, so the end does not go.
    #[test]
    fn the_end_of_a_changed_file_does_not_leave() {
        let told = [Change::Overwritten, Change::CutShort(FILE_BYTES - 1)];
        let with = |last_page| told.map(|change| (change, last_page));
        for (told, last_page) in [with(LastPage::Copied), with(LastPage::InPlace)].concat() {
            // In the middle, and when there is nothing left to be read but the end.
            for left_bytes in [FILE_BYTES / 2, COPIED_BYTES as u64 + 1] {
                let (ours, mut theirs) = connected_pair(Some(8192)).unwrap();
                let file = file();
                let source = OpenFile::of(file.try_clone().unwrap()).unwrap();
                // The last piece is no file's, but says that all before it is whole.
                let mut queue = Queue::from_iter([
                    Piece::Bytes(b"head".to_vec()),
                    Piece::file(&source, 0..FILE_BYTES),
                    Piece::Bytes(b"--".to_vec()),
                ]);
                let mut received = Vec::new();
                assert_eq!(send(&ours, &mut theirs, &mut queue, &mut received, left_bytes, last_page), None);
                match told {
                    Change::Overwritten => assert_eq!(file.write_at(b"other", 3).unwrap(), 5),
                    Change::CutShort(length_bytes) => file.set_len(length_bytes).unwrap(),
                }
                let changed = send(&ours, &mut theirs, &mut queue, &mut received, 0, last_page);
                assert_eq!(changed, Some(told), "{left_bytes}, {last_page:?}");
                assert!(!queue.is_done());
            }
        }
    }

    /// INV-FILE-1: the `sendfile` that would end the response begins with the look.
    #[test]
    fn the_end_of_a_changed_file_does_not_leave_in_place() {
        let (ours, _theirs) = connected_pair(None).unwrap();
        let file = file();
        let source = OpenFile::of(file.try_clone().unwrap()).unwrap();
        let mut queue = Queue::from_iter([Piece::file(&source, 0..FILE_BYTES)]);
        assert_eq!(file.write_at(b"other", 3).unwrap(), 5);
        let ended = turn(&System, ours.as_fd(), &mut queue, 2 * FILE_BYTES, LastPage::InPlace);
        assert!(matches!(ended, Err(Fault::Changed(Change::Overwritten))), "{ended:?}");
    }
}
