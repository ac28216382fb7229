//! What can go wrong with a record, kept apart by whose fault it is.

use crate::alert::{Alert, AlertDescription};
use std::fmt;

/// A fault in record protection. Except for [`RecordError::PeerAlert`], every fault of the peer names the alert to
/// answer with ([`RecordError::alert`]); all of them end the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordError {
    /// Peer: the record does not authenticate under the receiving key.
    BadRecordMac,
    /// Peer: a record, or the plaintext in it, is longer than the version allows.
    Overflow,
    /// Peer: a content type or message that has no place after the handshake.
    UnexpectedMessage(&'static str),
    /// Peer: a message that cannot be parsed.
    Malformed(&'static str),
    /// Peer: a field with a value that is not allowed.
    IllegalParameter(&'static str),
    /// Peer: more key updates in a second than are tolerated.
    TooManyKeyUpdates,
    /// Peer: it sent a fatal alert (or one that ends the connection) itself; none is sent back.
    PeerAlert(Alert),
    /// Ours: this key has sealed as many records as it may (INV-LIMIT-1); install a new one or close.
    KeyExhausted,
    /// Ours: a key of the wrong length, or a buffer of the wrong size.
    Misuse(&'static str),
    /// Ours: the cipher or the key schedule refused to work.
    Crypto,
}

impl RecordError {
    /// The alert that this fault is answered with; `None` where the peer has already ended the connection.
    #[must_use]
    pub fn alert(self) -> Option<AlertDescription> {
        match self {
            Self::BadRecordMac => Some(AlertDescription::BadRecordMac),
            Self::Overflow => Some(AlertDescription::RecordOverflow),
            Self::UnexpectedMessage(_) | Self::TooManyKeyUpdates => Some(AlertDescription::UnexpectedMessage),
            Self::Malformed(_) => Some(AlertDescription::DecodeError),
            Self::IllegalParameter(_) => Some(AlertDescription::IllegalParameter),
            Self::PeerAlert(_) => None,
            Self::KeyExhausted | Self::Misuse(_) | Self::Crypto => Some(AlertDescription::InternalError),
        }
    }

    /// A stable word for logs and metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::BadRecordMac => "bad_record_mac",
            Self::Overflow => "record_overflow",
            Self::UnexpectedMessage(_) => "unexpected_message",
            Self::Malformed(_) => "decode_error",
            Self::IllegalParameter(_) => "illegal_parameter",
            Self::TooManyKeyUpdates => "key_update_flood",
            Self::PeerAlert(_) => "peer_alert",
            Self::KeyExhausted => "key_exhausted",
            Self::Misuse(_) => "misuse",
            Self::Crypto => "crypto",
        }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadRecordMac => formatter.write_str("a record from the peer does not authenticate"),
            Self::Overflow => formatter.write_str("a record from the peer is longer than TLS allows"),
            Self::UnexpectedMessage(what) => write!(formatter, "the peer sent {what} where it has no place"),
            Self::Malformed(what) => write!(formatter, "the peer sent a malformed {what}"),
            Self::IllegalParameter(what) => write!(formatter, "the peer sent an illegal value in {what}"),
            Self::TooManyKeyUpdates => {
                formatter.write_str("the peer sends key updates faster than is tolerated")
            }
            Self::PeerAlert(alert) => write!(formatter, "the peer sent the alert {:?}", alert.description),
            Self::KeyExhausted => formatter.write_str("the sending key has reached its record limit"),
            Self::Misuse(what) => write!(formatter, "the record layer was misused: {what}"),
            Self::Crypto => formatter.write_str("the cipher or the key schedule failed"),
        }
    }
}

impl std::error::Error for RecordError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Logs and metrics are read by programs: a word that changes is a break. What the peer is told is RFC 8446 6.2's.
    #[test]
    fn every_fault_has_its_word_its_alert_and_its_sentence() {
        let alert = Alert::of(AlertDescription::IllegalParameter);
        for (fault, label, answer, part) in [
            (RecordError::BadRecordMac, "bad_record_mac", Some(20), "does not authenticate"),
            (RecordError::Overflow, "record_overflow", Some(22), "longer than TLS allows"),
            (RecordError::UnexpectedMessage("a fish"), "unexpected_message", Some(10), "sent a fish where"),
            (RecordError::Malformed("fish"), "decode_error", Some(50), "a malformed fish"),
            (
                RecordError::IllegalParameter("a fish"),
                "illegal_parameter",
                Some(47),
                "illegal value in a fish",
            ),
            (RecordError::TooManyKeyUpdates, "key_update_flood", Some(10), "key updates faster"),
            (RecordError::PeerAlert(alert), "peer_alert", None, "the alert IllegalParameter"),
            (RecordError::KeyExhausted, "key_exhausted", Some(80), "its record limit"),
            (RecordError::Misuse("a fish"), "misuse", Some(80), "misused: a fish"),
            (RecordError::Crypto, "crypto", Some(80), "failed"),
        ] {
            assert_eq!((fault.label(), fault.alert().map(AlertDescription::wire)), (label, answer));
            assert!(fault.to_string().contains(part), "{fault}");
        }
    }
}
