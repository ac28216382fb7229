//! TLS 1.2's wish to renegotiate (RFC 5246 7.4.1), which is always refused: a client says it by a ClientHello, a server by a
//! HelloRequest. No other handshake message has a place after the handshake.

use crate::RecordError;

/// `HandshakeType`, then a length of three bytes.
const HEADER_BYTES: usize = 4;
/// No client's ClientHello comes near this, and rustls takes no longer one in the handshake either.
const HELLO_LIMIT_BYTES: usize = 1 << 16;

/// What a peer asks to renegotiate by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    message_type: u8,
    name: &'static str,
    other: &'static str,
    limit_bytes: usize,
}

impl Wish {
    /// `HandshakeType.client_hello`
    pub(crate) const OF_A_CLIENT: Self = Self {
        message_type: 1,
        name: "ClientHello",
        other: "a handshake message other than ClientHello",
        limit_bytes: HELLO_LIMIT_BYTES,
    };
    /// `HandshakeType.hello_request`, which has no content.
    pub(crate) const OF_A_SERVER: Self = Self {
        message_type: 0,
        name: "HelloRequest",
        other: "a handshake message other than HelloRequest",
        limit_bytes: 0,
    };
}

/// Passes over the message, in however many records it comes; its content does not matter. Application data may come in
/// between (RFC 5246 6.2.1).
#[derive(Debug)]
pub(crate) struct RenegotiationReader {
    wish: Wish,
    header: [u8; HEADER_BYTES],
    /// Bytes of the message that have come, its header included.
    taken_bytes: usize,
    /// A peer that asks again after it was refused is cut.
    was_refused: bool,
}

impl RenegotiationReader {
    /// For a peer that asks by this message.
    pub(crate) fn new(wish: Wish) -> Self {
        Self { wish, header: [0; HEADER_BYTES], taken_bytes: 0, was_refused: false }
    }

    /// Whether the message has begun and not ended.
    pub(crate) fn is_partial(&self) -> bool {
        self.taken_bytes > 0 && !self.was_refused
    }

    /// Takes the payload of a handshake record; true when the message is whole.
    pub(crate) fn read(&mut self, payload: &[u8]) -> Result<bool, RecordError> {
        if self.was_refused {
            return Err(RecordError::UnexpectedMessage("a handshake after the handshake"));
        }
        // What comes behind the header finds no place in it.
        for (place, byte) in self.header.iter_mut().skip(self.taken_bytes).zip(payload) {
            *place = *byte;
        }
        self.taken_bytes += payload.len();
        let [message_type, high, middle, low] = self.header;
        if message_type != self.wish.message_type {
            return Err(RecordError::UnexpectedMessage(self.wish.other));
        }
        if self.taken_bytes < HEADER_BYTES {
            return Ok(false);
        }
        let body_bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
        if body_bytes > self.wish.limit_bytes {
            return Err(RecordError::Malformed(self.wish.name));
        }
        let whole_bytes = HEADER_BYTES + body_bytes;
        if self.taken_bytes > whole_bytes {
            return Err(RecordError::UnexpectedMessage("another handshake message behind the first"));
        }
        self.was_refused = self.taken_bytes == whole_bytes;
        Ok(self.was_refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(body_bytes: usize) -> Vec<u8> {
        let [_, high, middle, low] = (body_bytes as u32).to_be_bytes();
        let mut message = vec![1, high, middle, low];
        message.resize(HEADER_BYTES + body_bytes, 7);
        message
    }

    #[test]
    fn a_wish_may_come_in_any_pieces() {
        for body_bytes in [0, 1, 300, HELLO_LIMIT_BYTES] {
            for piece_bytes in [1, 3, 4, 5, 299, 16_384] {
                let mut reader = RenegotiationReader::new(Wish::OF_A_CLIENT);
                assert!(!reader.is_partial());
                let message = hello(body_bytes);
                let mut pieces = message.chunks(piece_bytes).peekable();
                while let Some(piece) = pieces.next() {
                    let is_last = pieces.peek().is_none();
                    assert_eq!(reader.read(piece), Ok(is_last), "{body_bytes} in pieces of {piece_bytes}");
                    assert_eq!(reader.is_partial(), !is_last);
                }
                assert!(matches!(reader.read(&[1]), Err(RecordError::UnexpectedMessage(_))));
            }
        }
    }

    #[test]
    fn what_is_no_wish_is_refused_at_its_first_byte() {
        for (wish, own) in [(Wish::OF_A_CLIENT, 1), (Wish::OF_A_SERVER, 0)] {
            for message_type in (0..=255_u8).filter(|message_type| *message_type != own) {
                let refused = RenegotiationReader::new(wish).read(&[message_type]);
                assert!(matches!(refused, Err(RecordError::UnexpectedMessage(_))), "{message_type}");
            }
        }
        let behind = [&hello(2)[..], &[20]].concat();
        let refused = RenegotiationReader::new(Wish::OF_A_CLIENT).read(&behind);
        assert!(matches!(refused, Err(RecordError::UnexpectedMessage(_))));
    }

    #[test]
    fn a_wish_of_any_length_is_not_waited_for() {
        let header = &hello(HELLO_LIMIT_BYTES + 1)[..HEADER_BYTES];
        let refused = RenegotiationReader::new(Wish::OF_A_CLIENT).read(header);
        assert_eq!(refused, Err(RecordError::Malformed("ClientHello")));
        assert_eq!(RenegotiationReader::new(Wish::OF_A_SERVER).read(&[0, 0, 0, 0]), Ok(true));
        let refused = RenegotiationReader::new(Wish::OF_A_SERVER).read(&[0, 0, 0, 1, 0]);
        assert_eq!(refused, Err(RecordError::Malformed("HelloRequest")));
    }
}
