//! Replies that wait to be sent, and which go next.

use super::{call::Pieces, mappings::Mappings, source::ReadSource};
use crate::workplace::Workplace;
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

    /// What is sent next; files from `mappings`, where there are any.
    ///
    /// # Errors
    /// A file cannot be asked about.
    pub(super) fn next(&mut self, mappings: Option<(&Mappings, &Workplace)>) -> io::Result<Queue> {
        let mut queue = Queue::default();
        while queue.remaining_bytes() < TOGETHER_BYTES {
            let Some(reply) = self.small.pop_front().or_else(|| self.large.pop_front()) else { break };
            for piece in reply {
                match piece {
                    ReplyPiece::Bytes(bytes) => queue.push(Piece::Bytes(bytes)),
                    ReplyPiece::File { file, range } => {
                        queue.push(Piece::file(&ReadSource::of(file, range.end, mappings)?, range));
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use linerate_export::{
        ClientRule, Export, ExportOptions, Exports, HandleKey, IdentityRule, OpenFile, TlsRule,
    };
    use linerate_nfs::{Caller, Client, FileSystem, Identity, Name, Waiting};
    use std::sync::Arc;

    /// A file of an export, so long.
    pub(in crate::nfs) fn file(length_bytes: u64) -> Arc<OpenFile> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::File::create(directory.path().join("file")).unwrap().set_len(length_bytes).unwrap();
        let options = ExportOptions {
            name: String::new(),
            directory: directory.path().to_owned(),
            clients: ClientRule { tls: TlsRule::Off, ..ClientRule::default() },
            identity: IdentityRule::Server,
        };
        let exports =
            Exports::new(vec![Export::open(options).unwrap()], HandleKey::ephemeral().unwrap(), 8).unwrap();
        let client = Client { address: "192.0.2.1:700".parse().unwrap(), tls: None };
        let caller = Caller {
            client: &client,
            identity: &Identity::Nobody,
            waiting: Waiting::Allowed,
            is_mount: false,
        };
        let root = exports.root(&caller).unwrap();
        let found = exports.look_up(&caller, &root, Name::new(b"file").unwrap()).unwrap();
        exports.open(&caller, &found).unwrap().file
    }

    #[test]
    fn replies_without_files_go_first_and_large_ones_wait_for_no_more_than_a_mebibyte() {
        let file = file(2 << 20);
        let mut outgoing = Outgoing::default();
        let read = |bytes| {
            vec![
                ReplyPiece::Bytes(vec![1; 100]),
                ReplyPiece::File { file: Arc::clone(&file), range: 0..bytes },
            ]
        };
        outgoing.push(read(700_000));
        outgoing.push(read(700_000));
        outgoing.push(read(50_000));
        outgoing.push(vec![ReplyPiece::Bytes(vec![2; 40])]);
        assert_eq!((outgoing.len(), outgoing.memory_bytes()), (4, 40));
        // The name first, then reads in their order, until that is enough.
        let first = outgoing.next(None).unwrap();
        assert_eq!(first.remaining_bytes(), 40 + 2 * (100 + 700_000));
        outgoing.push(vec![ReplyPiece::Bytes(vec![3; 60])]);
        assert_eq!(outgoing.next(None).unwrap().remaining_bytes(), 60 + 100 + 50_000);
        assert!(outgoing.is_empty() && outgoing.memory_bytes() == 0);
        assert!(outgoing.next(None).unwrap().is_done());
    }
}
