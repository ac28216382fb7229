//! TLS 1.3's KeyUpdate message (RFC 8446 4.6.3), and how many of them a peer may send.

use crate::RecordError;

/// `HandshakeType.key_update`
pub(crate) const KEY_UPDATE: u8 = 24;
/// The message's type, then its length of one byte.
const HEADER: [u8; 4] = [KEY_UPDATE, 0, 0, 1];
pub(crate) const KEY_UPDATE_BYTES: usize = HEADER.len() + 1;

/// Whether a key update asks the other side for one, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUpdateRequest {
    /// `update_not_requested` (0)
    NotRequested,
    /// `update_requested` (1)
    Requested,
}

impl KeyUpdateRequest {
    /// The whole handshake message.
    pub(crate) fn encode(self) -> [u8; KEY_UPDATE_BYTES] {
        [HEADER[0], HEADER[1], HEADER[2], HEADER[3], u8::from(self == Self::Requested)]
    }
}

/// Collects a key update from the handshake records it comes in. Handshake messages may be split over records, so up
/// to five bytes wait here; any other message is illegal from a client whose handshake is over.
#[derive(Debug, Default)]
pub(crate) struct KeyUpdateReader {
    bytes: [u8; KEY_UPDATE_BYTES],
    length: usize,
}

impl KeyUpdateReader {
    /// Whether a message has begun and not ended; records of other types may not stand in between (RFC 8446 5.1).
    pub(crate) fn is_partial(&self) -> bool {
        self.length > 0
    }

    /// Takes the payload of a handshake record.
    pub(crate) fn read(&mut self, payload: &[u8]) -> Result<Option<KeyUpdateRequest>, RecordError> {
        for (index, &byte) in payload.iter().enumerate() {
            if HEADER.get(self.length).is_some_and(|&expected| expected != byte) {
                return Err(if self.length == 0 {
                    RecordError::UnexpectedMessage("a handshake message other than KeyUpdate")
                } else {
                    RecordError::Malformed("KeyUpdate")
                });
            }
            self.bytes[self.length] = byte;
            self.length += 1;
            if self.length == KEY_UPDATE_BYTES {
                self.length = 0;
                if index + 1 != payload.len() {
                    // RFC 8446 5.1: messages before a key change align with a record boundary.
                    return Err(RecordError::UnexpectedMessage(
                        "a handshake message behind a KeyUpdate in its record",
                    ));
                }
                return match byte {
                    0 => Ok(Some(KeyUpdateRequest::NotRequested)),
                    1 => Ok(Some(KeyUpdateRequest::Requested)),
                    _ => Err(RecordError::IllegalParameter("KeyUpdate")),
                };
            }
        }
        Ok(None)
    }
}

/// A bound on the peer's key updates: each costs us a key derivation, so a storm of them is an attack (the answer of
/// HAProxy to its issue 3450 is the same bound of 100 a second).
#[derive(Clone, Copy, Debug)]
pub struct KeyUpdateRate {
    per_second: u32,
    window_start_ms: u64,
    in_window: u32,
}

impl KeyUpdateRate {
    /// At most `per_second` key updates in any window of a second that starts with one.
    #[must_use]
    pub fn new(per_second: u32) -> Self {
        Self { per_second, window_start_ms: 0, in_window: 0 }
    }

    /// Counts one at `now_ms` (any monotonic clock in milliseconds); false if it is one too many.
    pub(crate) fn admit(&mut self, now_ms: u64) -> bool {
        if self.in_window == 0 || now_ms.saturating_sub(self.window_start_ms) >= 1000 {
            self.window_start_ms = now_ms;
            self.in_window = 0;
        }
        self.in_window = self.in_window.saturating_add(1);
        self.in_window <= self.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_update_is_read_however_it_is_split() {
        for request in [KeyUpdateRequest::NotRequested, KeyUpdateRequest::Requested] {
            let message = request.encode();
            for split in 0..=message.len() {
                let mut reader = KeyUpdateReader::default();
                let first = reader.read(&message[..split]).unwrap();
                let second = reader.read(&message[split..]).unwrap();
                assert_eq!(first.or(second), Some(request));
                assert!(!reader.is_partial());
            }
        }
    }

    #[test]
    fn other_messages_and_trailing_bytes_are_refused() {
        for (bad, label) in [
            (&[1u8, 0, 0, 1][..], "unexpected_message"),
            (&[24, 0, 0, 2], "decode_error"),
            (&[24, 1], "decode_error"),
            (&[24, 0, 0, 1, 2], "illegal_parameter"),
            (&[24, 0, 0, 1, 0, 24], "unexpected_message"),
        ] {
            let fault = KeyUpdateReader::default().read(bad).unwrap_err();
            assert_eq!(fault.label(), label, "{bad:?}");
        }
    }

    #[test]
    fn the_rate_is_per_second() {
        let mut rate = KeyUpdateRate::new(3);
        assert!((0..3).all(|_| rate.admit(10)));
        assert!(!rate.admit(1009));
        assert!(rate.admit(1010));
    }
}
