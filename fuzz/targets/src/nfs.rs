//! NFS: whatever a client sends, each call has one reply, whole, within its limits, and the same when it is evaluated again.

// The tests' tree.
#[allow(dead_code)]
#[path = "../../../crates/nfs/tests/support/memory.rs"]
mod memory;

use crate::Verdict;
use linerate_nfs::{Client, Evaluated, Limits, Piece, Protocol, Reply, Sizes, Step, TlsPolicy, Waiting};
use linerate_rpc::Records;
use memory::{MemoryFiles, Read};
use std::time::Duration;

const LIMITS: Limits = Limits {
    call_bytes: 4 << 10,
    read_bytes: 1 << 10,
    reply_bytes: 2 << 10,
    operations: 16,
    clients: 4,
    sessions_per_client: 2,
    slots: 4,
    cached_reply_bytes: 512,
    cached_replies_bytes: 1 << 10,
    lease: Duration::from_secs(90),
    silence: Duration::from_secs(90),
};
const SEED: u128 = 1;
/// Replies hold this beside the results: a record mark and the header of RPC.
const HEADER_BYTES: usize = 28;

/// A first byte of zero: what follows is what the client sends. Any other byte is how many operations follow, which are sent
/// in a session.
///
/// # Panics
/// If a reply is malformed or too long, or depends on whether files were cold.
pub fn nfs(data: &[u8]) -> Verdict {
    let Some((&count, bytes)) = data.split_first() else { return Verdict::Refused };
    let server = Server::new();
    if count == 0 { server.stream(bytes) } else { server.operations(count, bytes) }
}

struct Server {
    protocol: Protocol,
    files: MemoryFiles,
    client: Client,
}

impl Server {
    fn new() -> Self {
        let client = Client { address: ([192, 0, 2, 7], 700).into(), tls: None };
        Self { protocol: Protocol::new(LIMITS, b"server", SEED), files: MemoryFiles::sample(), client }
    }

    fn stream(&self, bytes: &[u8]) -> Verdict {
        let mut records = Records::new(LIMITS.call_bytes as usize);
        let mut rest = bytes;
        let mut answered = 0;
        let mut now = Duration::ZERO;
        while let Ok(taken) = records.take(rest) {
            let Some(record) = taken.record else { break };
            now += Duration::from_secs(7);
            match self.call(record, now) {
                Some(_) => answered += 1,
                None => break,
            }
            rest = rest.get(taken.consumed_bytes..).unwrap_or_default();
        }
        if answered > 1 { Verdict::Taken } else { Verdict::Refused }
    }

    /// The status of a compound.
    fn operations(&self, count: u8, bytes: &[u8]) -> Verdict {
        let session = self.session();
        let arguments = [
            [0, 2, u32::from(count) + 1, 53].iter().flat_map(|word: &u32| word.to_be_bytes()).collect(),
            session,
            [1_u32, 0, 0, 1].iter().flat_map(|word| word.to_be_bytes()).collect(),
            bytes.to_vec(),
        ]
        .concat();
        let reply = self.compound(&arguments);
        if reply.get(HEADER_BYTES..HEADER_BYTES + 4) == Some(&[0; 4]) {
            Verdict::Taken
        } else {
            Verdict::Refused
        }
    }

    fn session(&self) -> Vec<u8> {
        let exchange = words(&[0, 2, 1, 42, 0, 0, 0, 0, 0, 0]);
        let reply = self.compound(&exchange);
        let client = reply.get(48..56).expect("a client ID").to_vec();
        let channel = words(&[0, 4096, 4096, 4096, 16, 4, 0]);
        let create = [words(&[0, 2, 1, 43]), client, words(&[1, 0]), channel.repeat(2), words(&[7, 1, 0])];
        self.compound(&create.concat()).get(48..64).expect("a session").to_vec()
    }

    fn compound(&self, arguments: &[u8]) -> Vec<u8> {
        let header = words(&[9, 0, 2, 100_003, 4, 1, 0, 0, 0, 0]);
        self.call(&[header, arguments.to_vec()].concat(), Duration::from_secs(1)).expect("it is a call")
    }

    /// The reply, if it was a call.
    fn call(&self, record: &[u8], now: Duration) -> Option<Vec<u8>> {
        let reply = match self.protocol.take(record, &self.client, TlsPolicy::Offered, now) {
            Step::End => return None,
            Step::Reply(reply) | Step::StartTls(reply) => reply,
            Step::Evaluate(mut request) => {
                // Somewhere in the middle it would have to wait.
                self.files.is_cold.set(record.len().is_multiple_of(3));
                let first = request.evaluate(&self.protocol, &self.files, &self.client, Waiting::Forbidden);
                self.files.is_cold.set(false);
                let again = request.evaluate(&self.protocol, &self.files, &self.client, Waiting::Allowed);
                let Evaluated::Reply(again) = again else { panic!("waiting was allowed") };
                if let Evaluated::Reply(first) = first {
                    assert_eq!(first.report, again.report);
                    assert_eq!(first.length_bytes(), again.length_bytes());
                }
                self.flatten(&again)
            }
        };
        let mark = 0x8000_0000 | u32::try_from(reply.len() - 4).expect("it is short");
        assert_eq!(reply.get(..4), Some(mark.to_be_bytes().as_slice()));
        assert!(reply.len().is_multiple_of(4));
        assert_eq!(reply.get(4..8), record.get(..4), "the call's number");
        assert!(
            reply.len() <= 4 + (LIMITS.read_bytes + LIMITS.reply_bytes) as usize + 1100,
            "{}",
            reply.len()
        );
        let Sizes { clients, sessions, kept_replies_bytes } = self.protocol.sizes();
        assert!(clients <= LIMITS.clients && sessions <= LIMITS.clients * LIMITS.sessions_per_client);
        assert!(kept_replies_bytes <= LIMITS.cached_replies_bytes);
        Some(reply)
    }

    fn flatten(&self, reply: &Reply<Read>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in &reply.pieces {
            match piece {
                Piece::Bytes(more) => bytes.extend_from_slice(more),
                Piece::File { file, range } => {
                    assert!(range.start < range.end);
                    bytes.extend_from_slice(self.files.range(file, range.clone()));
                }
            }
        }
        assert_eq!(bytes.len() as u64, reply.length_bytes());
        bytes
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}
