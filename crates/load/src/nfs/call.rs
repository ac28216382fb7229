//! Calls as bytes (RFC 5531 section 9, RFC 8881 sections 16 and 18), each a record of one fragment.

use linerate_rpc::{RPC_VERSION, reply, xdr::Writer};

const PROGRAM: u32 = 100_003;
const VERSION: u32 = 4;
const NULL: u32 = 0;
const COMPOUND: u32 = 1;
const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;
const AUTH_TLS: u32 = 7;

/// Numbers of operations.
pub(super) const GETATTR: u32 = 9;
pub(super) const GETFH: u32 = 10;
const LOOKUP: u32 = 15;
pub(super) const PUTFH: u32 = 22;
const PUTROOTFH: u32 = 24;
pub(super) const READ: u32 = 25;
pub(super) const EXCHANGE_ID: u32 = 42;
pub(super) const CREATE_SESSION: u32 = 43;
pub(super) const SEQUENCE: u32 = 53;
pub(super) const RECLAIM_COMPLETE: u32 = 58;

/// `EXCHGID4_FLAG_USE_NON_PNFS`
const NO_PNFS: u32 = 0x0001_0000;
/// Attributes that are asked for: the type (1) and the length (4).
const TYPE_AND_SIZE: u32 = 1 << 1 | 1 << 4;
/// What a reply to a READ holds beside the file's bytes, at most.
const AROUND_READ_BYTES: u32 = 4096;
/// The longest call: a look-up of many names.
const CALL_BYTES: u32 = 32 << 10;
/// Operations of the longest compound: SEQUENCE, PUTROOTFH, names, GETFH, GETATTR.
const OPERATIONS: u32 = 64;

/// Who asks, and what of the protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) minor_version: u32,
    pub(super) user: u32,
    pub(super) group: u32,
}

/// A place in a session, and the number of the call in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) session: [u8; 16],
    pub(super) slot: u32,
    pub(super) number: u32,
    pub(super) highest_slot: u32,
}

/// A call that is put together.
#[derive(Debug)]
struct Call(Writer);

impl Call {
    fn new(transaction: u32, procedure: u32, credential: impl FnOnce(&mut Writer)) -> Self {
        let mut writer = Writer::default();
        // The record mark; a call.
        for number in [0, transaction, 0, RPC_VERSION, PROGRAM, VERSION, procedure] {
            writer.u32(number);
        }
        credential(&mut writer);
        writer.u32(AUTH_NONE);
        writer.u32(0);
        Self(writer)
    }

    fn compound(transaction: u32, caller: &Caller, operations: u32) -> Self {
        let mut call = Self::new(transaction, COMPOUND, |writer| {
            let mut body = Writer::default();
            body.u32(0);
            body.opaque(b"linerate-load");
            for number in [caller.user, caller.group, 0] {
                body.u32(number);
            }
            writer.u32(AUTH_SYS);
            writer.opaque(body.as_bytes());
        });
        // No tag.
        for number in [0, caller.minor_version, operations] {
            call.0.u32(number);
        }
        call
    }

    fn sequence(&mut self, sequence: &Sequence) {
        self.0.u32(SEQUENCE);
        self.0.fixed(&sequence.session);
        for number in [sequence.number, sequence.slot, sequence.highest_slot] {
            self.0.u32(number);
        }
        self.0.boolean(false);
    }

    fn append_to(mut self, outgoing: &mut Vec<u8>) {
        // Calls are shorter than any fragment may be.
        let _ = reply::finish(&mut self.0, 0);
        outgoing.extend_from_slice(self.0.as_bytes());
    }
}

/// The question whether TLS may begin (RFC 9289 section 4.1).
pub(super) fn ask_for_tls(transaction: u32, outgoing: &mut Vec<u8>) {
    let call = Call::new(transaction, NULL, |writer| {
        writer.u32(AUTH_TLS);
        writer.u32(0);
    });
    call.append_to(outgoing);
}

/// EXCHANGE_ID of the client that calls itself `owner`, in the life that `verifier` names.
pub(super) fn exchange_id(
    transaction: u32,
    caller: &Caller,
    (verifier, owner): (u64, &str),
    outgoing: &mut Vec<u8>,
) {
    let mut call = Call::compound(transaction, caller, 1);
    call.0.u32(EXCHANGE_ID);
    call.0.u64(verifier);
    call.0.opaque(owner.as_bytes());
    // SP4_NONE, and no word about the implementation.
    for number in [NO_PNFS, 0, 0] {
        call.0.u32(number);
    }
    call.append_to(outgoing);
}

/// CREATE_SESSION with room for so many READs of `block_bytes` each.
pub(super) fn create_session(
    transaction: u32,
    caller: &Caller,
    (client, sequence): (u64, u32),
    (block_bytes, slots): (u32, u32),
    outgoing: &mut Vec<u8>,
) {
    let mut call = Call::compound(transaction, caller, 1);
    call.0.u32(CREATE_SESSION);
    call.0.u64(client);
    call.0.u32(sequence);
    // Not persistent, no back channel, no RDMA.
    call.0.u32(0);
    let reply_bytes = block_bytes.saturating_add(AROUND_READ_BYTES).max(CALL_BYTES);
    let fore = [0, CALL_BYTES, reply_bytes, AROUND_READ_BYTES, OPERATIONS, slots, 0];
    // knfsd refuses a back channel that could not be used, although none is asked for.
    let back = [0, AROUND_READ_BYTES, AROUND_READ_BYTES, 0, 2, 1, 0];
    for number in fore.into_iter().chain(back) {
        call.0.u32(number);
    }
    // A program for callbacks, with AUTH_NONE.
    for number in [0x4000_0000, 1, AUTH_NONE] {
        call.0.u32(number);
    }
    call.append_to(outgoing);
}

/// RECLAIM_COMPLETE: the client had nothing open before.
pub(super) fn reclaim_complete(
    transaction: u32,
    caller: &Caller,
    sequence: &Sequence,
    outgoing: &mut Vec<u8>,
) {
    let mut call = Call::compound(transaction, caller, 2);
    call.sequence(sequence);
    call.0.u32(RECLAIM_COMPLETE);
    call.0.boolean(false);
    call.append_to(outgoing);
}

/// The file at `path`: its handle, type and length.
pub(super) fn look_up(
    transaction: u32,
    caller: &Caller,
    sequence: &Sequence,
    path: &[String],
    outgoing: &mut Vec<u8>,
) {
    // At most 32 names.
    let mut call = Call::compound(transaction, caller, path.len() as u32 + 4);
    call.sequence(sequence);
    call.0.u32(PUTROOTFH);
    for name in path {
        call.0.u32(LOOKUP);
        call.0.opaque(name.as_bytes());
    }
    for number in [GETFH, GETATTR, 1, TYPE_AND_SIZE] {
        call.0.u32(number);
    }
    call.append_to(outgoing);
}

/// READ with the anonymous stateid (RFC 8881 section 8.2.3): nothing has to be opened.
pub(super) fn read(
    transaction: u32,
    caller: &Caller,
    sequence: &Sequence,
    (handle, offset, count): (&[u8], u64, u32),
    outgoing: &mut Vec<u8>,
) {
    let mut call = Call::compound(transaction, caller, 3);
    call.sequence(sequence);
    call.0.u32(PUTFH);
    call.0.opaque(handle);
    call.0.u32(READ);
    call.0.fixed(&[0; 16]);
    call.0.u64(offset);
    call.0.u32(count);
    call.append_to(outgoing);
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_rpc::{Call as Parsed, Credential};

    #[test]
    fn calls_are_such_as_a_server_reads() {
        let caller = Caller { minor_version: 2, user: 7, group: 8 };
        let sequence = Sequence { session: [9; 16], slot: 3, number: 5, highest_slot: 3 };
        let mut outgoing = Vec::new();
        ask_for_tls(1, &mut outgoing);
        // RFC 9289 section 4.1: NULL with AUTH_TLS and an empty verifier.
        let probe = [40 | 1 << 31, 1, 0, 2, 100_003, 4, 0, 7, 0, 0, 0].map(u32::to_be_bytes).concat();
        assert_eq!(outgoing, probe);
        outgoing.clear();
        read(2, &caller, &sequence, (b"handle", 1 << 40, 4096), &mut outgoing);
        let call = Parsed::parse(&outgoing[4..]).unwrap();
        assert_eq!((call.transaction, call.program, call.version, call.procedure), (2, 100_003, 4, 1));
        let Credential::System(system) = call.credential else { panic!("{:?}", call.credential) };
        assert_eq!((system.user, system.group, system.groups.len()), (7, 8, 0));
        let mut arguments = call.arguments;
        assert_eq!((arguments.u32(), arguments.u32(), arguments.u32()), (Ok(0), Ok(2), Ok(3)));
        assert_eq!((arguments.u32(), arguments.array()), (Ok(SEQUENCE), Ok([9; 16])));
        assert_eq!((arguments.u32(), arguments.u32(), arguments.u32()), (Ok(5), Ok(3), Ok(3)));
        assert_eq!((arguments.boolean(), arguments.u32()), (Ok(false), Ok(PUTFH)));
        assert_eq!((arguments.opaque(128), arguments.u32()), (Ok(b"handle".as_slice()), Ok(READ)));
        assert_eq!(
            (arguments.array(), arguments.u64(), arguments.u32()),
            (Ok([0; 16]), Ok(1 << 40), Ok(4096))
        );
        assert!(arguments.rest().is_empty());
    }
}
