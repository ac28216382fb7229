//! NFS without I/O, read-only: versions 4.1 and 4.2 (RFC 8881, RFC 7862), and version 3 with MOUNT (RFC 1813). From a record that a client sent to a reply that
//! consists of bytes and of ranges of files.
//!
//! 1. [`Protocol::take`] reads the header of a call, and answers at once what needs no file: NULL, the question for TLS, clients and
//!    sessions, and what is wrong.
//! 2. Everything else is a [`Request`], which [`Request::evaluate`] answers out of a [`FileSystem`]. Where something is not in the
//!    kernel's caches it is evaluated again, by a thread that may wait.
//! 3. The [`Reply`]'s [`Piece`]s are sent in order. A READ's bytes are not among them, only where they are.
//!
//! Nothing here touches a socket, a file or a clock. A [`Protocol`] is shared by all threads: a client's session spans connections.

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
mod limits;
mod name;
mod protocol;
mod reply;
mod request;
mod v3;
mod v4;

pub use attributes::{Attributes, Device, FileSystemId, Kind, Space, Time};
pub use caller::{Caller, Certificate, Client, Identity, System, Tls, Waiting};
pub use file_system::{
    Access, Described, Entry, Fault, FileSystem, Listing, ListingRequest, Opened, Verifier,
};
pub use handle::Handle;
pub use limits::Limits;
pub use name::{NAME_LIMIT_BYTES, Name, NameError};
pub use protocol::{MOUNT_PROGRAM, NFS_PROGRAM, Protocol, Step, TlsPolicy};
pub use reply::{Piece, Reply, Report};
pub use request::{Evaluated, Request};
pub use v4::{Operations, Sizes};
