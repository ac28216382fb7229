//! Replies that wait to be sent, and which go next.

use super::{call::Pieces, source::ReadSource};
use linerate_engine::{Piece, Queue};
use linerate_nfs::Piece as ReplyPiece;
use std::{collections::VecDeque, io};

/// What leaves together, at least one reply: what comes later waits for no more than this.
const TOGETHER_BYTES: u64 = 1 << 20;

/// Replies that are made, in two queues: what sends no file goes first, because a client that reads a large file also looks up
/// names.
#[derive(Default)]
pub(super) struct Outgoing {
    small: VecDeque<Pieces>,
    large: VecDeque<Pieces>,
    small_bytes: u64,
}

impl Outgoing {
    pub(super) fn push(&mut self, reply: Pieces) {
        if reply.iter().any(|piece| matches!(piece, ReplyPiece::File { .. })) {
            self.large.push_back(reply);
        } else {
            let bytes = reply.iter().map(|piece| match piece {
                ReplyPiece::Bytes(bytes) => bytes.len() as u64,
                ReplyPiece::File { .. } => 0,
            });
            self.small_bytes += bytes.sum::<u64>();
            self.small.push_back(reply);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_empty()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.small.len() + self.large.len()
    }

    /// Bytes of memory that replies without files take.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.small_bytes
    }

    /// What is sent next.
    ///
    /// # Errors
    /// A file cannot be asked about.
    pub(super) fn next(&mut self) -> io::Result<Queue> {
        let mut queue = Queue::default();
        while queue.remaining_bytes() < TOGETHER_BYTES {
            let Some(reply) = self.small.pop_front().or_else(|| self.large.pop_front()) else { break };
            for piece in reply {
                match piece {
                    ReplyPiece::Bytes(bytes) => queue.push(Piece::Bytes(bytes)),
                    ReplyPiece::File { file, range } => {
                        queue.push(Piece::file(&ReadSource::of(file)?, range));
                    }
                }
            }
        }
        if self.small.is_empty() {
            self.small_bytes = 0;
        }
        Ok(queue)
    }
}
