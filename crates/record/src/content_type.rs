//! The content types of a record.

/// What a record carries (RFC 8446 5.1, RFC 5246 6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ContentType {
    /// `change_cipher_spec`: never legal once the handshake is over.
    ChangeCipherSpec = 20,
    /// `alert`
    Alert = 21,
    /// `handshake`: after the handshake a key update (TLS 1.3) or a wish to renegotiate (TLS 1.2).
    Handshake = 22,
    /// `application_data`
    ApplicationData = 23,
}

impl ContentType {
    /// The type that a byte on the wire stands for; `None` for one that no RFC assigns to TLS 1.2 or 1.3 records.
    #[must_use]
    pub fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            20 => Some(Self::ChangeCipherSpec),
            21 => Some(Self::Alert),
            22 => Some(Self::Handshake),
            23 => Some(Self::ApplicationData),
            _ => None,
        }
    }

    /// The byte on the wire.
    #[must_use]
    pub fn wire(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bytes_are_content_types() {
        for byte in 0..=255 {
            let read = ContentType::from_wire(byte).map(ContentType::wire);
            assert_eq!(read, (20..=23).contains(&byte).then_some(byte));
        }
    }
}
