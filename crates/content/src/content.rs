//! One open file, ready to be sent: its descriptor and all that a response's head says about it.

use std::fs::File;
use std::io;

use linerate_http::{Coding, MediaType};

use crate::etag;
use crate::facts::{Facts, FileTime, Identity};
use crate::policy::EtagSource;

/// One open regular file and what a response says about it, as they were when it was opened.
#[derive(Debug)]
pub struct Content {
    file: File,
    facts: Facts,
    at_rest: bool,
    etag: Box<str>,
    media_type_name: Box<str>,
    charset: Option<Box<str>>,
    coding: Option<Coding>,
    vary: bool,
    index_path: Option<Box<[u8]>>,
}

/// What has become of an open file since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// Nothing.
    Unchanged,
    /// Its length and time of modification stand, but it was renamed over, removed, linked, or its owner or mode was
    /// changed. Its bytes are still those announced, so a transfer goes on; a new request should look its path up.
    Replaced,
    /// It was written to or truncated: a transfer of it cannot be finished honestly.
    Modified,
}

impl Content {
    pub(crate) fn new(
        file: File,
        facts: Facts,
        media_type: MediaType<'_>,
        coding: Option<Coding>,
        vary: bool,
        etag_source: EtagSource,
    ) -> Self {
        let at_rest = etag::is_at_rest(&facts, etag::now_unix_seconds());
        let etag = etag::etag(&facts, coding, etag_source, at_rest).into_boxed_str();
        let media_type_name = media_type.name.into();
        Self {
            file,
            facts,
            at_rest,
            etag,
            media_type_name,
            charset: media_type.charset.map(Into::into),
            coding,
            vary,
            index_path: None,
        }
    }

    /// The same, found at `relative` for the directory that it is in.
    pub(crate) fn found_for_directory(self, relative: &[u8]) -> Self {
        Self { index_path: Some(relative.into()), ..self }
    }

    /// The open file. Read it at given offsets only (`pread`, `sendfile` with an offset): it is shared.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its length when it was opened.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        self.facts.length_bytes
    }

    /// When it was last modified.
    #[must_use]
    pub fn modified(&self) -> FileTime {
        self.facts.modified
    }

    /// The entity tag, quotes included; weak (`W/`) if the file was modified less than about two seconds before it was
    /// opened. Differs between the codings of one file.
    #[must_use]
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// The media type, of the name without the ending of a coding.
    #[must_use]
    pub fn media_type(&self) -> MediaType<'_> {
        MediaType { name: &self.media_type_name, charset: self.charset.as_deref() }
    }

    /// The coding of these bytes (Content-Encoding), if they are those of a precompressed sibling.
    #[must_use]
    pub fn coding(&self) -> Option<Coding> {
        self.coding
    }

    /// Whether the choice of these bytes may have depended on Accept-Encoding, so that the response must say
    /// `Vary: Accept-Encoding`.
    #[must_use]
    pub fn varies(&self) -> bool {
        self.vary
    }

    /// Where it is beneath the root, if what was asked for is its directory: rules by path are about files.
    #[must_use]
    pub fn index_path(&self) -> Option<&[u8]> {
        self.index_path.as_deref()
    }

    /// Which file it is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.facts.identity
    }

    /// Asks the system, by one `fstat`, what has become of the file.
    ///
    /// # Errors
    /// Those of `fstat`: an I/O error, or ESTALE on a network file system.
    pub fn state(&self) -> io::Result<FileState> {
        let now = Facts::of(&self.file)?;
        Ok(if now == self.facts {
            FileState::Unchanged
        } else if now.length_bytes == self.facts.length_bytes && now.modified == self.facts.modified {
            FileState::Replaced
        } else {
            FileState::Modified
        })
    }

    /// Whether another look-up of the path that gave `other` found this very content again, tag and all.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.facts == other.facts
            && self.coding == other.coding
            && self.etag == other.etag
            && self.vary == other.vary
            && self.index_path == other.index_path
    }

    /// Whether the tag is weak only because the file was fresh when it was opened, and would be strong by now.
    pub(crate) fn has_come_to_rest(&self) -> bool {
        !self.at_rest && etag::is_at_rest(&self.facts, etag::now_unix_seconds())
    }
}
