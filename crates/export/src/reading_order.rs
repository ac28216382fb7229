//! Whether a file is read in order, as far as the disk has to know: where it is, more is asked of the disk than one call
//! wants, and before it is wanted. Where it is not, nothing is read that nobody asked for.

use std::ops::Range;

/// How far from where the disk was asked last a call may begin and still count as the next in order: calls of one stream
/// overtake each other, on one connection and more so on several (`nconnect`).
const OVERTAKING_BYTES: u64 = 4 << 20;

/// How clients read a file that is not, or was not, in memory. A guess: two that read it in order at different places look
/// like one that jumps, and get what they ask for.
#[derive(Debug, Default)]
pub struct ReadingOrder {
    /// Where that which was asked of the disk ends.
    asked_until: u64,
    /// It was asked for in order, more at a time than a call wants.
    is_in_order: bool,
}

impl ReadingOrder {
    /// A call wants `wanted`, which is not in memory. Returns what to ask the disk for: at least that, and `piece_bytes` from
    /// its beginning where the file is read in order.
    pub fn missing(&mut self, wanted: Range<u64>, piece_bytes: u64) -> Range<u64> {
        let ahead_bytes = wanted.start.checked_sub(self.asked_until);
        if self.is_in_order && ahead_bytes.is_none() && self.asked_until - wanted.start <= OVERTAKING_BYTES {
            // It is on its way; the call waits for its part of it.
            return wanted;
        }
        self.is_in_order = ahead_bytes.is_some_and(|bytes| bytes <= OVERTAKING_BYTES);
        let piece_end = if self.is_in_order { wanted.start.saturating_add(piece_bytes) } else { 0 };
        self.asked_until = wanted.end.max(piece_end);
        wanted.start..self.asked_until
    }

    /// A call wants `wanted`, which is in memory. Returns the next piece to ask the disk for, where the file is read in order
    /// and half of the last piece, or more, is behind.
    pub fn present(&mut self, wanted: &Range<u64>, piece_bytes: u64) -> Option<Range<u64>> {
        let is_near =
            wanted.start < self.asked_until && wanted.end.saturating_add(piece_bytes / 2) >= self.asked_until;
        if !self.is_in_order || !is_near {
            return None;
        }
        let start = self.asked_until;
        self.asked_until = start.saturating_add(piece_bytes);
        Some(start..self.asked_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: u64 = 2 << 20;
    const CALL: u64 = 128 << 10;

    #[test]
    fn a_jump_asks_for_no_more_than_is_wanted() {
        let mut order = ReadingOrder::default();
        for place in [900 << 20, 17 << 20, 333 << 20, (17 << 20) + 4096] {
            let wanted = place + 1..place + 4097;
            assert_eq!(order.missing(wanted.clone(), PIECE), wanted);
            assert_eq!(order.present(&wanted, PIECE), None, "the same again");
        }
    }

    #[test]
    fn a_stream_asks_for_each_byte_once_and_ahead() {
        let mut order = ReadingOrder::default();
        assert_eq!(order.missing(0..CALL, PIECE), 0..PIECE);
        // Those behind it, which came before the first piece did.
        assert_eq!(order.missing(2 * CALL..3 * CALL, PIECE), 2 * CALL..3 * CALL);
        assert_eq!(order.missing(CALL..2 * CALL, PIECE), CALL..2 * CALL);
        let mut asked_until = PIECE;
        for call in 3..500 {
            let wanted = call * CALL..(call + 1) * CALL;
            assert!(wanted.end <= asked_until, "nothing waits once the stream is known");
            if let Some(next) = order.present(&wanted, PIECE) {
                assert_eq!(next, asked_until..asked_until + PIECE);
                assert!(asked_until - wanted.end <= PIECE / 2, "not earlier than is of use");
                asked_until = next.end;
            }
        }
    }

    #[test]
    fn calls_that_overtake_each_other_are_in_order() {
        let mut order = ReadingOrder::default();
        // Four connections, each with a call of 1 MiB: the fourth is the first to come.
        assert_eq!(order.missing(3 << 20..4 << 20, PIECE), 3 << 20..5 << 20);
        assert_eq!(order.missing(0..1 << 20, PIECE), 0..1 << 20, "that which was overtaken, and no more");
        assert_eq!(order.missing(5 << 20..6 << 20, PIECE), 5 << 20..7 << 20);
    }

    #[test]
    fn a_jump_ends_a_stream_and_numbers_at_the_end_are_harmless() {
        let mut order = ReadingOrder::default();
        assert_eq!(order.missing(0..CALL, PIECE), 0..PIECE);
        assert_eq!(order.missing(1 << 40..(1 << 40) + 1, PIECE), 1 << 40..(1 << 40) + 1);
        assert_eq!(order.present(&(CALL..2 * CALL), PIECE), None);
        assert_eq!(order.missing(u64::MAX - 1..u64::MAX, PIECE), u64::MAX - 1..u64::MAX);
        assert_eq!(order.missing(u64::MAX..u64::MAX, PIECE), u64::MAX..u64::MAX);
        assert_eq!(order.present(&(u64::MAX..u64::MAX), PIECE), None);
    }
}
