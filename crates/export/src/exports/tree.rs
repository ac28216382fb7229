//! The directory that lists the exports.

use super::Exports;
use crate::Export;
use linerate_nfs::{Attributes, Caller, Device, Entry, FileSystemId, Kind, Listing, ListingRequest};

/// What the cookies of its entries begin at.
const COOKIE_SHIFT: u64 = 3;

impl Exports {
    pub(super) fn tree_attributes(&self) -> Attributes {
        Attributes {
            kind: Kind::Directory,
            mode: 0o555,
            links: 2,
            user: 0,
            group: 0,
            size_bytes: 4096,
            used_bytes: 0,
            device: Device::default(),
            file_system: FileSystemId::default(),
            number: 1,
            mounted_on_number: 1,
            // Exports come and go with a reload.
            change: self.made.seconds.cast_unsigned().wrapping_mul(1_000_000_000)
                + u64::from(self.made.nanoseconds),
            accessed: self.made,
            modified: self.made,
            attributes_changed: self.made,
        }
    }

    /// Those that the client may use, by number: cookies are numbers of exports, so a reload leads none astray.
    pub(super) fn list_exports(&self, caller: &Caller<'_>, request: ListingRequest) -> Listing {
        let cookie = |export: &Export| u64::from(export.id()) + COOKIE_SHIFT;
        let mut following = self.admitted(caller).filter(|export| cookie(export) > request.after);
        let entries = following
            .by_ref()
            .take(request.limit_entries.max(1))
            .map(|export| Entry {
                name: export.name().as_bytes().to_vec(),
                cookie: cookie(export),
                number: export.mounted_on_number(),
                kind: None,
            })
            .collect();
        Listing { verifier: [0; 8], entries, is_end: following.next().is_none() }
    }
}
