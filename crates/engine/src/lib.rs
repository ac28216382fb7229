//! The engines: how bytes get from files and memory into a socket, and from a socket into memory.
//!
//! A program hands an engine a [`Queue`] of what is to be sent, and learns how far it got ([`Turn`]). An engine knows no
//! protocol above TLS, and never waits: what would wait is reported, and the program's task waits for it.
//!
//! - [`user`]: records are sealed here, many at once, and leave with one `send`; [`batches`] says how many.
//! - [`sealing`]: the same on a connection whose thread may wait.
//! - [`kernel`]: Linux makes the records (kernel TLS), files go into them by `sendfile`.
//! - [`nic`]: the same, on a connection that an adapter encrypts, and the proof that it does.
//! - [`plain`]: no TLS; the yardstick, and the steps that the kernel engine sends by.
//! - [`proof`]: all of them, tried byte for byte.
//! - [`pattern`]: bytes that are generated, and checked where they arrive.
//! - [`zero_copy`]: memory that the kernel sends from without copying it.
//! - [`receive`]: the other direction, by engine.
//!
//! Invariants kept here (`docs/INVARIANTS.md`): INV-NIC-1, INV-NIC-2, INV-LIMIT-1, INV-ORDER-2, INV-FILE-1, INV-FILE-2,
//! INV-COLD-1, INV-RECEIVE-1, INV-LENT-1.

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]

pub mod batches;
pub mod kernel;
pub mod nic;
pub mod pattern;
pub mod plain;
pub mod proof;
mod queue;
pub mod receive;
pub mod sealing;
pub mod source;
pub mod trial;
mod turn;
pub mod user;
pub mod zero_copy;

pub use queue::{FileRange, Piece, Queue, SharedBytes};
pub use turn::{Fault, Turn};
