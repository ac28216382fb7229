//! The document: what a mirror or a script reads.

use linerate_http::encode_path;
use serde::Serialize;

use super::times::Timestamp;
use super::{Listing, name};

#[derive(Serialize)]
struct Document<'a> {
    path: String,
    files: usize,
    directories: usize,
    total_bytes: u64,
    /// Whether entries are missing because there are too many.
    cut: bool,
    entries: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    /// For people: bytes that are not UTF-8 are U+FFFD, and what cannot be seen is escaped.
    name: std::borrow::Cow<'a, str>,
    /// For programs: exact, relative to this directory.
    href: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    mtime: String,
}

pub(super) fn render(listing: &Listing) -> Vec<u8> {
    let entries = listing.entries.iter().map(|entry| Entry {
        name: String::from_utf8_lossy(&entry.name),
        href: encode_path(&entry.name) + if entry.is_directory { "/" } else { "" },
        kind: if entry.is_directory { "directory" } else { "file" },
        size: (!entry.is_directory).then_some(entry.length_bytes),
        mtime: Timestamp(entry.modified).to_string(),
    });
    let slash = if listing.relative.is_empty() { "" } else { "/" };
    let document = Document {
        path: format!("/{}{slash}", String::from_utf8_lossy(&listing.relative)),
        files: listing.file_count(),
        directories: listing.directory_count(),
        total_bytes: listing.total_bytes(),
        cut: listing.is_cut(),
        entries: entries.collect(),
    };
    // Strings, numbers and no maps: there is nothing in it that JSON can't say.
    name::escaped_json(serde_json::to_string(&document).unwrap_or_default()).into_bytes()
}
