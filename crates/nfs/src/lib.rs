//! NFS without I/O, read-only. So far this crate says what the protocol asks of a file system: [`FileSystem`].
//!
//! Nothing here touches a socket, a file or a clock.

// A fault is a value (INV-PEER-1).
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

mod attributes;
mod caller;
mod file_system;
mod handle;
mod name;

pub use attributes::{Attributes, Device, FileSystemId, Kind, Space, Time};
pub use caller::{Caller, Certificate, Client, Identity, System, Tls, Waiting};
pub use file_system::{Access, Entry, Fault, FileSystem, Listing, ListingRequest, Opened, Verifier};
pub use handle::Handle;
pub use name::{NAME_LIMIT_BYTES, Name, NameError};
