//! What a stream's connection begins with: a mark, and a token that is good for one connection of one run.
//!
//! The tokens of a run are made from a key that its control connection carried under encryption. An observer of
//! the wire sees a token only when it is used, and then it is no longer valid.

use aws_lc_rs::hmac;

/// What streams begin with, and no TLS handshake does.
pub const MARK: [u8; 5] = *b"LRST\x01";
/// Bytes of a token.
pub const TOKEN_BYTES: usize = 16;
/// Bytes of a preamble.
pub const PREAMBLE_BYTES: usize = MARK.len() + TOKEN_BYTES;

/// A token.
pub type Token = [u8; TOKEN_BYTES];

/// The token of the stream `number` of the run with this key.
#[must_use]
pub fn token(run_key: &[u8; 32], number: u32) -> Token {
    let key = hmac::Key::new(hmac::HMAC_SHA256, run_key);
    let tag = hmac::sign(&key, &number.to_be_bytes());
    let mut token = [0; TOKEN_BYTES];
    for (byte, made) in token.iter_mut().zip(tag.as_ref()) {
        *byte = *made;
    }
    token
}

/// The preamble with this token.
#[must_use]
pub fn preamble(token: &Token) -> [u8; PREAMBLE_BYTES] {
    let mut bytes = [0; PREAMBLE_BYTES];
    let (mark, rest) = bytes.split_at_mut(MARK.len());
    mark.copy_from_slice(&MARK);
    rest.copy_from_slice(token);
    bytes
}

/// What the first bytes of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// Too few to tell.
    Unknown,
    /// Of a TLS handshake: a control connection.
    Control,
    /// A stream's.
    Stream(Token),
    /// Neither.
    Strange,
}

/// Recognises the first bytes of a connection.
#[must_use]
pub fn recognise(first: &[u8]) -> Beginning {
    /// RFC 8446 5.1.
    const HANDSHAKE: u8 = 22;
    let mark_bytes = first.len().min(MARK.len());
    match first {
        [] => Beginning::Unknown,
        [HANDSHAKE, ..] => Beginning::Control,
        _ if first[..mark_bytes] != MARK[..mark_bytes] => Beginning::Strange,
        _ => match first[mark_bytes..].first_chunk() {
            Some(token) if mark_bytes == MARK.len() => Beginning::Stream(*token),
            _ => Beginning::Unknown,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_recognised_as_early_as_can_be() {
        let token = token(&[7; 32], 3);
        let whole = preamble(&token);
        for length in 0..whole.len() {
            assert_eq!(recognise(&whole[..length]), Beginning::Unknown, "{length}");
        }
        assert_eq!(recognise(&whole), Beginning::Stream(token));
        assert_eq!(recognise(b"\x16"), Beginning::Control);
        for strange in [&b"G"[..], b"LRSX", b"LRST\x02", b"\0"] {
            assert_eq!(recognise(strange), Beginning::Strange, "{strange:?}");
        }
    }

    #[test]
    fn tokens_differ_by_run_and_number() {
        let tokens: std::collections::BTreeSet<Token> =
            (0..4).flat_map(|run| (0..100).map(move |number| token(&[run; 32], number))).collect();
        assert_eq!(tokens.len(), 400);
    }
}
