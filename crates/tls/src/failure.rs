//! Why a handshake failed, in a word for metrics and a sentence for logs.

use rustls::{AlertDescription, Error, PeerIncompatible};
use std::fmt;

/// Why a handshake failed: a closed set of words, so that it can label a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The peer speaks plain HTTP. Nothing was written: it understands a response in plain HTTP.
    PlainHttp,
    /// The peer's first bytes are no TLS.
    NotTls,
    /// No version in common.
    NoSharedVersion,
    /// No cipher suite in common, or none that goes with the certificate.
    NoSharedCipherSuite,
    /// No key exchange group in common.
    NoSharedGroup,
    /// The client can verify none of the site's certificates.
    NoSharedSignatureScheme,
    /// ALPN: the client offers protocols, but none that is spoken here.
    NoSharedApplicationProtocol,
    /// The client lacks another thing that we need.
    Incompatible,
    /// The client refused our certificate.
    CertificateRefused,
    /// The client sent another fatal alert.
    PeerAlert,
    /// The client closed in the middle.
    PeerClosed,
    /// A record or Finished of the client's does not authenticate.
    BadRecordMac,
    /// The client sent what cannot be parsed.
    Malformed,
    /// The client sent a record that is too long.
    RecordOverflow,
    /// The client sent more than any handshake takes.
    TooLarge,
    /// The client broke the protocol in another way.
    Misbehaved,
    /// Our own fault, or the cryptographic library's.
    Internal,
}

impl FailureKind {
    /// Every kind.
    pub const ALL: [Self; 17] = [
        Self::PlainHttp,
        Self::NotTls,
        Self::NoSharedVersion,
        Self::NoSharedCipherSuite,
        Self::NoSharedGroup,
        Self::NoSharedSignatureScheme,
        Self::NoSharedApplicationProtocol,
        Self::Incompatible,
        Self::CertificateRefused,
        Self::PeerAlert,
        Self::PeerClosed,
        Self::BadRecordMac,
        Self::Malformed,
        Self::RecordOverflow,
        Self::TooLarge,
        Self::Misbehaved,
        Self::Internal,
    ];

    /// A stable word for metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::PlainHttp => "http_on_tls_port",
            Self::NotTls => "not_tls",
            Self::NoSharedVersion => "no_shared_version",
            Self::NoSharedCipherSuite => "no_shared_cipher",
            Self::NoSharedGroup => "no_shared_group",
            Self::NoSharedSignatureScheme => "no_shared_signature_scheme",
            Self::NoSharedApplicationProtocol => "no_application_protocol",
            Self::Incompatible => "incompatible",
            Self::CertificateRefused => "certificate_refused",
            Self::PeerAlert => "peer_alert",
            Self::PeerClosed => "peer_closed",
            Self::BadRecordMac => "bad_record_mac",
            Self::Malformed => "malformed",
            Self::RecordOverflow => "record_overflow",
            Self::TooLarge => "too_large",
            Self::Misbehaved => "misbehaved",
            Self::Internal => "internal",
        }
    }

    /// This crate's own judgements, as alerts; what rustls judges, it says itself. `None`: say nothing.
    pub(crate) fn alert(self) -> Option<AlertDescription> {
        match self {
            Self::PlainHttp | Self::PeerAlert | Self::PeerClosed | Self::CertificateRefused => None,
            Self::NotTls | Self::Misbehaved => Some(AlertDescription::UnexpectedMessage),
            Self::NoSharedVersion => Some(AlertDescription::ProtocolVersion),
            Self::RecordOverflow => Some(AlertDescription::RecordOverflow),
            Self::Malformed => Some(AlertDescription::DecodeError),
            Self::BadRecordMac => Some(AlertDescription::BadRecordMac),
            Self::Internal => Some(AlertDescription::InternalError),
            Self::NoSharedApplicationProtocol => Some(AlertDescription::NoApplicationProtocol),
            _ => Some(AlertDescription::HandshakeFailure),
        }
    }
}

/// A handshake that failed. What is then in `outgoing` is still to be sent: it holds the alert.
#[derive(Clone, Debug)]
pub struct HandshakeFailure {
    kind: FailureKind,
    detail: String,
}

impl HandshakeFailure {
    pub(crate) fn new(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// The reason's kind.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.kind
    }
}

impl From<Error> for HandshakeFailure {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::AlertReceived(alert) if refuses_certificate(*alert) => FailureKind::CertificateRefused,
            Error::AlertReceived(AlertDescription::CloseNotify | AlertDescription::UserCanceled) => {
                FailureKind::PeerClosed
            }
            Error::AlertReceived(_) => FailureKind::PeerAlert,
            Error::NoApplicationProtocol => FailureKind::NoSharedApplicationProtocol,
            Error::PeerIncompatible(reason) => incompatible(reason),
            Error::DecryptError => FailureKind::BadRecordMac,
            Error::PeerSentOversizedRecord => FailureKind::RecordOverflow,
            Error::InvalidMessage(_) => FailureKind::Malformed,
            Error::PeerMisbehaved(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. } => FailureKind::Misbehaved,
            _ => FailureKind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

fn incompatible(reason: &PeerIncompatible) -> FailureKind {
    match reason {
        PeerIncompatible::Tls12NotOffered
        | PeerIncompatible::Tls12NotOfferedOrEnabled
        | PeerIncompatible::SupportedVersionsExtensionRequired => FailureKind::NoSharedVersion,
        PeerIncompatible::NoCipherSuitesInCommon => FailureKind::NoSharedCipherSuite,
        PeerIncompatible::NoKxGroupsInCommon
        | PeerIncompatible::NamedGroupsExtensionRequired
        | PeerIncompatible::KeyShareExtensionRequired => FailureKind::NoSharedGroup,
        PeerIncompatible::NoSignatureSchemesInCommon
        | PeerIncompatible::SignatureAlgorithmsExtensionRequired => FailureKind::NoSharedSignatureScheme,
        _ => FailureKind::Incompatible,
    }
}

fn refuses_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
    )
}

impl fmt::Display for HandshakeFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind.label(), self.detail)
    }
}

impl std::error::Error for HandshakeFailure {}
