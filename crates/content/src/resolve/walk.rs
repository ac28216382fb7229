//! Resolution by hand, for systems without `openat2`: one `openat(O_NOFOLLOW)` for each segment.
//!
//! It keeps the rule of `RESOLVE_BENEATH`: no step leaves the root. The descriptors of the directories walked through
//! are kept, so `..` in a link goes back to the directory it was entered from and a rename elsewhere cannot move the
//! walk out of the root. The errors are those of `openat2`: EXDEV for an escape, ELOOP for a link that is not followed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use crate::facts::{Facts, Kind};
use crate::policy::Symlinks;

/// As many as Linux follows (path_resolution(7)).
const LINK_LIMIT: u32 = 40;
/// As long as Linux takes (PATH_MAX); a link could otherwise double what is left of the path 40 times.
const PENDING_LIMIT_BYTES: usize = 4096;

pub(super) fn open(
    root: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    symlinks: Symlinks,
) -> Result<OwnedFd, Errno> {
    if symlinks == Symlinks::Anywhere {
        return openat(root, name, flags, Mode::empty());
    }
    let mut walk = Walk { root, entered: Vec::new(), pending: Vec::new(), links: 0, symlinks };
    walk.push_pending(name)?;
    walk.run(flags)
}

struct Walk<'root> {
    root: BorrowedFd<'root>,
    /// The directories from the root down to where the walk stands, without the root itself.
    entered: Vec<OwnedFd>,
    /// The segments still to walk, the next one last.
    pending: Vec<Vec<u8>>,
    links: u32,
    symlinks: Symlinks,
}

impl Walk<'_> {
    fn run(&mut self, flags: OFlags) -> Result<OwnedFd, Errno> {
        while let Some(segment) = self.pending.pop() {
            match segment.as_slice() {
                b"." => {}
                b".." => {
                    // At the root there is nothing to go back to: an escape.
                    self.entered.pop().ok_or(Errno::XDEV)?;
                }
                name if self.pending.is_empty() => {
                    if let Some(descriptor) = self.open_last(name, flags)? {
                        return Ok(descriptor);
                    }
                }
                name => self.enter(name)?,
            }
        }
        // The last segment was `.` or `..`, of the root itself or of a link's target.
        openat(self.here(), ".", flags, Mode::empty())
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.entered.last().map_or(self.root, AsFd::as_fd)
    }

    /// Steps into a directory, or replaces a link by its target.
    fn enter(&mut self, name: &[u8]) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(self.here(), name, flags, Mode::empty()) {
            Ok(directory) => {
                self.entered.push(directory);
                Ok(())
            }
            Err(errno) => self.follow(name, errno),
        }
    }

    /// Opens the last segment, or replaces a link by its target and answers `None`.
    fn open_last(&mut self, name: &[u8], flags: OFlags) -> Result<Option<OwnedFd>, Errno> {
        match openat(self.here(), name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(descriptor) => {
                // O_PATH with O_NOFOLLOW opens the link itself.
                if flags.contains(OFlags::PATH) && Facts::of(&descriptor)?.kind == Kind::Symlink {
                    self.follow(name, Errno::LOOP)?;
                    return Ok(None);
                }
                Ok(Some(descriptor))
            }
            Err(errno) => {
                self.follow(name, errno)?;
                Ok(None)
            }
        }
    }

    /// Puts the target of the link `name` in its place, if `errno` can mean that it is one and links are followed.
    fn follow(&mut self, name: &[u8], errno: Errno) -> Result<(), Errno> {
        // What O_NOFOLLOW says about a link: ELOOP, with O_DIRECTORY ENOTDIR, and on FreeBSD EMLINK.
        if !matches!(errno, Errno::LOOP | Errno::NOTDIR | Errno::MLINK) {
            return Err(errno);
        }
        let target = match readlinkat(self.here(), name, Vec::new()) {
            Ok(target) => target.into_bytes(),
            // Not a link: a file where a directory should be, or a link that has just been replaced.
            Err(Errno::INVAL) if errno == Errno::NOTDIR => return Err(errno),
            Err(Errno::INVAL) => return Err(Errno::AGAIN),
            Err(other) => return Err(other),
        };
        self.links += 1;
        if self.symlinks == Symlinks::Refused || self.links > LINK_LIMIT {
            return Err(Errno::LOOP);
        }
        if target.first() == Some(&b'/') {
            return Err(Errno::XDEV);
        }
        self.push_pending(&target)
    }

    fn push_pending(&mut self, path: &[u8]) -> Result<(), Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        // An empty segment is `.`: `a//b` is `a/b`, and `a/` demands that `a` be a directory.
        let segments =
            path.split(|&byte| byte == b'/').map(|segment| if segment.is_empty() { b"." } else { segment });
        self.pending.extend(segments.rev().map(<[u8]>::to_vec));
        let pending_bytes: usize = self.pending.iter().map(|segment| segment.len() + 1).sum();
        if pending_bytes > PENDING_LIMIT_BYTES { Err(Errno::NAMETOOLONG) } else { Ok(()) }
    }
}
