//! Entries of a directory. The kernel's own cookies lead through it: a directory of any length is read in pieces, and nothing is
//! kept between two of them.

use crate::export::fault_of;
use linerate_nfs::{Entry, Fault, Kind, Listing, ListingRequest};
use linerate_os::entries::Entries;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FileType, SeekFrom, seek},
};
use std::mem::MaybeUninit;

/// What one call reads: some thousand entries.
pub(crate) const READ_BYTES: usize = 64 * 1024;
/// What an entry takes in what the kernel tells: usually 24 bytes and a name. A client begins with few entries, and what is read
/// beyond them is read again for its next call.
const ENTRY_USUAL_BYTES: usize = 48;
/// Room for one entry, whatever its name.
const READ_LEAST_BYTES: usize = 1024;
/// Entries of one answer, whatever the client has room for.
const LIMIT_ENTRIES: usize = 8192;
/// The protocol keeps 0, 1 and 2 for itself, and the kernel begins with 0 or 1.
const COOKIE_SHIFT: u64 = 3;

/// Calls `each` with name, inode number and kind of the entries from where `directory` stands, without `.` and `..`, until it
/// says `false`. It waits for the disk.
pub(crate) fn read_names(
    directory: &OwnedFd,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], u64, FileType) -> bool,
) -> Result<(), Fault> {
    let mut raw = Entries::new(directory, room(buffer, READ_BYTES));
    while let Some(entry) = raw.next() {
        let entry = entry.map_err(fault_of)?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && !each(name, entry.ino(), entry.file_type()) {
            break;
        }
    }
    Ok(())
}

fn room(buffer: &mut Vec<u8>, bytes: usize) -> &mut [MaybeUninit<u8>] {
    buffer.clear();
    buffer.reserve(bytes);
    buffer.spare_capacity_mut()
}

/// A part of a directory's entries.
pub(crate) fn list(directory: &OwnedFd, request: ListingRequest) -> Result<Listing, Fault> {
    let start = match request.after {
        0 => 0,
        after => after
            .checked_sub(COOKIE_SHIFT)
            .filter(|&cookie| cookie <= i64::MAX as u64)
            .ok_or(Fault::BadCookie)?,
    };
    if start > 0 {
        seek(directory.as_fd(), SeekFrom::Start(start)).map_err(|_| Fault::BadCookie)?;
    }
    let limit = request.limit_entries.clamp(1, LIMIT_ENTRIES);
    let mut buffer = Vec::new();
    let read_bytes = limit.saturating_mul(ENTRY_USUAL_BYTES).clamp(READ_LEAST_BYTES, READ_BYTES);
    let mut raw = Entries::new(directory, room(&mut buffer, read_bytes));
    let mut entries = Vec::new();
    loop {
        // Before the next is read, so that the end is only told where nothing follows.
        let Some(entry) = raw.next() else {
            return Ok(Listing { verifier: [0; 8], entries, is_end: true });
        };
        let entry = entry.map_err(fault_of)?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if entries.len() == limit {
            return Ok(Listing { verifier: [0; 8], entries, is_end: false });
        }
        entries.push(Entry {
            name: name.to_vec(),
            cookie: entry.next_entry_cookie().wrapping_add(COOKIE_SHIFT),
            number: entry.ino(),
            kind: kind_of(entry.file_type()),
        });
    }
}

/// What can be said of an entry without asking for it. Nothing of a directory: something may be mounted there, or it may be a
/// subvolume, and then it is not shown (INV-EXPORT-1).
fn kind_of(told: FileType) -> Option<Kind> {
    match told {
        FileType::RegularFile => Some(Kind::File),
        FileType::Symlink => Some(Kind::SymbolicLink),
        FileType::Fifo => Some(Kind::Pipe),
        FileType::Socket => Some(Kind::Socket),
        FileType::CharacterDevice => Some(Kind::CharacterDevice),
        FileType::BlockDevice => Some(Kind::BlockDevice),
        FileType::Directory | FileType::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, open};
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        path::Path,
    };

    fn opened(path: &Path) -> OwnedFd {
        open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    fn request(after: u64, limit_entries: usize) -> ListingRequest {
        ListingRequest { after, verifier: [0; 8], limit_entries }
    }

    #[test]
    fn pieces_of_any_size_make_the_whole_also_while_others_come_and_go() {
        let directory = tempfile::tempdir().unwrap();
        let kept: BTreeSet<Vec<u8>> = (0..300).map(|number| format!("kept-{number}").into_bytes()).collect();
        for name in &kept {
            fs::write(directory.path().join(str::from_utf8(name).unwrap()), "").unwrap();
        }
        for limit in [1, 7, 100, 299, 300, 301, usize::MAX] {
            let (mut seen, mut after, mut rounds) = (Vec::new(), 0, 0);
            loop {
                // Each piece is read through a descriptor of its own, as after a restart.
                let part = list(&opened(directory.path()), request(after, limit)).unwrap();
                assert!(part.entries.len() <= limit);
                assert!(part.entries.iter().all(|entry| entry.cookie > 2));
                after = part.entries.last().map_or(after, |last| last.cookie);
                seen.extend(part.entries.into_iter().map(|entry| entry.name));
                if part.is_end {
                    break;
                }
                fs::write(directory.path().join(format!("new-{limit}-{rounds}")), "").unwrap();
                if rounds > 0 {
                    fs::remove_file(directory.path().join(format!("new-{limit}-{}", rounds - 1))).unwrap();
                }
                rounds += 1;
            }
            let told: Vec<_> = seen.iter().filter(|name| name.starts_with(b"kept-")).cloned().collect();
            assert_eq!(told.len(), kept.len(), "none twice");
            assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), kept, "none left out");
        }
    }

    #[test]
    fn kinds_are_told_but_for_directories() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        fs::create_dir(directory.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("nowhere", directory.path().join("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(directory.path().join("socket")).unwrap();
        let told = list(&opened(directory.path()), request(0, 10)).unwrap();
        let told: BTreeMap<_, _> = told.entries.into_iter().map(|entry| (entry.name, entry.kind)).collect();
        let expected = [
            ("file", Some(Kind::File)),
            ("folder", None),
            ("link", Some(Kind::SymbolicLink)),
            ("socket", Some(Kind::Socket)),
        ];
        let expected = expected.map(|(name, kind)| (name.as_bytes().to_vec(), kind));
        assert_eq!(told, BTreeMap::from(expected));
    }

    #[test]
    fn a_cookie_that_no_kernel_made_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        for after in [1, 2, u64::MAX] {
            assert_eq!(list(&opened(directory.path()), request(after, 10)), Err(Fault::BadCookie), "{after}");
        }
        let empty = list(&opened(directory.path()), request(0, 10)).unwrap();
        assert!(empty.is_end && empty.entries.is_empty());
    }
}
