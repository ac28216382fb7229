//! Conversations byte by byte, as RFC 8881 has them: written down by hand.

mod support;

use linerate_nfs::{Evaluated, Piece, Step, TlsPolicy, Waiting};
use std::time::Duration;
use support::{
    Conversation, answer, call, client,
    memory::{MemoryFiles, Read},
    system,
};

/// xid 9, CALL, RPC 2, program 100003, version 4, COMPOUND; AUTH_SYS of user 1000; AUTH_NONE.
const CALL: &[u8] = b"\0\0\0\x09\0\0\0\0\0\0\0\x02\0\x01\x86\xa3\0\0\0\x04\0\0\0\x01\
    \0\0\0\x01\0\0\0\x18\0\0\0\x07\0\0\0\x03box\0\0\0\x03\xe8\0\0\0\x64\0\0\0\0\
    \0\0\0\0\0\0\0\0";
/// xid 9, REPLY, MSG_ACCEPTED, AUTH_NONE, SUCCESS.
const ACCEPTED: &[u8] = b"\0\0\0\x09\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

fn sent(conversation: &Conversation, arguments: &[u8]) -> Vec<u8> {
    let reply = conversation.send(&[CALL, arguments].concat());
    reply.strip_prefix(ACCEPTED).expect("it is accepted").to_vec()
}

/// No tag, minor version 2, so many operations.
fn head(operations: u8) -> Vec<u8> {
    [b"\0\0\0\0\0\0\0\x02\0\0\0".as_slice(), &[operations]].concat()
}

#[test]
fn from_the_first_call_to_the_last() {
    let conversation = Conversation::new(MemoryFiles::sample());

    // EXCHANGE_ID: verifier, owner "me", no flags, SP4_NONE, an implementation: "kernel.org", "Linux", a date.
    let reply = sent(
        &conversation,
        &[
            &head(1),
            b"\0\0\0\x2a\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\x02me\0\0\0\0\0\0\0\0\0\0\
              \0\0\0\x01\0\0\0\x0akernel.org\0\0\0\0\0\x05Linux\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                .as_slice(),
        ]
        .concat(),
    );
    // NFS4_OK, no tag, one result: EXCHANGE_ID, NFS4_OK.
    assert_eq!(reply[..20], *b"\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x2a\0\0\0\0");
    let client_id = &reply[20..28];
    // Sequence 1, USE_NON_PNFS, SP4_NONE, minor 0, major and scope "server", no implementation.
    assert_eq!(
        reply[28..],
        *b"\0\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x06server\0\0\0\0\0\x06server\0\0\0\0\0\0"
    );

    // CREATE_SESSION: sequence 1, persistent and with a back channel, both channels, program 0x40000000, AUTH_SYS for callbacks.
    let channels: &[u8] = b"\0\0\0\0\0\x10\0\0\0\x20\0\0\0\0\x10\0\0\0\0\x08\0\0\0\x40\0\0\0\0\
        \0\0\0\0\0\0\x10\0\0\0\x10\0\0\0\0\0\0\0\0\x02\0\0\0\x10\0\0\0\0";
    let reply = sent(
        &conversation,
        &[
            &head(1),
            b"\0\0\0\x2b".as_slice(),
            client_id,
            b"\0\0\0\x01\0\0\0\x03",
            channels,
            b"\x40\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\x03box\0\0\0\0\0\0\0\0\0\0\0\0\0",
        ]
        .concat(),
    );
    assert_eq!(reply[..20], *b"\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x2b\0\0\0\0");
    let session = &reply[20..36];
    // Sequence 1, no flags. Calls of 64 KiB, replies of 1 MiB and 64 KiB, cached ones of 2 KiB, 8 operations, 64 slots. The back channel as asked.
    assert_eq!(
        reply[36..],
        *b"\0\0\0\x01\0\0\0\0\
           \0\0\0\0\0\x01\0\0\0\x11\0\0\0\0\x08\0\0\0\0\x08\0\0\0\x40\0\0\0\0\
           \0\0\0\0\0\0\x10\0\0\0\x10\0\0\0\0\0\0\0\0\x02\0\0\0\x10\0\0\0\0"
    );

    // SEQUENCE 1 in slot 3, RECLAIM_COMPLETE for all.
    let reply = sent(
        &conversation,
        &[
            &head(2),
            b"\0\0\0\x35".as_slice(),
            session,
            b"\0\0\0\x01\0\0\0\x03\0\0\0\x03\0\0\0\0\0\0\0\x3a\0\0\0\0",
        ]
        .concat(),
    );
    // SEQUENCE: its session, sequence 1, slot 3, highest slot 63 twice, no flags; RECLAIM_COMPLETE: NFS4_OK.
    let expected: &[&[u8]] = &[
        b"\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x35\0\0\0\0",
        session,
        b"\0\0\0\x01\0\0\0\x03\0\0\0\x3f\0\0\0\x3f\0\0\0\0",
        b"\0\0\0\x3a\0\0\0\0",
    ];
    assert_eq!(reply, expected.concat());

    // PUTROOTFH, LOOKUP "file", GETFH, ACCESS (all six), GETATTR of type, change, size, fileid, mode, owner, time_metadata.
    let reply = sent(
        &conversation,
        &[
            &head(6),
            b"\0\0\0\x35".as_slice(),
            session,
            b"\0\0\0\x02\0\0\0\x03\0\0\0\x03\0\0\0\0\
              \0\0\0\x18\0\0\0\x0f\0\0\0\x04file\0\0\0\x0a\0\0\0\x03\0\0\0\x3f\
              \0\0\0\x09\0\0\0\x02\0\x10\0\x1a\0\x10\0\x12",
        ]
        .concat(),
    );
    assert_eq!(reply[..12], *b"\0\0\0\0\0\0\0\0\0\0\0\x06");
    let behind_sequence: &[u8] = b"\0\0\0\x18\0\0\0\0\0\0\0\x0f\0\0\0\0\
        \0\0\0\x0a\0\0\0\0\0\0\0\x08obj:\0\0\0\x01\
        \0\0\0\x03\0\0\0\0\0\0\0\x3f\0\0\0\x01\
        \0\0\0\x09\0\0\0\0\0\0\0\x02\0\x10\0\x1a\0\x10\0\x12\0\0\0\x34\
        \0\0\0\x01\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0\x65\
        \0\0\x01\xa4\0\0\0\x041000\xff\xff\xff\xff\xff\xff\xff\xfb\0\0\0\x06";
    assert_eq!(reply[56..], *behind_sequence);

    // PUTFH, READ with the stateid of the current object, from byte 3, 100 bytes; then PUTFH and GETFH behind the data.
    let reply = sent(
        &conversation,
        &[
            &head(5),
            b"\0\0\0\x35".as_slice(),
            session,
            b"\0\0\0\x03\0\0\0\x03\0\0\0\x03\0\0\0\0\
              \0\0\0\x16\0\0\0\x08obj:\0\0\0\x01\
              \0\0\0\x19\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\x64\
              \0\0\0\x18\0\0\0\x0a",
        ]
        .concat(),
    );
    assert_eq!(
        reply[56..],
        *b"\0\0\0\x16\0\0\0\0\0\0\0\x19\0\0\0\0\0\0\0\x01\0\0\0\x073456789\0\
           \0\0\0\x18\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0\x08obj:\0\0\0\0"
    );

    // PUTROOTFH, READDIR from the beginning, 4096 bytes, rdattr_error and mounted_on_fileid.
    let reply = sent(
        &conversation,
        &[
            &head(3),
            b"\0\0\0\x35".as_slice(),
            session,
            b"\0\0\0\x04\0\0\0\x03\0\0\0\x03\0\0\0\0\0\0\0\x18\
              \0\0\0\x1a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\x10\0\0\0\0\x02\0\0\x08\0\0\x80\0\0",
        ]
        .concat(),
    );
    let entry = |cookie: u8, name: &[u8], number: u8| {
        let attributes: &[u8] = b"\0\0\0\x02\0\0\x08\0\0\x80\0\0\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0";
        let padded = [name, &[0; 3][..name.len().wrapping_neg() & 3]].concat();
        let head =
            [b"\0\0\0\x01\0\0\0\0\0\0\0".as_slice(), &[cookie], b"\0\0\0", &[name.len() as u8]].concat();
        [&head, &padded, attributes, &[number]].concat()
    };
    let entries = [
        entry(3, b"file", 101),
        entry(4, b"folder", 102),
        entry(5, b"link", 104),
        entry(6, b"pipe", 105),
        entry(7, b"none", 106),
    ];
    let expected: &[&[u8]] =
        &[b"\0\0\0\x18\0\0\0\0\0\0\0\x1a\0\0\0\0\0\0\0\0\0\0\0\0", &entries.concat(), b"\0\0\0\0\0\0\0\x01"];
    assert_eq!(reply[56..], expected.concat());

    // DESTROY_SESSION and DESTROY_CLIENTID, alone.
    let reply = sent(&conversation, &[&head(1), b"\0\0\0\x2c".as_slice(), session].concat());
    assert_eq!(reply, b"\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x2c\0\0\0\0");
    let reply = sent(&conversation, &[&head(1), b"\0\0\0\x39".as_slice(), client_id].concat());
    assert_eq!(reply, b"\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x39\0\0\0\0");
    assert_eq!(conversation.protocol.sizes(), linerate_nfs::Sizes::default());
}

#[test]
fn a_read_is_a_head_a_range_and_padding() {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    conversation.establish(support::CHANNEL);
    let sequence = conversation.sequence(1, 0, false);
    let read: &[u8] = b"\0\0\0\x19\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x05";
    let handle: &[u8] = b"\0\0\0\x16\0\0\0\x08obj:\0\0\0\x01";
    let arguments = support::compound(2, &[sequence, handle.to_vec(), read.to_vec()]);
    let record = call(77, &system(1), [100_003, 4, 1], &arguments);
    let Step::Evaluate(mut request) =
        conversation.protocol.take(&record, &client(), TlsPolicy::Off, Duration::ZERO)
    else {
        panic!("it looks at a file")
    };
    let Evaluated::Reply(reply) =
        request.evaluate(&conversation.protocol, &conversation.files, &client(), Waiting::Forbidden)
    else {
        panic!("nothing is cold")
    };
    let [Piece::Bytes(head), file, padding] = reply.pieces.as_slice() else { panic!("{:?}", reply.pieces) };
    assert_eq!(*file, Piece::File { file: Read(1), range: 2..7 });
    assert_eq!(*padding, Piece::Bytes(vec![0; 3]));
    assert!(head.ends_with(b"\0\0\0\x19\0\0\0\0\0\0\0\0\0\0\0\x05"));
    assert_eq!(reply.report.operations.names().collect::<Vec<_>>(), ["PUTFH", "READ"]);
    assert_eq!(reply.report.status, "NFS4_OK");
    assert_eq!(answer(&conversation.flatten(&reply), 77).count, 3);
}

#[test]
fn programs_and_versions_that_there_are_not() {
    let conversation = Conversation::new(MemoryFiles::sample());
    for (program, expected) in [
        ([100_003, 4, 0], b"\0\0\0\0".as_slice()),
        ([100_003, 4, 2], b"\0\0\0\x03"),
        ([100_003, 3, 0], b"\0\0\0\0"),
        ([100_003, 3, 22], b"\0\0\0\x03"),
        ([100_003, 2, 0], b"\0\0\0\x02\0\0\0\x03\0\0\0\x04"),
        ([100_005, 3, 0], b"\0\0\0\0"),
        ([100_005, 3, 6], b"\0\0\0\x03"),
        ([100_005, 1, 0], b"\0\0\0\x02\0\0\0\x03\0\0\0\x03"),
        ([100_000, 2, 0], b"\0\0\0\x01"),
        // COMPOUND without arguments.
        ([100_003, 4, 1], b"\0\0\0\x04"),
    ] {
        let reply = conversation.send(&call(9, &system(1), program, b""));
        assert_eq!(reply[20..], *expected, "{program:?}");
    }
}

#[test]
fn tls_begins_when_it_is_asked_for() {
    let conversation = Conversation::new(MemoryFiles::sample());
    let credential: &[u8] = b"\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0";
    let probe = call(5, credential, [100_003, 4, 0], b"");
    let in_tls = linerate_nfs::Client { tls: Some(linerate_nfs::Tls::default()), ..client() };
    let take = |record: &[u8], client: &_, policy| match conversation.protocol.take(
        record,
        client,
        policy,
        Duration::ZERO,
    ) {
        Step::StartTls(reply) => ("TLS", reply),
        Step::Reply(reply) => ("reply", reply),
        other => panic!("{other:?}"),
    };
    let yes = b"\x80\0\0\x20\0\0\0\x05\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x08STARTTLS\0\0\0\0";
    let no = b"\x80\0\0\x14\0\0\0\x05\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01";
    assert_eq!(take(&probe, &client(), TlsPolicy::Offered), ("TLS", yes.to_vec()));
    assert_eq!(take(&probe, &client(), TlsPolicy::Required), ("TLS", yes.to_vec()));
    assert_eq!(take(&probe, &client(), TlsPolicy::Off), ("reply", no.to_vec()));
    assert_eq!(take(&probe, &in_tls, TlsPolicy::Offered), ("reply", no.to_vec()));
    let not_null = call(5, credential, [100_003, 4, 1], &support::compound(1, &[]));
    assert_eq!(take(&not_null, &client(), TlsPolicy::Offered), ("reply", no.to_vec()));

    // In the clear nothing but NULL is answered where TLS is required.
    let too_weak = b"\x80\0\0\x14\0\0\0\x05\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x05";
    let compound = call(5, &system(1), [100_003, 4, 1], &support::compound(1, &[]));
    assert_eq!(take(&compound, &client(), TlsPolicy::Required), ("reply", too_weak.to_vec()));
    assert_ne!(take(&compound, &in_tls, TlsPolicy::Required).1, too_weak);
    assert_ne!(take(&compound, &client(), TlsPolicy::Offered).1, too_weak);
    // MOUNT is called in the clear by clients that then use TLS.
    let mount = call(5, &system(1), [100_005, 3, 1], &support::bytes::text(b"/"));
    let step = conversation.protocol.take(&mount, &client(), TlsPolicy::Required, Duration::ZERO);
    assert!(matches!(step, Step::Evaluate(_)));
    let null = call(5, &system(1), [100_003, 4, 0], b"");
    assert_ne!(take(&null, &client(), TlsPolicy::Required).1, too_weak);
}
