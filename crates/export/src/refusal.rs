//! Why a client gets nothing of an export.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

/// Why a client may not use an export, or not on this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Its address is in none of the export's networks.
    Network,
    /// The export is for connections with TLS.
    NoTls,
    /// The export is for connections in the clear.
    Tls,
    /// The export wants a client certificate, and there is none that counts.
    NoCertificate,
    /// The certificate has none of the names that may have the export.
    CertificateName,
    /// The user may not read it.
    Permission,
    /// The handle was not made by this server, or was damaged.
    Handle,
}

impl Refusal {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Network,
        Self::NoTls,
        Self::Tls,
        Self::NoCertificate,
        Self::CertificateName,
        Self::Permission,
        Self::Handle,
    ];

    /// A stable word for metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::NoTls => "no_tls",
            Self::Tls => "tls",
            Self::NoCertificate => "no_certificate",
            Self::CertificateName => "certificate_name",
            Self::Permission => "permission",
            Self::Handle => "handle",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Network => "its address is in none of the export's networks",
            Self::NoTls => "the export is for connections with TLS alone (mount with xprtsec=tls)",
            Self::Tls => "the export is for connections without TLS",
            Self::NoCertificate => {
                "the export is for clients with a certificate of its authority (mount with xprtsec=mtls)"
            }
            Self::CertificateName => "its certificate has none of the names that may have the export",
            Self::Permission => "the user may not read it",
            Self::Handle => "the handle was not made by this server, or with another key",
        })
    }
}

/// How often each reason was given.
#[derive(Debug, Default)]
pub struct Refusals([AtomicU64; Refusal::ALL.len()]);

impl Refusals {
    pub(crate) fn count(&self, refusal: Refusal) {
        if let Some(place) = self.place(refusal) {
            place.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls refused for this reason.
    #[must_use]
    pub fn value(&self, refusal: Refusal) -> u64 {
        self.place(refusal).map_or(0, |place| place.load(Ordering::Relaxed))
    }

    fn place(&self, refusal: Refusal) -> Option<&AtomicU64> {
        let index = Refusal::ALL.iter().position(|known| *known == refusal)?;
        self.0.get(index)
    }
}
