//! What is served from a directory: files, their precompressed siblings, index files and listings, and the open files
//! that a worker keeps.
//!
//! Every path is resolved beneath its [`Root`] by the kernel (`openat2` with `RESOLVE_BENEATH`), or step by step where
//! the kernel can't ([`Resolver`]). No symbolic link leads out of it unless the [`Policy`] says so, and nothing but a
//! regular file or a directory is ever served. Opening never waits for a FIFO's writer or a device, and with
//! [`Blocking::CachedOnly`] not for a disk either.
//!
//! What is found is only opened and described here; sending it is another crate's job.

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]

mod cache;
mod content;
mod error;
mod etag;
mod facts;
mod listing;
mod path;
mod policy;
mod precompressed;
mod resolve;
mod root;

pub use cache::{Cache, CacheLimits, Entry, Served};
pub use content::{Content, FileState};
pub use error::{ContentError, Refusal};
pub use facts::{FileTime, Identity};
pub use listing::{
    CONTENT_SECURITY_POLICY, Listing, ListingFormat, ListingView, RenderedListing, SortKey, SortOrder,
};
pub use policy::{EtagSource, Policy, Symlinks};
pub use precompressed::{is_current as sibling_is_current, original_of as sibling_original};
pub use resolve::{Blocking, Resolver};
pub use root::{Directory, Found, Root, RootId};
