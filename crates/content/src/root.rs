//! A directory that is served, and the look-up of a path in it.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_http::{AcceptedCodings, Coding, DecodedPath, MediaTypes};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::content::Content;
use crate::error::{ContentError, Refusal};
use crate::facts::{Facts, Identity, Kind};
use crate::path::{check_path, check_segment};
use crate::policy::Policy;
use crate::precompressed;
use crate::resolve::{Blocking, Purpose, Resolver};

/// A directory that is served. Cheap to share between threads (`Arc`); it never changes.
#[derive(Debug)]
pub struct Root {
    id: RootId,
    path: PathBuf,
    directory: OwnedFd,
    identity: Identity,
    resolver: Resolver,
    policy: Policy,
    media_types: Arc<MediaTypes>,
}

/// Tells one opened root from every other of this process, so that a cache never mixes them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RootId(u64);

/// What a path led to.
#[derive(Debug)]
pub enum Found {
    /// A file to send.
    File(Content),
    /// A directory whose URL lacks the slash at its end: redirect to the path with one (relative links would go wrong).
    NeedsSlash,
    /// A directory without an index file, to be listed by [`Root::list`](crate::Root::list).
    Listing(Directory),
}

/// An open directory to be listed.
#[derive(Debug)]
pub struct Directory {
    pub(crate) descriptor: OwnedFd,
    /// Relative to the root, without slashes at either end.
    pub(crate) relative: Vec<u8>,
}

impl Root {
    /// Opens `path` to be served under `policy`, with the best way of resolving paths that the system has.
    ///
    /// `path` itself may be a symbolic link: it's the operator's. A link that is switched to another directory later
    /// (a deployment) is followed if the caller asks [`Root::reopened_if_replaced`] now and then.
    ///
    /// # Errors
    /// The `Root…` variants of [`ContentError`].
    pub fn open(
        path: impl Into<PathBuf>,
        policy: Policy,
        media_types: Arc<MediaTypes>,
    ) -> Result<Self, ContentError> {
        Self::open_with(path.into(), policy, media_types, None)
    }

    /// As [`Root::open`], but resolves paths by `resolver`, whether the system has a better way or not.
    ///
    /// # Errors
    /// The `Root…` variants of [`ContentError`].
    pub fn open_with_resolver(
        path: impl Into<PathBuf>,
        policy: Policy,
        media_types: Arc<MediaTypes>,
        resolver: Resolver,
    ) -> Result<Self, ContentError> {
        Self::open_with(path.into(), policy, media_types, Some(resolver))
    }

    fn open_with(
        path: PathBuf,
        mut policy: Policy,
        media_types: Arc<MediaTypes>,
        resolver: Option<Resolver>,
    ) -> Result<Self, ContentError> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);

        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, Mode::empty());
        let (directory, identity) =
            match opened.and_then(|directory| Ok((Facts::of(&directory)?.identity, directory))) {
                Ok((identity, directory)) => (directory, identity),
                Err(errno) => return Err(root_error(path, errno)),
            };
        policy.index.retain(|name| check_segment(name.as_bytes(), true).is_ok());
        Ok(Self {
            id: RootId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            resolver: resolver.unwrap_or_else(|| Resolver::best(directory.as_fd())),
            path,
            directory,
            identity,
            policy,
            media_types,
        })
    }

    /// This root opened anew if its path has come to mean another directory, `None` if it still means the same.
    ///
    /// One `stat`; it may wait for the disk.
    ///
    /// # Errors
    /// The `Root…` variants of [`ContentError`]: keep serving from the old root then.
    pub fn reopened_if_replaced(&self) -> Result<Option<Self>, ContentError> {
        let identity = match rustix::fs::stat(&self.path) {
            Ok(stat) => Facts::from_stat(&stat).identity,
            Err(errno) => return Err(root_error(self.path.clone(), errno)),
        };
        if identity == self.identity {
            return Ok(None);
        }
        let media_types = Arc::clone(&self.media_types);
        Self::open_with(self.path.clone(), self.policy.clone(), media_types, Some(self.resolver)).map(Some)
    }

    /// The media types by which its files are labelled.
    #[must_use]
    pub fn media_types(&self) -> &MediaTypes {
        &self.media_types
    }

    /// Tells this root from all others.
    #[must_use]
    pub fn id(&self) -> RootId {
        self.id
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is allowed in it.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// How paths are resolved; [`Resolver::ByHand`] is worth a line in the log at start.
    #[must_use]
    pub fn resolver(&self) -> Resolver {
        self.resolver
    }

    /// Looks up the path of a request for a client that accepts `accepted`.
    ///
    /// A path that ends in a slash means a directory: its index file, or the directory itself to be listed.
    ///
    /// # Errors
    /// [`ContentError::Refused`] with the reason; [`ContentError::WouldBlock`] only with [`Blocking::CachedOnly`];
    /// otherwise a shortage or failure of the system.
    pub fn lookup(
        &self,
        path: &DecodedPath<'_>,
        accepted: &AcceptedCodings,
        blocking: Blocking,
    ) -> Result<Found, ContentError> {
        check_path(path, self.policy.dotfiles)?;
        let relative = path.relative.as_ref();
        if path.is_directory {
            return self.lookup_directory(relative, accepted, blocking);
        }
        match self.open_any(relative, blocking)? {
            Opened::File(file, facts) => {
                self.content(relative, file, facts, accepted, blocking).map(Found::File)
            }
            Opened::Directory => Ok(Found::NeedsSlash),
        }
    }

    /// The index file if there is one, else the directory itself.
    fn lookup_directory(
        &self,
        relative: &[u8],
        accepted: &AcceptedCodings,
        blocking: Blocking,
    ) -> Result<Found, ContentError> {
        for index in &self.policy.index {
            let name = join(relative, index.as_bytes());
            match self.open_any(&name, blocking) {
                Ok(Opened::File(file, facts)) => {
                    let content = self.content(&name, file, facts, accepted, blocking)?;
                    return Ok(Found::File(content.found_for_directory(&name)));
                }
                Ok(Opened::Directory) | Err(ContentError::Refused(Refusal::Missing)) => {}
                Err(other) => return Err(other),
            }
        }
        if !self.policy.listing {
            // Only now, so that a missing directory is missing and not forbidden.
            self.open_beneath(relative, Purpose::Look, blocking).and_then(|(_, facts)| {
                if facts.kind == Kind::Directory { Ok(()) } else { Err(Refusal::Missing.into()) }
            })?;
            return Err(Refusal::ListingOff.into());
        }
        let (descriptor, _) = self.open_beneath(relative, Purpose::Directory, blocking)?;
        Ok(Found::Listing(Directory { descriptor, relative: relative.to_vec() }))
    }

    /// The content to send for `relative`: a precompressed sibling or the file itself.
    fn content(
        &self,
        relative: &[u8],
        file: File,
        facts: Facts,
        accepted: &AcceptedCodings,
        blocking: Blocking,
    ) -> Result<Content, ContentError> {
        let media_type = self.media_types.of(relative);
        let vary = self.policy.precompressed && precompressed::is_worthwhile(media_type.name);
        let etag_source = self.policy.etag_source;
        if vary {
            for coding in accepted.iter() {
                let Some((file, facts)) = self.open_sibling(relative, coding, &facts, blocking)? else {
                    continue;
                };
                return Ok(Content::new(file, facts, media_type, Some(coding), vary, etag_source));
            }
        }
        Ok(Content::new(file, facts, media_type, None, vary, etag_source))
    }

    /// The sibling of `relative` in `coding`, if there is one that can be served and is current.
    fn open_sibling(
        &self,
        relative: &[u8],
        coding: Coding,
        original: &Facts,
        blocking: Blocking,
    ) -> Result<Option<(File, Facts)>, ContentError> {
        let name = [relative, coding.file_suffix().as_bytes()].concat();
        match self.open_any(&name, blocking) {
            Ok(Opened::File(file, facts)) if precompressed::is_current(facts.modified, original.modified) => {
                Ok(Some((file, facts)))
            }
            Ok(_) | Err(ContentError::Refused(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Opens whatever is at `relative`, if it is something that is served.
    fn open_any(&self, relative: &[u8], blocking: Blocking) -> Result<Opened, ContentError> {
        match self.open_beneath(relative, Purpose::Content, blocking) {
            Ok((descriptor, facts)) => match facts.kind {
                Kind::Regular => Ok(Opened::File(File::from(descriptor), facts)),
                Kind::Directory => Ok(Opened::Directory),
                Kind::Symlink | Kind::Other => Err(Refusal::NotServable.into()),
            },
            // A directory may be entered (x) without being readable (r): its files are served all the same.
            Err(denied @ ContentError::Refused(Refusal::NotPermitted)) => {
                match self.open_beneath(relative, Purpose::Look, blocking) {
                    Ok((_, facts)) if facts.kind == Kind::Directory => Ok(Opened::Directory),
                    _ => Err(denied),
                }
            }
            Err(other) => Err(other),
        }
    }

    pub(crate) fn open_beneath(
        &self,
        relative: &[u8],
        purpose: Purpose,
        blocking: Blocking,
    ) -> Result<(OwnedFd, Facts), ContentError> {
        let root = self.directory.as_fd();
        let descriptor = self.resolver.open(root, relative, purpose, self.policy.symlinks, blocking)?;
        let facts = Facts::of(&descriptor)
            .map_err(|errno| ContentError::from_errno(errno, "fstat of an opened file"))?;
        Ok((descriptor, facts))
    }
}

/// Something that is served.
enum Opened {
    File(File, Facts),
    Directory,
}

fn root_error(path: PathBuf, errno: Errno) -> ContentError {
    match errno {
        Errno::NOENT => ContentError::RootMissing { path },
        Errno::NOTDIR => ContentError::RootNotDirectory { path },
        Errno::ACCESS | Errno::PERM => ContentError::RootNotPermitted { path },
        other => ContentError::RootUnusable { path, source: other.into() },
    }
}

/// The path of `name` in the directory `relative`.
pub(crate) fn join(relative: &[u8], name: &[u8]) -> Vec<u8> {
    if relative.is_empty() { name.to_vec() } else { [relative, b"/", name].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_can_be_made_on_another_thread() {
        fn crosses_threads<T: Send + Sync>() {}
        crosses_threads::<Root>();
        crosses_threads::<Found>();
        crosses_threads::<ContentError>();
    }
}
