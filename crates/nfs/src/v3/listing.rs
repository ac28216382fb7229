//! READDIR and READDIRPLUS.

use super::{
    attributes::write_if_known,
    procedures::Evaluation,
    status::{Status, Stop},
};
use crate::{Described, Entry, Fault, FileSystem, Handle, Listing, ListingRequest, Name};

/// Cookies of the first two entries, which the file system does not list.
const ITSELF: u64 = 1;
const PARENT: u64 = 2;

/// The result without an entry: status, attributes, verifier, no entry follows, whether that is the end.
const LISTING_BYTES: usize = 4 + 4 + 84 + 8 + 4 + 4;
/// An entry without its name's bytes: that it follows, number, the name's length, cookie.
const ENTRY_BYTES: usize = 4 + 8 + 4 + 8;
/// The same with attributes and a handle: roughly, for how many are asked of the file system at a time.
const ENTRY_PLUS_USUAL_BYTES: usize = ENTRY_BYTES + 20 + 4 + 84 + 4 + 40;
/// The most entries that are asked of the file system at a time.
const ENTRIES_LIMIT: usize = 4096;

impl<F: FileSystem> Evaluation<'_, F> {
    pub(super) fn read_directory(&mut self, directory: &F::Object) -> Result<(), Stop> {
        let (after, verifier) = (self.reader.u64()?, self.reader.array()?);
        let most_bytes = self.reader.u32()?;
        let request = ListingRequest { after, verifier, limit_entries: 0 };
        self.list(directory, request, most_bytes, u32::MAX, false)
    }

    pub(super) fn read_directory_plus(&mut self, directory: &F::Object) -> Result<(), Stop> {
        let (after, verifier) = (self.reader.u64()?, self.reader.array()?);
        let (names_bytes, most_bytes) = (self.reader.u32()?, self.reader.u32()?);
        let request = ListingRequest { after, verifier, limit_entries: 0 };
        self.list(directory, request, most_bytes, names_bytes, true)
    }

    fn list(
        &mut self,
        directory: &F::Object,
        request: ListingRequest,
        most_bytes: u32,
        names_bytes: u32,
        is_plus: bool,
    ) -> Result<(), Stop> {
        let most_bytes = most_bytes.min(self.limits.reply_bytes) as usize;
        let room_bytes = most_bytes.checked_sub(LISTING_BYTES).ok_or(Status::TooSmall)?;
        let usual_bytes = if is_plus { ENTRY_PLUS_USUAL_BYTES } else { ENTRY_BYTES + 4 };
        let limit_entries = (room_bytes / usual_bytes).clamp(1, ENTRIES_LIMIT);
        let behind = ListingRequest {
            after: if request.after <= PARENT { 0 } else { request.after },
            limit_entries,
            ..request
        };
        let listing = self.files.list(self.caller, directory, behind)?;
        self.ok(directory)?;
        self.draft.bytes.fixed(&listing.verifier);
        let begin = self.draft.bytes.length_bytes();
        let mut room = Room { begin, room_bytes, names_bytes: names_bytes as usize, count: 0 };
        let is_end = self.entries(directory, request.after, &listing, &mut room, is_plus)?;
        if room.count == 0 && !is_end {
            // Either there is no room for one, or none of many may be shown: the client would ask for the same again.
            let is_short = listing.entries.first().is_some_and(|entry| Name::new(&entry.name).is_ok());
            return Err(if is_short { Status::TooSmall.into() } else { Status::Later.into() });
        }
        self.draft.bytes.boolean(false);
        self.draft.bytes.boolean(is_end);
        Ok(())
    }

    /// Whether the last of them is the directory's last.
    fn entries(
        &mut self,
        directory: &F::Object,
        after: u64,
        listing: &Listing,
        room: &mut Room,
        is_plus: bool,
    ) -> Result<bool, Stop> {
        for (cookie, name) in [(ITSELF, b".".as_slice()), (PARENT, b"..")] {
            if after >= cookie {
                continue;
            }
            let object = if cookie == ITSELF { directory.clone() } else { self.parent(directory)? };
            let number = self.files.attributes(self.caller, &object)?.number;
            let entry = Entry { name: name.to_vec(), cookie, number, kind: None };
            let described = if is_plus { self.if_described(&object)? } else { None };
            if !self.entry(&entry, described, room, is_plus)? {
                return Ok(false);
            }
        }
        for entry in &listing.entries {
            let Ok(name) = Name::new(&entry.name) else { continue };
            let described = if is_plus {
                match self.files.describe(self.caller, directory, name) {
                    Ok(described) => Some(described),
                    Err(Fault::WouldWait) => return Err(Stop::WouldWait),
                    Err(Fault::NotFound) => continue,
                    // It is told without attributes and handle.
                    Err(_) => None,
                }
            } else {
                None
            };
            if !self.entry(entry, described, room, is_plus)? {
                return Ok(false);
            }
        }
        Ok(listing.is_end)
    }

    fn if_described(&self, object: &F::Object) -> Result<Option<Described>, Stop> {
        let attributes = self.if_known(object)?;
        Ok(attributes.map(|attributes| Described { attributes, handle: self.files.handle(object) }))
    }

    /// Writes an entry. `false`, if there was no room for it.
    fn entry(
        &mut self,
        entry: &Entry,
        described: Option<Described>,
        room: &mut Room,
        is_plus: bool,
    ) -> Result<bool, Stop> {
        let names_bytes = ENTRY_BYTES + entry.name.len();
        if names_bytes > room.names_bytes && room.count > 0 {
            return Ok(false);
        }
        let before = self.draft.bytes.length_bytes();
        self.draft.bytes.boolean(true);
        self.draft.bytes.u64(entry.number);
        self.draft.bytes.opaque(&entry.name);
        self.draft.bytes.u64(entry.cookie);
        if is_plus {
            let handle = described.as_ref().map(|described| described.handle);
            let handle = handle.filter(|handle| handle.as_bytes().len() <= Handle::V3_LIMIT_BYTES);
            write_if_known(described.as_ref().map(|described| &described.attributes), &mut self.draft.bytes);
            self.draft.bytes.boolean(handle.is_some());
            if let Some(handle) = handle {
                self.draft.bytes.opaque(handle.as_bytes());
            }
        }
        if self.draft.bytes.length_bytes() - room.begin > room.room_bytes {
            self.draft.bytes.truncate(before);
            return Ok(false);
        }
        room.names_bytes = room.names_bytes.saturating_sub(names_bytes);
        room.count += 1;
        Ok(true)
    }
}

struct Room {
    /// Where entries begin in the draft's bytes.
    begin: usize,
    room_bytes: usize,
    /// What names, numbers and cookies may still take, as the client would have it (`dircount`).
    names_bytes: usize,
    count: usize,
}
