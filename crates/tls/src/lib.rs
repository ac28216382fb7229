//! From ClientHello to secrets: handshakes without I/O, certificates and their reload, SNI, tickets.
//!
//! An [`Acceptor`] is what one reading of the configuration and the certificate files came to; it is shared by all
//! workers and replaced as a whole when either changes ([`AcceptorBuilder::reload`], told by a [`FileWatch`]). Each
//! connection drives a [`Handshake`] until it is [`Established`]; from there on the record layer owns the bytes.
//!
//! The load client has the same from the other side: a [`Connector`] is what all its connections share, each drives a
//! [`ClientHandshake`] until it is [`Connected`].
//!
//! This is the only crate that names rustls. One module (`driver`) feeds it, by the unbuffered API of rustls 0.23 and one
//! record at a time, so that rustls never takes a record that belongs to the record layer.
//!
//! Sources: RFC 8446 (TLS 1.3), RFC 5246 and RFC 7627 (TLS 1.2), RFC 6066 3 (SNI), RFC 7301 (ALPN), RFC 9149 (ticket
//! requests), RFC 9525 (names in certificates).

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]

mod acceptor;
mod certificate;
mod clients;
mod connect;
mod connector;
mod der;
mod development;
mod driver;
mod error;
mod established;
mod failure;
mod first_bytes;
mod handshake;
mod hkdf;
mod inspection;
mod key_schedule;
mod pem;
mod policy;
mod sessions;
mod site;
mod tickets;
mod trust;
mod watch;

pub use acceptor::{Acceptor, AcceptorBuilder};
pub use certificate::{Certificate, CertificateFiles, CertificateWarning, KeyAlgorithm};
pub use clients::ClientIdentity;
pub use connect::{ClientHandshake, ConnectStep};
pub use connector::{ConnectFailure, Connector, Trust};
pub use development::{DevelopmentCertificate, development_certificate, state_directory};
pub use driver::HANDSHAKE_LIMIT_BYTES;
pub use error::TlsError;
pub use established::{Connected, DirectionSecrets, Established, KeptKeys};
pub use failure::{FailureKind, HandshakeFailure};
pub use handshake::{EARLY_DATA_LIMIT_BYTES, Handshake, Step};
pub use inspection::{Chain, ChainTrust, Inspection};
pub use key_schedule::{ClientKeySchedule, KeySchedule};
pub use linerate_suite::{CipherSuite, Group};
pub use policy::TlsPolicy;
pub use site::SiteCertificates;
pub use tickets::Tickets;
pub use watch::{FileWatch, WatchMethod};
