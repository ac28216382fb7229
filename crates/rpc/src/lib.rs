//! ONC RPC (RFC 5531) without I/O, as a server needs it: from the bytes of a stream to calls, and replies back.
//!
//! 1. [`Records`] finds the records in a stream (record marking, RFC 5531 section 11).
//! 2. [`Call::parse`] reads a record's header: which procedure of which program, with which [`Credential`]. Or it says with what
//!    the record is to be refused ([`NoCall`]).
//! 3. The program reads its arguments from [`Call::arguments`], an [`xdr::Reader`].
//! 4. It writes its results behind what [`reply::accepted`] has begun, an [`xdr::Writer`], and [`reply::finish`] sets the record mark.
//!    Results may go on behind the writer's bytes (a range of a file): the mark counts what it is told to.
//!
//! A client asks with the credential [`Credential::Tls`] whether it may speak TLS (RFC 9289): [`reply::start_tls`] is the answer, and
//! the next byte of the stream belongs to the handshake.
//!
//! Nothing here touches a socket or a clock, and every length that a peer announces is checked before it is believed.

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

mod call;
mod credential;
mod records;
pub mod reply;
pub mod xdr;

pub use call::{Call, NoCall, RPC_VERSION};
pub use credential::{Credential, GROUPS_LIMIT, MACHINE_LIMIT_BYTES, SystemCredential};
pub use records::{RecordError, Records, Taken};
