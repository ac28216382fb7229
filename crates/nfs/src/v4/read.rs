//! READ and READDIR.

use super::{
    attributes::{Known, LISTED, READ_ERROR, SPACE, Subject, WRITE_ONLY, write_error, write_listed},
    evaluate::Evaluation,
    open::StateId,
    set::AttributeSet,
    status::{Status, Stop},
};
use crate::{Described, Entry, Fault, FileSystem, ListingRequest, Name, Space};
use linerate_rpc::xdr::Writer;

/// Cookies of an entry's place that mean something else: `.` and `..` (RFC 8881 section 18.23.3).
const RESERVED_COOKIES: std::ops::RangeInclusive<u64> = 1..=2;
/// A READDIR's result without an entry: verifier, no entry follows, whether that is the end.
const LISTING_BYTES: usize = 16;
/// What an entry takes: roughly, for how many are asked of the file system at a time.
const ENTRY_USUAL_BYTES: usize = 200;
/// The same of one that the listing knows all about: that it follows, its cookie, a name of up to twelve bytes, kind, error and
/// number.
const ENTRY_LISTED_BYTES: usize = 4 + 8 + 16 + 12 + 4 + 16;
/// The most entries that are asked of the file system at a time.
const ENTRIES_LIMIT: usize = 4096;

impl<F: FileSystem> Evaluation<'_, F> {
    /// READ (RFC 8881 section 18.22). The result's bytes are a range of the file.
    pub(super) fn read(&mut self) -> Result<(), Stop> {
        StateId::read(&mut self.reader)?;
        let offset = self.reader.u64()?;
        let count = self.reader.u32()?;
        let object = self.object()?;
        let opened = match self.files.open(self.caller, object) {
            Err(Fault::NotFile) => return Err(self.no_file(object)?.into()),
            opened => opened?,
        };
        // Whether it is the end, and the length; the padding may be three bytes more.
        let room_bytes = self.room_bytes().saturating_sub(8 + 3);
        let length_bytes = opened
            .size_bytes
            .saturating_sub(offset)
            .min(u64::from(count))
            .min(self.limits.read_bytes.into())
            .min(room_bytes);
        let end = offset.saturating_add(length_bytes);
        self.draft.bytes.boolean(end >= opened.size_bytes);
        // At most `count`.
        self.draft.bytes.u32(length_bytes as u32);
        self.draft.file(opened.file, offset..end);
        Ok(())
    }

    /// READDIR (RFC 8881 section 18.23).
    pub(super) fn read_directory(&mut self) -> Result<(), Stop> {
        let (after, verifier) = (self.reader.u64()?, self.reader.array()?);
        let (names_bytes, most_bytes) = (self.reader.u32()?, self.reader.u32()?);
        let wanted = AttributeSet::read(&mut self.reader)?;
        let directory = self.object()?;
        if !wanted.and(WRITE_ONLY).is_empty() {
            return Err(Status::Invalid.into());
        }
        if RESERVED_COOKIES.contains(&after) {
            return Err(Status::BadCookie.into());
        }
        let most_bytes = u64::from(most_bytes).min(self.room_bytes()).min(self.limits.reply_bytes.into());
        let most_bytes = usize::try_from(most_bytes).unwrap_or(usize::MAX);
        let room_bytes = most_bytes.checked_sub(LISTING_BYTES).ok_or(Status::TooSmall)?;
        let is_listed = wanted.without(LISTED).is_empty();
        let usual_bytes = if is_listed { ENTRY_LISTED_BYTES } else { ENTRY_USUAL_BYTES };
        let limit_entries = (room_bytes / usual_bytes).clamp(1, ENTRIES_LIMIT);
        let request = ListingRequest { after, verifier, limit_entries };
        let listing = match self.files.list(self.caller, directory, request) {
            Err(Fault::NotDirectory) => return Err(self.no_directory()?.into()),
            listing => listing?,
        };
        let mut page = Page {
            files: self.files,
            caller: self.caller,
            limits: self.limits,
            directory,
            wanted,
            writer: Writer::default(),
            room_bytes,
            // Zero is no limit.
            names_bytes: if names_bytes == 0 { usize::MAX } else { names_bytes as usize },
            count: 0,
        };
        let mut is_end = listing.is_end;
        for entry in listing.entries.iter().take(limit_entries) {
            if !page.add(entry)? {
                if page.count == 0 {
                    return Err(Status::TooSmall.into());
                }
                is_end = false;
                break;
            }
        }
        // Entries that are not shown, and the end is not near: the client would ask for the same again.
        if page.count == 0 && !is_end {
            return Err(Status::Delay.into());
        }
        let entries = page.writer;
        self.draft.bytes.fixed(&listing.verifier);
        self.draft.bytes.fixed(entries.as_bytes());
        self.draft.bytes.boolean(false);
        self.draft.bytes.boolean(is_end);
        Ok(())
    }
}

/// Entries of a listing, as long as there is room.
struct Page<'a, F: FileSystem> {
    files: &'a F,
    caller: &'a crate::Caller<'a>,
    limits: &'a crate::limits::Limits,
    directory: &'a F::Object,
    wanted: AttributeSet,
    writer: Writer,
    room_bytes: usize,
    /// What names and cookies may still take, as the client would have it (`dircount`).
    names_bytes: usize,
    count: usize,
}

impl<F: FileSystem> Page<'_, F> {
    /// Whether there was room for it. An entry that is not shown takes none.
    fn add(&mut self, entry: &Entry) -> Result<bool, Stop> {
        let Ok(name) = Name::new(&entry.name) else { return Ok(true) };
        let names_bytes = 8 + 4 + entry.name.len();
        if names_bytes > self.names_bytes && self.count > 0 {
            return Ok(false);
        }
        let before = self.writer.length_bytes();
        self.writer.boolean(true);
        self.writer.u64(entry.cookie);
        self.writer.opaque(&entry.name);
        if !self.attributes(entry, name)? {
            self.writer.truncate(before);
            return Ok(true);
        }
        if self.writer.length_bytes() > self.room_bytes {
            self.writer.truncate(before);
            return Ok(false);
        }
        self.names_bytes = self.names_bytes.saturating_sub(names_bytes);
        self.count += 1;
        Ok(true)
    }

    /// Writes an entry's attributes. `false`, if it has gone meanwhile.
    fn attributes(&mut self, entry: &Entry, name: Name<'_>) -> Result<bool, Stop> {
        if write_listed(self.wanted, entry, &mut self.writer) {
            return Ok(true);
        }
        let before = self.writer.length_bytes();
        let result =
            if self.wanted.and(SPACE).is_empty() { self.described(name) } else { self.looked_up(name) };
        match result {
            Ok(()) => Ok(true),
            Err(Stop::With(Status::NotFound | Status::Stale)) => Ok(false),
            Err(Stop::With(status)) if self.wanted.has(READ_ERROR) => {
                self.writer.truncate(before);
                write_error(status, &mut self.writer);
                Ok(true)
            }
            Err(stop) => Err(stop),
        }
    }

    fn described(&mut self, name: Name<'_>) -> Result<(), Stop> {
        let Described { attributes, handle } = self.files.describe(self.caller, self.directory, name)?;
        let known = Known { attributes, handle: Some(handle), space: Space::default(), limits: self.limits };
        known.write(self.wanted, &mut self.writer);
        Ok(())
    }

    fn looked_up(&mut self, name: Name<'_>) -> Result<(), Stop> {
        let object = self.files.look_up(self.caller, self.directory, name)?;
        let subject =
            Subject { files: self.files, caller: self.caller, object: &object, limits: self.limits };
        subject.write(self.wanted, &mut self.writer)
    }
}
