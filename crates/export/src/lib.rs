//! Directories that NFS clients see: [`Exports`] implements the protocol's [`linerate_nfs::FileSystem`] on files.
//!
//! ```text
//! handle ──► memory: where was it? ──► openat2 beneath the export ──► is it that inode? ──► node (O_PATH descriptor)
//!                     │ nowhere                                           │ no
//!                     └───────────► search: the ancestors' numbers in the handle lead the way
//! ```
//!
//! Nothing outside an export is ever reached: the kernel keeps every walk beneath the export's directory
//! (`RESOLVE_BENEATH`), follows no symbolic link (clients get their text) and crosses no mount point. Only regular files are
//! opened; everything else is described.
//!
//! Handles need no privilege and no table on disk. A handle has the object's inode number and time of birth, and of each
//! directory above it a few bits of that one's number, so that the object can be found again after a restart by reading the
//! directories that lead to it, and no others. An authenticator keeps clients from making handles up.

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::indexing_slicing
    )
)]
#![forbid(unsafe_code)]

mod access;
mod attributes;
mod error;
mod export;
mod exports;
mod file;
mod handle;
mod key;
mod listing;
mod memory;
mod node;
mod reading_order;
mod refusal;
mod rule;
mod search;

pub use access::IdentityRule;
pub use error::ExportError;
pub use export::{Export, ExportOptions};
pub use exports::{Exports, Object};
pub use file::OpenFile;
pub use key::HandleKey;
pub use reading_order::ReadingOrder;
pub use refusal::{Refusal, Refusals};
pub use rule::{ClientRule, TlsRule};
