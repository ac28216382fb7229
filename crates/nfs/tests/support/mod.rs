//! A tree in memory, and a client that speaks in bytes which are put together here, not by the library.

// Each test program uses a part of it.
#![allow(dead_code)]

pub(crate) mod bytes;
pub(crate) mod memory;
pub(crate) mod status;

use bytes::{Bytes, array, text, u32s, u64s};
use linerate_nfs::{Client, Evaluated, Limits, Piece, Protocol, Reply, Step, TlsPolicy, Waiting};
use memory::{MemoryFiles, Read};
use std::time::Duration;

/// Numbers of operations, from RFC 8881 section 16.2.1 and RFC 7862 section 15.
pub(crate) mod op {
    pub(crate) const ACCESS: u32 = 3;
    pub(crate) const CLOSE: u32 = 4;
    pub(crate) const CREATE: u32 = 6;
    pub(crate) const GETATTR: u32 = 9;
    pub(crate) const GETFH: u32 = 10;
    pub(crate) const LOCK: u32 = 12;
    pub(crate) const LOCKT: u32 = 13;
    pub(crate) const LOCKU: u32 = 14;
    pub(crate) const LOOKUP: u32 = 15;
    pub(crate) const LOOKUPP: u32 = 16;
    pub(crate) const NVERIFY: u32 = 17;
    pub(crate) const OPEN: u32 = 18;
    pub(crate) const OPEN_DOWNGRADE: u32 = 21;
    pub(crate) const PUTFH: u32 = 22;
    pub(crate) const PUTPUBFH: u32 = 23;
    pub(crate) const PUTROOTFH: u32 = 24;
    pub(crate) const READ: u32 = 25;
    pub(crate) const READDIR: u32 = 26;
    pub(crate) const READLINK: u32 = 27;
    pub(crate) const REMOVE: u32 = 28;
    pub(crate) const RENEW: u32 = 30;
    pub(crate) const RESTOREFH: u32 = 31;
    pub(crate) const SAVEFH: u32 = 32;
    pub(crate) const SECINFO: u32 = 33;
    pub(crate) const SETATTR: u32 = 34;
    pub(crate) const VERIFY: u32 = 37;
    pub(crate) const WRITE: u32 = 38;
    pub(crate) const BACKCHANNEL_CTL: u32 = 40;
    pub(crate) const BIND_CONN_TO_SESSION: u32 = 41;
    pub(crate) const EXCHANGE_ID: u32 = 42;
    pub(crate) const CREATE_SESSION: u32 = 43;
    pub(crate) const DESTROY_SESSION: u32 = 44;
    pub(crate) const FREE_STATEID: u32 = 45;
    pub(crate) const GET_DIR_DELEGATION: u32 = 46;
    pub(crate) const SECINFO_NO_NAME: u32 = 52;
    pub(crate) const SEQUENCE: u32 = 53;
    pub(crate) const SET_SSV: u32 = 54;
    pub(crate) const TEST_STATEID: u32 = 55;
    pub(crate) const DESTROY_CLIENTID: u32 = 57;
    pub(crate) const RECLAIM_COMPLETE: u32 = 58;
    pub(crate) const ALLOCATE: u32 = 59;
    pub(crate) const READ_PLUS: u32 = 68;
    pub(crate) const SEEK: u32 = 69;
}

pub(crate) const NONE: &[u8] = b"\0\0\0\0\0\0\0\0";

pub(crate) fn client() -> Client {
    Client { address: "192.0.2.7:700".parse().unwrap(), tls: None }
}

/// AUTH_SYS of a user, and the verifier AUTH_NONE.
pub(crate) fn system(user: u32) -> Vec<u8> {
    let body = [u32s(&[7]), text(b"box"), u32s(&[user, 100, 0])].concat();
    [u32s(&[1]), text(&body), NONE.to_vec()].concat()
}

/// A call of a procedure, without a record mark.
pub(crate) fn call(transaction: u32, credential: &[u8], program: [u32; 3], arguments: &[u8]) -> Vec<u8> {
    [&u32s(&[transaction, 0, 2]), &u32s(&program), credential, arguments].concat()
}

/// The arguments of COMPOUND.
pub(crate) fn compound(minor_version: u32, operations: &[Vec<u8>]) -> Vec<u8> {
    [text(b""), u32s(&[minor_version, operations.len() as u32]), operations.concat()].concat()
}

/// A client's conversation with a server.
pub(crate) struct Conversation {
    pub(crate) protocol: Protocol,
    pub(crate) files: MemoryFiles,
    pub(crate) client: Client,
    pub(crate) credential: Vec<u8>,
    pub(crate) now: Duration,
    pub(crate) minor_version: u32,
    transaction: u32,
    /// The session, and the number of the last call in each slot.
    pub(crate) session: Vec<u8>,
    pub(crate) slots: Vec<u32>,
}

/// What a compound was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u32,
    pub(crate) count: u32,
    /// Behind the count.
    pub(crate) results: Vec<u8>,
    /// All of it, behind the RPC header, with the bytes of files.
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn results(&self) -> Bytes<'_> {
        Bytes(&self.results)
    }

    /// The results behind SEQUENCE's, which must have succeeded.
    pub(crate) fn behind_sequence(&self) -> Bytes<'_> {
        let mut results = self.results();
        assert_eq!((results.u32(), results.u32()), (op::SEQUENCE, 0));
        results.take(36);
        results
    }
}

impl Conversation {
    pub(crate) fn new(files: MemoryFiles) -> Self {
        Self::with(Limits::default(), files)
    }

    pub(crate) fn with(limits: Limits, files: MemoryFiles) -> Self {
        Self {
            protocol: Protocol::new(limits, b"server", 0x1234_5678_9abc_def0_0fed_cba9_8765_4321),
            files,
            client: client(),
            credential: system(1000),
            now: Duration::from_secs(1000),
            minor_version: 2,
            transaction: 1,
            session: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// The server is started anew.
    pub(crate) fn restart(&mut self) {
        self.protocol = Protocol::new(Limits::default(), b"server", 0x9999);
    }

    /// Sends a record; the reply's bytes, without its mark.
    pub(crate) fn send(&self, record: &[u8]) -> Vec<u8> {
        match self.protocol.take(record, &self.client, TlsPolicy::Off, self.now) {
            Step::Reply(bytes) => unmarked(&bytes),
            Step::Evaluate(mut request) => {
                match request.evaluate(&self.protocol, &self.files, &self.client, Waiting::Forbidden) {
                    Evaluated::Reply(reply) => self.flatten(&reply),
                    Evaluated::WouldWait => {
                        let mut request = request.into_owned();
                        let evaluated =
                            request.evaluate(&self.protocol, &self.files, &self.client, Waiting::Allowed);
                        let Evaluated::Reply(reply) = evaluated else { panic!("waiting was allowed") };
                        self.flatten(&reply)
                    }
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// The bytes of a reply, without its mark.
    pub(crate) fn flatten(&self, reply: &Reply<Read>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in &reply.pieces {
            match piece {
                Piece::Bytes(more) => bytes.extend_from_slice(more),
                Piece::File { file, range } => bytes.extend_from_slice(self.files.range(file, range.clone())),
            }
        }
        assert_eq!(bytes.len() as u64, reply.length_bytes());
        unmarked(&bytes)
    }

    pub(crate) fn next_transaction(&mut self) -> u32 {
        self.transaction += 1;
        self.transaction
    }

    /// Sends a compound as it is.
    pub(crate) fn compound(&mut self, operations: &[Vec<u8>]) -> Answer {
        let transaction = self.next_transaction();
        let arguments = compound(self.minor_version, operations);
        let record = call(transaction, &self.credential, [100_003, 4, 1], &arguments);
        answer(&self.send(&record), transaction)
    }

    /// A client ID, and the number that CREATE_SESSION needs.
    pub(crate) fn exchange_id(&mut self, name: &[u8], verifier: u64) -> (u64, u32) {
        let answer = self.compound(&[exchange_id(name, verifier, 0)]);
        let mut results = answer.results();
        assert_eq!((results.u32(), results.u32()), (op::EXCHANGE_ID, 0));
        (results.u64(), results.u32())
    }

    pub(crate) fn create_session(&mut self, id: (u64, u32), channel: [u32; 6]) -> Answer {
        self.compound(&[create_session(id, channel)])
    }

    /// A session of this channel.
    pub(crate) fn establish(&mut self, channel: [u32; 6]) {
        let id = self.exchange_id(b"a client", 1);
        let answer = self.create_session(id, channel);
        let mut results = answer.results();
        assert_eq!((results.u32(), results.u32()), (op::CREATE_SESSION, 0));
        self.session = results.take(16).to_vec();
        self.slots = vec![0; channel[5] as usize];
    }

    /// SEQUENCE with these numbers.
    pub(crate) fn sequence(&self, sequence: u32, slot: u32, is_kept: bool) -> Vec<u8> {
        [u32s(&[op::SEQUENCE]), self.session.clone(), u32s(&[sequence, slot, slot, is_kept.into()])].concat()
    }

    /// Sends operations in slot 0 of the session.
    pub(crate) fn operations(&mut self, operations: &[Vec<u8>]) -> Answer {
        self.slots[0] += 1;
        let sequence = self.sequence(self.slots[0], 0, false);
        let all: Vec<_> = [sequence].into_iter().chain(operations.iter().cloned()).collect();
        self.compound(&all)
    }
}

/// A channel that is large enough for everything.
pub(crate) const CHANNEL: [u32; 6] = [0, 1 << 20, 2 << 20, 4096, 32, 8];

pub(crate) fn exchange_id(name: &[u8], verifier: u64, flags: u32) -> Vec<u8> {
    [u32s(&[op::EXCHANGE_ID]), u64s(&[verifier]), text(name), u32s(&[flags, 0, 0])].concat()
}

pub(crate) fn create_session((client, sequence): (u64, u32), channel: [u32; 6]) -> Vec<u8> {
    let channel = [u32s(&channel), u32s(&[0])].concat();
    // No way of authentication for callbacks but AUTH_NONE.
    [u32s(&[op::CREATE_SESSION]), u64s(&[client]), u32s(&[sequence, 0]), channel.repeat(2), u32s(&[7, 1, 0])]
        .concat()
}

fn unmarked(bytes: &[u8]) -> Vec<u8> {
    let (mark, record) = bytes.split_at(4);
    assert_eq!(mark, array(0x8000_0000 | record.len() as u32), "the record mark");
    assert_eq!(record.len() % 4, 0);
    record.to_vec()
}

/// Reads the frame of a compound's reply.
pub(crate) fn answer(record: &[u8], transaction: u32) -> Answer {
    let mut reply = Bytes(record);
    // REPLY, MSG_ACCEPTED, AUTH_NONE without a body, SUCCESS
    assert_eq!(reply.take(24), u32s(&[transaction, 1, 0, 0, 0, 0]));
    let bytes = reply.0.to_vec();
    let status = reply.u32();
    assert_eq!(reply.text(), b"");
    let count = reply.u32();
    Answer { status, count, results: reply.0.to_vec(), bytes }
}
