//! NFS on the same links, engines and limits as HTTP.
//!
//! ```text
//!  arrived ─► records ─► calls ─► evaluated at once ──────────────┬─► small replies ─┬─► queue of pieces ─► link
//!                          │            │ would wait              │                  │
//!                          │            ▼                         ├─► large replies ─┘
//!                          │        waiting thread ───────────────┤
//!                          │                          cold range ─┴─► waiting thread (read ahead)
//!                          └─► AUTH_TLS ─► STARTTLS in the clear ─► handshake ─► the same again over TLS
//! ```
//! A connection begins in the clear. Calls are answered in any order: what has to wait for the disk waits beside the
//! connection, and replies without files go before those that send them.

mod call;
mod complaints;
mod connection;
mod mappings;
mod outgoing;
mod service;
mod source;
mod talk;
mod warmth;

/// Files kept at hand for what clients ask next.
pub(crate) const NODES_LIMIT: usize = 256;
/// Descriptors that these have.
pub(crate) const DESCRIPTORS: u64 = 2 * NODES_LIMIT as u64;

pub(crate) use connection::{Door, run};
pub(crate) use mappings::Mappings;
pub(crate) use service::NfsService;
