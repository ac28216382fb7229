//! The load client of NFS: READs of versions 4.1 and 4.2 without a mount.
//!
//! ```text
//!  connect ─► AUTH_TLS ─► handshake ─► EXCHANGE_ID ─► CREATE_SESSION ─► RECLAIM_COMPLETE ─► look-up ─► READ, READ, …
//!             `── only with TLS ──┘
//! ```
//! Each connection is a client of its own, with one session, and as many slots as READs may be under way (`depth`).
//! [`conversation`] says what is asked and what came, without I/O; [`connection`] has the socket and TLS, [`worker`] a
//! thread's connections. [`Reader`] is one connection for a program that waits.

mod call;
mod connection;
mod conversation;
mod hearing;
mod plan;
mod reader;
mod replies;
mod status;
mod target;
mod worker;

pub use hearing::{Heard, hear};
pub use plan::{MinorVersion, NfsPlan, Order, run};
pub use reader::{Reader, Setting};
pub use target::NfsTarget;
