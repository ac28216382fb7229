//! Alerts: what closes a connection, and why (RFC 8446 section 6).

/// The level byte of an alert. TLS 1.3 receivers ignore it for all but `close_notify` and `user_canceled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertLevel {
    /// 1
    Warning,
    /// 2
    Fatal,
}

/// The alerts that a server sends or names after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlertDescription {
    /// 0: the sender will send no more.
    CloseNotify,
    /// 10: a record or message that has no place here.
    UnexpectedMessage,
    /// 20: a record that does not authenticate.
    BadRecordMac,
    /// 22: a record longer than the protocol allows.
    RecordOverflow,
    /// 47: a field with a value that is not allowed.
    IllegalParameter,
    /// 50: a message that cannot be parsed.
    DecodeError,
    /// 80: a fault of our own.
    InternalError,
    /// 90: the user gave up; TLS 1.3 lets a `close_notify` follow.
    UserCanceled,
    /// 100: TLS 1.2, the refusal to renegotiate (always a warning).
    NoRenegotiation,
    /// Any other, by its number.
    Other(u8),
}

impl AlertDescription {
    /// The byte on the wire.
    #[must_use]
    pub fn wire(self) -> u8 {
        match self {
            Self::CloseNotify => 0,
            Self::UnexpectedMessage => 10,
            Self::BadRecordMac => 20,
            Self::RecordOverflow => 22,
            Self::IllegalParameter => 47,
            Self::DecodeError => 50,
            Self::InternalError => 80,
            Self::UserCanceled => 90,
            Self::NoRenegotiation => 100,
            Self::Other(byte) => byte,
        }
    }

    /// The description that a byte on the wire stands for.
    #[must_use]
    pub fn from_wire(byte: u8) -> Self {
        match byte {
            0 => Self::CloseNotify,
            10 => Self::UnexpectedMessage,
            20 => Self::BadRecordMac,
            22 => Self::RecordOverflow,
            47 => Self::IllegalParameter,
            50 => Self::DecodeError,
            80 => Self::InternalError,
            90 => Self::UserCanceled,
            100 => Self::NoRenegotiation,
            other => Self::Other(other),
        }
    }

    /// The level to send it with (RFC 8446 6: `close_notify` and `user_canceled` are warnings, all others fatal;
    /// RFC 5246 7.2.2: `no_renegotiation` is a warning).
    #[must_use]
    pub fn level(self) -> AlertLevel {
        match self {
            Self::CloseNotify | Self::UserCanceled | Self::NoRenegotiation => AlertLevel::Warning,
            _ => AlertLevel::Fatal,
        }
    }
}

/// An alert as it stands in a record: two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// How grave its sender says it is.
    pub level: AlertLevel,
    /// What it says.
    pub description: AlertDescription,
}

impl Alert {
    /// The alert that a description is sent as.
    #[must_use]
    pub fn of(description: AlertDescription) -> Self {
        Self { level: description.level(), description }
    }

    /// The two bytes on the wire.
    #[must_use]
    pub fn encode(self) -> [u8; 2] {
        let level = match self.level {
            AlertLevel::Warning => 1,
            AlertLevel::Fatal => 2,
        };
        [level, self.description.wire()]
    }

    /// Reads the payload of an alert record. `None` unless it is exactly one alert (RFC 8446 5.1: alerts are neither
    /// split nor coalesced) with a level that exists.
    #[must_use]
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let &[level, description] = payload else { return None };
        let level = match level {
            1 => AlertLevel::Warning,
            2 => AlertLevel::Fatal,
            _ => return None,
        };
        Some(Self { level, description: AlertDescription::from_wire(description) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_a_round_trip() {
        for byte in 0..=255 {
            assert_eq!(AlertDescription::from_wire(byte).wire(), byte);
        }
    }

    #[test]
    fn only_a_whole_single_alert_is_one() {
        assert_eq!(Alert::decode(&[1, 0]), Some(Alert::of(AlertDescription::CloseNotify)));
        assert_eq!(Alert::of(AlertDescription::BadRecordMac).encode(), [2, 20]);
        for bad in [&[][..], &[1], &[1, 0, 1], &[1, 0, 1, 0], &[0, 0], &[3, 0]] {
            assert_eq!(Alert::decode(bad), None, "{bad:?}");
        }
    }
}
