//! What the two ends of a run say to each other.
//!
//! The client connects to the listener's port and begins a TLS handshake: that is the control connection. On it go
//! [`message`]s in [`frame`]s. With a secret both ends prove that they know it ([`secret`]), bound to the certificate that
//! the client was shown, before anything is agreed. Each stream is a further connection to the same port; it begins with a
//! [`preamble`] that only the client of the run can know, and that is good for one connection.
//!
//! ```text
//! client                          listener
//! hello      ───────────────────►            version, nonce
//!            ◄─────────────────── challenge  version, nonce, whether a secret is needed
//! proof      ───────────────────►            of the secret
//!            ◄─────────────────── welcome    proof of the secret
//! run        ───────────────────►            what to do
//!            ◄─────────────────── accepted   what the streams' preambles are made from; or refused
//!   the streams connect
//!            ◄─────────────────── ready
//! start      ───────────────────►
//! alive      ◄──────────────────►            twice a second, both ways; stop, to end it early
//!            ◄─────────────────── result     what the listener's end measured
//! ```
//!
//! These modules do no I/O, and a fuzz target calls them.

pub mod frame;

pub mod greeting;
pub(crate) mod link;
pub mod message;
pub mod preamble;
pub mod secret;
