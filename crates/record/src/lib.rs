//! TLS record protection without I/O: keys, nonces, sequence numbers, sealing, opening, the record limit and the
//! key update that it asks for.
//!
//! Everything here works on memory that the caller lends. A [`Sealer`] turns plaintext into records, an [`Opener`]
//! turns records into plaintext, and a [`Channel`] joins the two to what a connection is after its handshake: it
//! answers key updates, starts its own before an AEAD's limit, and knows which alert a fault of the peer deserves.
//!
//! Sources: RFC 8446 (TLS 1.3) sections 4.6.3, 5 and 6; RFC 5246 (TLS 1.2) section 6; RFC 5288 (AES-GCM) section 3;
//! RFC 7905 (ChaCha20-Poly1305) section 2.
//!
//! Invariants kept here (`docs/INVARIANTS.md`): INV-NONCE-1, INV-NONCE-2, INV-NONCE-3, INV-LIMIT-1, INV-LIMIT-2, INV-OPEN-1.

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]

mod alert;
mod channel;
mod content_type;
mod error;
mod hand_over;
mod key_update;
mod keys;
mod layout;
mod limit;
mod nonce;
mod open;
mod renegotiation;
mod seal;
mod ticket;

pub use alert::{Alert, AlertDescription, AlertLevel};
pub use channel::{Channel, Event, KeySource};
pub use content_type::ContentType;
pub use error::RecordError;
pub use hand_over::{ControlRecord, HandOverFault, Handover, Lent};
pub use key_update::{KeyUpdateRate, KeyUpdateRequest};
pub use keys::TrafficKey;
pub use layout::{HEADER_BYTES, Layout, MAX_PLAINTEXT_BYTES, RecordHeader, TAG_BYTES};
pub use limit::RecordLimit;
pub use linerate_suite::{Cipher, Combination, Version};
pub use open::{Opened, Opener};
pub use seal::Sealer;
