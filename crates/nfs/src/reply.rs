//! Replies as pieces: bytes that are made here, and ranges of files that are not.

use crate::Operations;
use linerate_rpc::{
    reply::{self, TooLong},
    xdr::Writer,
};
use std::ops::Range;

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<F> {
    /// Bytes.
    Bytes(Vec<u8>),
    /// A range of a file, in bytes from its beginning. Never empty.
    File {
        /// The file, from [`crate::FileSystem::open`].
        file: F,
        /// What of it.
        range: Range<u64>,
    },
}

/// A whole reply, its record mark included: to be sent in this order, with nothing in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<F> {
    /// What it consists of: at least one piece.
    pub pieces: Vec<Piece<F>>,
    /// What it answers: for logs and counts.
    pub report: Report,
}

/// What was asked, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The procedure's name in the RFC: `COMPOUND`, of version 3 `READ`, of MOUNT `MNT`.
    pub procedure: &'static str,
    /// Of a COMPOUND of version 4: what it holds, up to the operation that failed.
    pub operations: Operations,
    /// The status' name in the RFC: of the operation that failed, else that of success.
    pub status: &'static str,
}

impl<F> Reply<F> {
    pub(crate) fn of_bytes(bytes: Vec<u8>, report: Report) -> Self {
        Self { pieces: vec![Piece::Bytes(bytes)], report }
    }

    /// How long it is.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        let length = |piece: &Piece<F>| match piece {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::File { range, .. } => range.end.saturating_sub(range.start),
        };
        self.pieces.iter().map(length).sum()
    }
}

/// What most replies have room in, files not counted.
const USUAL_BYTES: usize = 512;

/// A reply that is being made. All bytes are in one writer; where ranges of files belong between them is noted.
#[derive(Debug)]
pub(crate) struct Draft<F> {
    pub(crate) bytes: Writer,
    files: Vec<Insertion<F>>,
    files_bytes: u64,
}

#[derive(Debug)]
struct Insertion<F> {
    /// Behind so many bytes of the writer.
    behind_bytes: usize,
    file: F,
    range: Range<u64>,
}

impl<F> Draft<F> {
    /// Begins the reply to a call that is carried out.
    pub(crate) fn accepted(transaction: u32) -> Self {
        let mut bytes = Writer::reusing(Vec::with_capacity(USUAL_BYTES));
        reply::accepted(&mut bytes, transaction);
        Self { bytes, files: Vec::new(), files_bytes: 0 }
    }

    /// How long the reply is so far, without its record mark: as limits of sessions count it (RFC 8881 section 18.36.3).
    pub(crate) fn length_bytes(&self) -> u64 {
        (self.bytes.length_bytes() - reply::MARK_BYTES.min(self.bytes.length_bytes())) as u64
            + self.files_bytes
    }

    /// A range of a file, with its padding. Its length must be written already.
    pub(crate) fn file(&mut self, file: F, range: Range<u64>) {
        let length_bytes = range.end.saturating_sub(range.start);
        if length_bytes == 0 {
            return;
        }
        self.files_bytes += length_bytes;
        self.files.push(Insertion { behind_bytes: self.bytes.length_bytes(), file, range });
        // The lower two bits decide.
        self.bytes.padding((length_bytes & 3) as usize);
    }

    /// Takes back all that was written behind the first `length_bytes` of the writer's bytes.
    pub(crate) fn truncate(&mut self, length_bytes: usize) {
        self.bytes.truncate(length_bytes);
        while let Some(last) = self.files.pop_if(|insertion| insertion.behind_bytes >= length_bytes) {
            self.files_bytes -= last.range.end.saturating_sub(last.range.start);
        }
    }

    /// The results alone, if no file's bytes are among them.
    pub(crate) fn results(&self) -> Option<&[u8]> {
        if self.files.is_empty() { self.bytes.as_bytes().get(reply::ACCEPTED_BYTES..) } else { None }
    }

    /// Sets the record mark: it counts all that was written, ranges of files included (INV-RPC-1).
    pub(crate) fn finish(mut self, report: Report) -> Result<Reply<F>, TooLong> {
        reply::finish(&mut self.bytes, self.files_bytes)?;
        let mut pieces = Vec::with_capacity(1 + 2 * self.files.len());
        for insertion in self.files.into_iter().rev() {
            let behind = self.bytes.split_off(insertion.behind_bytes);
            if !behind.is_empty() {
                pieces.push(Piece::Bytes(behind));
            }
            pieces.push(Piece::File { file: insertion.file, range: insertion.range });
        }
        pieces.push(Piece::Bytes(self.bytes.into_bytes()));
        pieces.reverse();
        Ok(Reply { pieces, report })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stand_where_they_were_put_and_the_mark_counts_them() {
        let mut draft = Draft::accepted(1);
        let head = draft.bytes.length_bytes();
        draft.bytes.u32(5);
        draft.file('a', 10..15);
        draft.file('-', 7..7);
        assert_eq!(draft.length_bytes(), head as u64 - 4 + 4 + 5 + 3);
        assert_eq!(draft.results(), None);
        draft.bytes.u32(0x0102_0304);
        let length_bytes = draft.bytes.length_bytes();
        draft.bytes.u32(9);
        draft.file('b', 0..4);
        draft.truncate(length_bytes);
        draft.file('c', 0..8);
        draft.file('d', 1..3);
        let report = Report { procedure: "READ", operations: Operations::default(), status: "OK" };
        let reply = draft.finish(report).unwrap();
        let Some(Piece::Bytes(first)) = reply.pieces.first() else { panic!("bytes come first") };
        assert_eq!(reply.length_bytes(), head as u64 + 4 + 8 + 4 + 8 + 4);
        assert_eq!(first[..4], (0x8000_0000 | (reply.length_bytes() as u32 - 4)).to_be_bytes());
        assert_eq!(first[head..], [0, 0, 0, 5]);
        assert_eq!(
            reply.pieces[1..],
            [
                Piece::File { file: 'a', range: 10..15 },
                Piece::Bytes(b"\0\0\0\x01\x02\x03\x04".to_vec()),
                Piece::File { file: 'c', range: 0..8 },
                Piece::File { file: 'd', range: 1..3 },
                Piece::Bytes(b"\0\0".to_vec()),
            ]
        );
    }

    #[test]
    fn what_is_taken_back_was_never_there() {
        let mut draft = Draft::accepted(1);
        let before = draft.bytes.length_bytes();
        draft.bytes.u32(5);
        draft.file('a', 10..15);
        draft.truncate(before);
        assert_eq!(draft.results(), Some(b"".as_slice()));
        assert_eq!(draft.length_bytes(), 24);
    }
}
