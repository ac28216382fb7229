//! The drain of a request's body: how the bytes arrive must not matter, or a body could be taken for a request.

use crate::Verdict;
use linerate_http::{BodyDrain, BodyFraming};

/// More than a fuzzer's input, so that the limit is met only by large numbers.
const LIMIT_BYTES: u64 = 1 << 16;

/// The first byte is the framing, zero for chunked, else a length; what follows is body and the next request.
///
/// # Panics
/// If a body ends elsewhere when it arrives byte by byte.
pub fn body(data: &[u8]) -> Verdict {
    let Some((&framing, received)) = data.split_first() else { return Verdict::Refused };
    let framing = match framing {
        0 => BodyFraming::Chunked,
        length => BodyFraming::Length(length.into()),
    };
    drained(framing, received)
}

/// Drains `received` at once and byte by byte.
pub(crate) fn drained(framing: BodyFraming, received: &[u8]) -> Verdict {
    let whole = in_pieces(framing, received, received.len().max(1));
    let bytewise = in_pieces(framing, received, 1);
    assert_eq!(whole, bytewise, "{framing:?}");
    if let Some(End { consumed, .. }) = whole {
        assert!(consumed <= received.len());
        if let BodyFraming::Length(length) = framing {
            assert_eq!(consumed as u64, length.min(received.len() as u64));
        }
        return Verdict::Taken;
    }
    Verdict::Refused
}

#[derive(Debug, PartialEq, Eq)]
struct End {
    consumed: usize,
    done: bool,
}

/// `None` if the body is refused.
fn in_pieces(framing: BodyFraming, received: &[u8], piece_bytes: usize) -> Option<End> {
    let mut drain = BodyDrain::new(framing, LIMIT_BYTES);
    let mut consumed = 0;
    for piece in received.chunks(piece_bytes) {
        if drain.is_done() {
            break;
        }
        match drain.feed(piece) {
            Ok(drained) => {
                assert_eq!(drained.done, drain.is_done());
                assert!(drained.done || drained.consumed == piece.len());
                consumed += drained.consumed;
            }
            Err(_) => {
                assert!(drain.feed(b"").is_err(), "a refusal is final");
                return None;
            }
        }
    }
    Some(End { consumed, done: drain.is_done() })
}
