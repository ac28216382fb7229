//! Streams: bytes from one host to another over one TCP connection or many, in the clear or over TLS by engine, and what that
//! cost at both ends.
//!
//! A [`Listener`] waits for clients. [`run`] makes the run that a [`StreamPlan`] describes: it agrees on it with the
//! listener over a control connection, opens the streams, and gives a [`StreamReport`] of both ends.
//!
//! - [`control`]: what the two ends say to each other; its messages, proofs and frames do no I/O.
//! - `data`: a stream, its sending end (the engines of `crates/engine`) and its receiving end.

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]
#![forbid(unsafe_code)]

mod client;
mod conduct;
pub mod control;
mod data;
mod error;
mod group;
mod handshake;
pub mod json;
mod keymakers;
mod keys;
mod listener;
mod machine;
mod opening;
mod pacer;
pub mod plan;
pub mod report;
mod resolve;
pub mod text;
mod wait;

pub use client::{Watch, run};
pub use control::secret::Secret;
pub use error::StreamError;
pub use listener::{Limits, Listener, ListenerSettings};
pub use plan::StreamPlan;
pub use report::StreamReport;

/// The certificate that listeners show: that of `linerate serve` for development, kept in the state directory. What it is
/// worth to a client is shown by the proof of the secret.
///
/// # Errors
/// There is no place to keep it.
pub fn own_certificate() -> Result<linerate_tls::CertificateFiles, StreamError> {
    Ok(linerate_tls::development_certificate(&linerate_tls::state_directory()?)?.files)
}
