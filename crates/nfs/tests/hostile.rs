//! Damaged calls: no panic, no reply beyond its limits, and nothing that is cut short is carried out.

mod support;

use linerate_nfs::{Evaluated, Reply, Step, TlsPolicy, Waiting};
use support::{
    CHANNEL, Conversation,
    bytes::{text, u32s, u64s},
    call,
    memory::{MemoryFiles, Read},
    op,
    status::BADXDR,
};

/// An operation of every kind that takes arguments, in its longest form.
fn operations() -> Vec<Vec<u8>> {
    let owner = [u64s(&[1]), text(b"owner")].concat();
    let state_id = vec![3; 16];
    let attributes = [u32s(&[1, 1 << 4]), text(&u64s(&[10]))].concat();
    let channel = u32s(&[0, 4096, 4096, 4096, 8, 8, 1, 9]);
    let callbacks =
        [u32s(&[7, 2, 1, 5]), text(b"box"), u32s(&[1, 2, 1, 3]), u32s(&[6, 1]), text(b"ab"), text(b"cd")];
    vec![
        u32s(&[op::ACCESS, 0x3f]),
        [u32s(&[op::CLOSE, 0]), state_id.clone()].concat(),
        u32s(&[op::GETATTR, 2, 0x18, 0x2]),
        [u32s(&[op::LOCK, 1, 0]), u64s(&[0, 5]), u32s(&[1, 0]), state_id.clone(), u32s(&[0]), owner.clone()]
            .concat(),
        [u32s(&[op::LOCK, 1, 0]), u64s(&[0, 5]), u32s(&[0]), state_id.clone(), u32s(&[0])].concat(),
        [u32s(&[op::LOCKT, 1]), u64s(&[0, 5]), owner.clone()].concat(),
        [u32s(&[op::LOCKU, 1, 0]), state_id.clone(), u64s(&[0, 5])].concat(),
        [u32s(&[op::NVERIFY]), attributes.clone()].concat(),
        [u32s(&[op::VERIFY]), attributes.clone()].concat(),
        [u32s(&[op::OPEN, 0, 1, 0]), owner.clone(), u32s(&[1, 0]), attributes.clone(), u32s(&[4])].concat(),
        [u32s(&[op::OPEN, 0, 1, 0]), owner.clone(), u32s(&[1, 3, 0, 0]), attributes, u32s(&[4])].concat(),
        [u32s(&[op::OPEN, 0, 1, 0]), owner, u32s(&[0, 1, 0])].concat(),
        [u32s(&[op::OPEN_DOWNGRADE]), state_id.clone(), u32s(&[0, 1, 0])].concat(),
        [u32s(&[op::PUTFH]), text(b"obj:\0\0\0\x01")].concat(),
        [u32s(&[op::READ]), state_id.clone(), u64s(&[1]), u32s(&[5])].concat(),
        [u32s(&[op::PUTROOTFH, op::READDIR]), u64s(&[0, 0]), u32s(&[0, 2000, 1, 1 << 20])].concat(),
        [u32s(&[op::PUTROOTFH, op::LOOKUP]), text(b"folder")].concat(),
        [u32s(&[op::PUTROOTFH, op::SECINFO]), text(b"folder")].concat(),
        u32s(&[op::SECINFO_NO_NAME, 0]),
        [u32s(&[op::TEST_STATEID, 2]), state_id.repeat(2)].concat(),
        [u32s(&[op::FREE_STATEID]), state_id].concat(),
        u32s(&[op::RECLAIM_COMPLETE, 0]),
        [u32s(&[op::BACKCHANNEL_CTL]), callbacks.concat()].concat(),
        [
            u32s(&[op::EXCHANGE_ID, 0, 0]),
            text(b"me"),
            u32s(&[0, 0, 1]),
            text(b"a"),
            text(b"b"),
            u32s(&[0, 0, 0]),
        ]
        .concat(),
        [u32s(&[op::CREATE_SESSION, 0, 9, 1, 0]), channel.repeat(2), callbacks.concat()].concat(),
        [u32s(&[op::DESTROY_SESSION]), vec![9; 16]].concat(),
        u32s(&[op::DESTROY_CLIENTID, 0, 9]),
    ]
}

/// Operations in the bytes that `operations` returns: two begin with PUTROOTFH.
fn count(operation: &[u8]) -> u32 {
    if operation.starts_with(&u32s(&[op::PUTROOTFH])) { 2 } else { 1 }
}

/// The reply to bytes behind SEQUENCE and PUTFH of a file, which announce so many operations.
fn reply(conversation: &mut Conversation, count: u32, bytes: &[u8]) -> Reply<Read> {
    conversation.slots[0] += 1;
    let sequence = conversation.sequence(conversation.slots[0], 0, false);
    let put = [u32s(&[op::PUTFH]), text(b"obj:\0\0\0\x01")].concat();
    let arguments = [u32s(&[0, 2, 2 + count]), sequence, put, bytes.to_vec()].concat();
    let record = call(7, &conversation.credential, [100_003, 4, 1], &arguments);
    let step = conversation.protocol.take(&record, &conversation.client, TlsPolicy::Off, conversation.now);
    let Step::Evaluate(mut request) = step else { panic!("its frame is sound: {step:?}") };
    let evaluated =
        request.evaluate(&conversation.protocol, &conversation.files, &conversation.client, Waiting::Allowed);
    let Evaluated::Reply(reply) = evaluated else { panic!("waiting was allowed") };
    reply
}

fn conversation() -> Conversation {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    conversation.establish(CHANNEL);
    conversation
}

#[test]
fn an_operation_that_is_cut_short_is_not_carried_out() {
    for operation in operations() {
        let count = count(&operation);
        let mut conversation = conversation();
        let whole = reply(&mut conversation, count, &operation);
        assert_ne!(whole.report.status, "NFS4ERR_BADXDR", "{operation:?}");
        for length in 0..operation.len() {
            let cut = reply(&mut conversation, count, &operation[..length]);
            assert_eq!(cut.report.status, "NFS4ERR_BADXDR", "{operation:?} cut to {length}");
            let bytes = conversation.flatten(&cut);
            assert_eq!(bytes[24..28], u32s(&[BADXDR]));
        }
    }
}

#[test]
fn no_number_is_believed() {
    let numbers = [0, 1, 2, 7, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, u32::MAX];
    let mut statuses = std::collections::BTreeSet::new();
    for operation in operations() {
        let mut conversation = conversation();
        for place in (0..operation.len()).step_by(4) {
            for number in numbers {
                let mut damaged = operation.clone();
                damaged[place..place + 4].copy_from_slice(&number.to_be_bytes());
                let reply = reply(&mut conversation, count(&operation), &damaged);
                assert!(reply.length_bytes() < 4096, "{damaged:?}");
                assert_eq!(conversation.flatten(&reply).len() as u64, reply.length_bytes() - 4);
                statuses.insert(reply.report.status);
                if reply.report.operations.names().any(|name| name == "DESTROY_SESSION") {
                    conversation = self::conversation();
                }
            }
        }
    }
    for status in ["NFS4_OK", "NFS4ERR_BADXDR", "NFS4ERR_OP_ILLEGAL", "NFS4ERR_INVAL", "NFS4ERR_TOOSMALL"] {
        assert!(statuses.contains(status), "{status} of {statuses:?}");
    }
}

#[test]
fn a_frame_that_cannot_be_read_is_refused_whole() {
    let conversation = conversation();
    for arguments in [
        vec![],
        u32s(&[0]),
        u32s(&[0, 2]),
        // A tag that is longer than the call, and one of more than a kilobyte.
        u32s(&[9, 0, 2, 0]),
        [text(&[b't'; 1025]), u32s(&[2, 0])].concat(),
        // More operations than any call has room for.
        u32s(&[0, 2, u32::MAX]),
    ] {
        let reply = conversation.send(&call(7, &conversation.credential, [100_003, 4, 1], &arguments));
        // GARBAGE_ARGS
        assert_eq!(reply, u32s(&[7, 1, 0, 0, 0, 4]), "{arguments:?}");
    }
}

#[test]
fn more_operations_than_there_are() {
    let mut conversation = conversation();
    let reply = reply(&mut conversation, 20, &u32s(&[op::PUTROOTFH, op::GETFH]));
    assert_eq!(reply.report.status, "NFS4ERR_BADXDR");
    let bytes = conversation.flatten(&reply);
    // SEQUENCE, PUTFH, PUTROOTFH, GETFH, and what was missing.
    assert_eq!(bytes[32..36], u32s(&[5]));
}

#[test]
fn a_tag_comes_back() {
    let mut conversation = conversation();
    let sequence = conversation.sequence(1, 0, false);
    for (operations, status) in [(vec![sequence], 0), (vec![u32s(&[op::PUTROOTFH])], 10071), (vec![], 0)] {
        let tag = text(b"a tag");
        let frame = u32s(&[2, operations.len() as u32]);
        let arguments = [tag.clone(), frame, operations.concat()].concat();
        let transaction = conversation.next_transaction();
        let reply =
            conversation.send(&call(transaction, &conversation.credential, [100_003, 4, 1], &arguments));
        assert!(reply[24..].starts_with(&[u32s(&[status]), tag].concat()), "{reply:?}");
    }
}
