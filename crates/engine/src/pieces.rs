//! What an engine is given: the parts of a response, in the order in which they are sent.

use std::ops::Range;

/// A part of a response: bytes that are at hand, or a range of the response's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes that are at hand.
    Bytes(&'a [u8]),
    /// A range of the response's file.
    File(Range<u64>),
}

impl Piece<'_> {
    pub(crate) fn length_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(range) => range.end.saturating_sub(range.start),
        }
    }
}

/// What is still to be sent of a response, in order.
#[derive(Debug)]
pub struct Pieces<'a> {
    pieces: &'a [Piece<'a>],
    /// Bytes of the first piece that are done.
    done_bytes: u64,
    remaining_bytes: u64,
    /// Bytes of the file are, or were, among them.
    holds_file: bool,
}

impl<'a> Pieces<'a> {
    /// All of `pieces`.
    #[must_use]
    pub fn new(pieces: &'a [Piece<'a>]) -> Self {
        let remaining_bytes = pieces.iter().map(Piece::length_bytes).sum();
        let holds_file = pieces.iter().any(|piece| matches!(piece, Piece::File(_)));
        Self { pieces, done_bytes: 0, remaining_bytes, holds_file }
    }

    /// Whether the response carries bytes of its file.
    #[must_use]
    pub fn holds_file(&self) -> bool {
        self.holds_file
    }

    /// Bytes that are still to be sent.
    #[must_use]
    pub fn remaining_bytes(&self) -> u64 {
        self.remaining_bytes
    }

    /// Whether all is sent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.remaining_bytes == 0
    }

    /// Strikes `bytes` off the front; at most what remains.
    pub fn advance(&mut self, bytes: u64) {
        let mut left = bytes.min(self.remaining_bytes);
        self.remaining_bytes -= left;
        self.done_bytes += left;
        left = self.done_bytes;
        while let Some((first, rest)) = self.pieces.split_first() {
            let length = first.length_bytes();
            if left < length {
                break;
            }
            left -= length;
            self.pieces = rest;
        }
        self.done_bytes = left;
    }

    /// What is still to be sent, cut to at most `limit_bytes`.
    pub fn upcoming(&self, limit_bytes: u64) -> impl Iterator<Item = Piece<'a>> + use<'a> {
        let mut skip = self.done_bytes;
        let mut left = limit_bytes;
        self.pieces.iter().filter_map(move |piece| {
            let length = piece.length_bytes().saturating_sub(skip).min(left);
            let cut = match piece {
                // Lengths of byte pieces are lengths of slices: they fit usize.
                Piece::Bytes(bytes) => Piece::Bytes(&bytes[skip as usize..(skip + length) as usize]),
                Piece::File(range) => Piece::File(range.start + skip..range.start + skip + length),
            };
            skip = 0;
            left -= length;
            (length > 0).then_some(cut)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_consumed_in_order_at_any_step() {
        let all = [
            Piece::Bytes(b"head"),
            Piece::File(10..17),
            Piece::Bytes(b""),
            Piece::Bytes(b"--"),
            Piece::File(3..4),
        ];
        for step in 1..20 {
            let mut pieces = Pieces::new(&all);
            assert_eq!(pieces.remaining_bytes(), 14);
            let mut seen = Vec::new();
            while !pieces.is_done() {
                let upcoming: Vec<_> = pieces.upcoming(step).collect();
                for piece in &upcoming {
                    match piece {
                        Piece::Bytes(bytes) => seen.extend(bytes.iter().map(|&byte| u64::from(byte))),
                        Piece::File(range) => seen.extend(range.clone().map(|offset| 1000 + offset)),
                    }
                }
                pieces.advance(upcoming.iter().map(Piece::length_bytes).sum());
            }
            let expected: Vec<u64> =
                b"head".iter().map(|&b| b.into()).chain(1010..1017).chain([45, 45]).chain([1003]).collect();
            assert_eq!(seen, expected, "step {step}");
            assert_eq!(pieces.upcoming(100).count(), 0);
        }
    }
}
