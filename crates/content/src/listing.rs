//! The entries of a directory, for people and for programs.

mod html;
mod icon;
mod json;
mod name;
mod name_order;
mod times;
mod view;

use std::os::fd::BorrowedFd;

use rustix::fs::{Access, AtFlags, Dir, FileType};
use rustix::io::Errno;

use self::icon::Icon;
use crate::error::ContentError;
use crate::facts::{Facts, FileTime, Kind};
use crate::policy::Symlinks;
use crate::resolve::{Blocking, Purpose};
use crate::root::{Directory, Root, join};

pub use self::html::CONTENT_SECURITY_POLICY;
pub use self::view::{ListingFormat, ListingView, SortKey, SortOrder};

/// How many names are read for each that may be shown, so that the first by name are shown of a directory that is too
/// large, and yet memory stays bounded.
const NAMES_READ_PER_SHOWN: usize = 16;

/// The entries of one directory that are served.
#[derive(Debug)]
pub struct Listing {
    /// Relative to the root, without slashes at either end.
    relative: Vec<u8>,
    /// By name, at most `Policy::listing_limit_entries`.
    entries: Vec<ListedEntry>,
    /// How many names at least were left out because there were too many.
    left_out: usize,
}

#[derive(Debug)]
struct ListedEntry {
    name: Vec<u8>,
    is_directory: bool,
    /// 0 for a directory.
    length_bytes: u64,
    modified: FileTime,
    icon: Icon,
}

/// A listing as it is sent.
#[derive(Debug)]
pub struct RenderedListing {
    /// The bytes of the page or document.
    pub body: Vec<u8>,
    /// Its media type.
    pub media_type: &'static str,
}

impl Root {
    /// Reads the entries of a directory that [`Root::lookup`] found.
    ///
    /// Left out are names that are refused under the policy, files that the server may not read, and what is neither
    /// a regular file nor a directory, also behind a link. This waits for the disk and takes two system calls for each
    /// entry: never call it on a worker.
    ///
    /// # Errors
    /// [`ContentError::System`] and the like when the directory cannot be read.
    pub fn list(&self, directory: Directory) -> Result<Listing, ContentError> {
        let limit = self.policy().listing_limit_entries;
        let system = |errno| ContentError::from_errno(errno, "reading a directory");
        let mut entries = Dir::new(directory.descriptor).map_err(system)?;
        let mut names = Vec::new();
        let mut left_out = 0;
        while let Some(entry) = entries.read() {
            let entry = entry.map_err(system)?;
            let name = entry.file_name().to_bytes();
            if !self.may_be_listed(name, entry.file_type()) {
                continue;
            }
            if names.len() == limit.saturating_mul(NAMES_READ_PER_SHOWN) {
                left_out = 1;
                break;
            }
            names.push(name.to_vec());
        }
        names.sort_unstable_by(|left, right| name_order::compare_names(left, right));
        left_out += names.len().saturating_sub(limit);
        names.truncate(limit);
        let descriptor = entries.fd().map_err(system)?;
        let entries =
            names.into_iter().filter_map(|name| self.listed_entry(descriptor, &directory.relative, name));
        Ok(Listing { entries: entries.collect(), relative: directory.relative, left_out })
    }

    /// What can be told from a name and the kind that the directory notes beside it.
    fn may_be_listed(&self, name: &[u8], file_type: FileType) -> bool {
        let policy = self.policy();
        if matches!(name, b"." | b"..") || (name.first() == Some(&b'.') && !policy.dotfiles) {
            return false;
        }
        match file_type {
            FileType::RegularFile | FileType::Directory | FileType::Unknown => true,
            FileType::Symlink => policy.symlinks != Symlinks::Refused,
            _ => false,
        }
    }

    /// `None` for what is not served, or has gone meanwhile.
    fn listed_entry(&self, directory: BorrowedFd<'_>, relative: &[u8], name: Vec<u8>) -> Option<ListedEntry> {
        let facts = match rustix::fs::statat(directory, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Facts::from_stat(&stat),
            Err(_) => return None,
        };
        let facts = if facts.kind == Kind::Symlink { self.behind_link(relative, &name)? } else { facts };
        let is_directory = match facts.kind {
            Kind::Directory => true,
            Kind::Regular => false,
            Kind::Symlink | Kind::Other => return None,
        };
        // A directory that can be entered but not read may have an index file.
        let wanted = if is_directory { Access::EXEC_OK } else { Access::READ_OK };
        if rustix::fs::accessat(directory, name.as_slice(), wanted, AtFlags::EACCESS) == Err(Errno::ACCESS) {
            return None;
        }
        let icon = if is_directory { Icon::Directory } else { Icon::of(self.media_types().of(&name).name) };
        let length_bytes = if is_directory { 0 } else { facts.length_bytes };
        Some(ListedEntry { name, is_directory, length_bytes, modified: facts.modified, icon })
    }

    /// What a link leads to, by the rules that a request for it would meet.
    fn behind_link(&self, relative: &[u8], name: &[u8]) -> Option<Facts> {
        let path = join(relative, name);
        self.open_beneath(&path, Purpose::Look, Blocking::Allowed).ok().map(|(_, facts)| facts)
    }
}

impl Listing {
    /// Makes the page or document that `view` asks for.
    #[must_use]
    pub fn render(&mut self, view: ListingView) -> RenderedListing {
        self.sort(view.key, view.order);
        match view.format {
            ListingFormat::Html => RenderedListing {
                body: html::render(self, view).into_bytes(),
                media_type: "text/html; charset=utf-8",
            },
            ListingFormat::Json => {
                RenderedListing { body: json::render(self), media_type: "application/json" }
            }
        }
    }

    /// How many entries it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether entries were left out because there were more than the limit.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    fn sort(&mut self, key: SortKey, order: SortOrder) {
        self.entries.sort_unstable_by(|left, right| {
            let by_name = || name_order::compare_names(&left.name, &right.name);
            let by_key = match key {
                SortKey::Name => by_name(),
                SortKey::Size => left.length_bytes.cmp(&right.length_bytes),
                SortKey::Date => left.modified.cmp(&right.modified),
            };
            let in_order = match order {
                SortOrder::Ascending => by_key,
                SortOrder::Descending => by_key.reverse(),
            };
            // Equals stay in the order of their names, whichever the direction.
            right.is_directory.cmp(&left.is_directory).then(in_order).then_with(by_name)
        });
    }

    fn directory_count(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_directory).count()
    }

    fn file_count(&self) -> usize {
        self.entries.len() - self.directory_count()
    }

    fn total_bytes(&self) -> u64 {
        self.entries.iter().fold(0, |total: u64, entry| total.saturating_add(entry.length_bytes))
    }

    /// The segments of its path, outermost first.
    fn segments(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.relative.split(|&byte| byte == b'/').filter(|segment| !segment.is_empty())
    }
}
