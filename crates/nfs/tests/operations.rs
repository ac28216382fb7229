//! What the operations of a compound answer.

mod support;

use linerate_nfs::{Fault, FileSystem, Kind, Limits};
use support::{
    CHANNEL, Conversation,
    bytes::{text, u32s, u64s},
    memory::{MemoryFiles, ROOT},
    op,
    status::{
        ACCESS, ATTRNOTSUPP, BAD_COOKIE, BAD_STATEID, BADCHAR, BADHANDLE, BADNAME, BADXDR, DELAY, EXIST,
        INVAL, IO, ISDIR, NAMETOOLONG, NO_GRACE, NOENT, NOFILEHANDLE, NOT_SAME, NOTDIR, NOTSUPP, OK,
        OP_ILLEGAL, OPENMODE, ROFS, SAME, SHARE_DENIED, STALE, SYMLINK, TOOSMALL, WRONG_TYPE, WRONGSEC,
    },
    system,
};

fn conversation() -> Conversation {
    with(MemoryFiles::sample())
}

fn with(files: MemoryFiles) -> Conversation {
    let mut conversation = Conversation::new(files);
    conversation.establish(CHANNEL);
    conversation
}

fn code(op: u32) -> Vec<u8> {
    u32s(&[op])
}

fn look_up(name: &[u8]) -> Vec<u8> {
    [code(op::LOOKUP), text(name)].concat()
}

/// PUTROOTFH, and LOOKUP of each.
fn at(names: &[&[u8]]) -> Vec<Vec<u8>> {
    [code(op::PUTROOTFH)].into_iter().chain(names.iter().map(|name| look_up(name))).collect()
}

fn on(names: &[&[u8]], operation: Vec<u8>) -> Vec<Vec<u8>> {
    let mut operations = at(names);
    operations.push(operation);
    operations
}

fn handle_of(object: u32) -> Vec<u8> {
    text(&[b"obj:".as_slice(), &object.to_be_bytes()].concat())
}

fn read(offset: u64, count: u32) -> Vec<u8> {
    [u32s(&[op::READ, 5]), vec![0xab; 12], u64s(&[offset]), u32s(&[count])].concat()
}

fn read_directory(after: u64, verifier: u64, names: u32, most: u32, wanted: &[u32]) -> Vec<u8> {
    let wanted = [u32s(&[wanted.len() as u32]), u32s(wanted)].concat();
    [code(op::READDIR), u64s(&[after, verifier]), u32s(&[names, most]), wanted].concat()
}

/// Cookies and names, and whether that is all. Attributes are as long as `attributes` says.
fn entries(mut listing: support::bytes::Bytes<'_>) -> (u64, Vec<(u64, Vec<u8>)>, bool) {
    let verifier = listing.u64();
    let mut found = Vec::new();
    while listing.u32() == 1 {
        let cookie = listing.u64();
        found.push((cookie, listing.text().to_vec()));
        for _ in 0..listing.u32() {
            listing.u32();
        }
        listing.text();
    }
    let is_end = listing.u32() == 1;
    assert!(listing.is_empty());
    (verifier, found, is_end)
}

#[test]
fn names_lead_from_directory_to_directory() {
    let mut conversation = conversation();
    let handle = code(op::GETFH);
    let parent = code(op::LOOKUPP);
    for (operations, object) in [
        (vec![code(op::PUTROOTFH)], 0),
        (vec![code(op::PUTPUBFH)], 0),
        (at(&[b"folder", b"inner"]), 3),
        (on(&[b"folder"], parent.clone()), 0),
        (vec![[code(op::PUTFH), handle_of(2)].concat(), look_up(b"inner")], 3),
        (
            vec![
                code(op::PUTROOTFH),
                code(op::SAVEFH),
                look_up(b"folder"),
                code(op::RESTOREFH),
                look_up(b"link"),
            ],
            4,
        ),
    ] {
        let answer =
            conversation.operations(&[operations.as_slice(), std::slice::from_ref(&handle)].concat());
        assert_eq!(answer.status, OK, "{operations:?}");
        assert!(answer.results.ends_with(&handle_of(object)));
    }
    let long = [b'n'; 256];
    for (operations, status) in [
        (at(&[b"missing"]), NOENT),
        (at(&[b""]), INVAL),
        (at(&[b"."]), BADNAME),
        (at(&[b".."]), BADNAME),
        (at(&[b"a/b"]), BADCHAR),
        (at(&[b"a\0"]), BADCHAR),
        (at(&[&long]), NAMETOOLONG),
        (at(&[b"file", b"x"]), NOTDIR),
        (at(&[b"link", b"inner"]), SYMLINK),
        (vec![code(op::PUTROOTFH), parent.clone()], NOENT),
        (on(&[b"file"], parent.clone()), NOTDIR),
        (on(&[b"link"], parent), SYMLINK),
        (vec![[code(op::PUTFH), text(b"nonsense")].concat()], BADHANDLE),
        (vec![[code(op::PUTFH), text(b"")].concat()], BADHANDLE),
        (vec![[code(op::PUTFH), text(&[0; 129])].concat()], BADXDR),
        (vec![[code(op::PUTFH), handle_of(99)].concat()], STALE),
        (vec![code(op::PUTROOTFH), code(op::RESTOREFH)], NOFILEHANDLE),
    ] {
        let answer = conversation.operations(&operations);
        assert_eq!((answer.status, answer.count), (status, operations.len() as u32 + 1), "{operations:?}");
    }
}

#[test]
fn without_an_object_nothing_is_done() {
    let mut conversation = conversation();
    let owner = [u64s(&[1]), text(b"owner")].concat();
    let open = [u32s(&[op::OPEN, 0, 1, 0]), owner.clone(), u32s(&[0, 4])].concat();
    for operation in [
        code(op::GETFH),
        code(op::SAVEFH),
        code(op::LOOKUPP),
        look_up(b"file"),
        code(op::READLINK),
        read(0, 1),
        read_directory(0, 0, 0, 1000, &[0]),
        u32s(&[op::ACCESS, 1]),
        u32s(&[op::GETATTR, 1, 2]),
        [u32s(&[op::VERIFY, 0]), text(b"")].concat(),
        [code(op::SECINFO), text(b"file")].concat(),
        u32s(&[op::SECINFO_NO_NAME, 0]),
        open,
        [u32s(&[op::CLOSE, 0]), vec![0; 16]].concat(),
        [u32s(&[op::LOCKT, 1]), u64s(&[0, 1]), owner].concat(),
        code(op::CREATE),
        code(op::REMOVE),
        code(op::WRITE),
    ] {
        let answer = conversation.operations(std::slice::from_ref(&operation));
        assert_eq!((answer.status, answer.count), (NOFILEHANDLE, 2), "{operation:?}");
    }
    // SECINFO uses it up.
    for secinfo in [[code(op::SECINFO), text(b"file")].concat(), u32s(&[op::SECINFO_NO_NAME, 0])] {
        let operations = [at(&[]), vec![secinfo, code(op::GETFH)]].concat();
        let answer = conversation.operations(&operations);
        assert_eq!((answer.status, answer.count), (NOFILEHANDLE, 4));
    }
}

#[test]
fn all_attributes_are_told_in_the_order_of_their_numbers() {
    let mut conversation = conversation();
    let answer =
        conversation.operations(&on(&[b"file"], u32s(&[op::GETATTR, 3, u32::MAX, 0xffbe_ffff, u32::MAX])));
    let mut results = answer.behind_sequence();
    results.take(16);
    assert_eq!((results.u32(), results.u32()), (op::GETATTR, OK));
    // 0 to 31 without 12, 14, 24 and 25; 33 to 37, 41 to 45, 47, 51 to 53, 55; 75.
    let words = [0xfcff_afff, 0x00b8_be3e, 0x800];
    assert_eq!(
        [results.u32(), results.u32(), results.u32(), results.u32()],
        [3, words[0], words[1], words[2]]
    );
    let values = results.text();
    assert!(results.is_empty());
    let limits = Limits::default();
    let expected = [
        u32s(&[3, words[0], words[1], words[2]]), // 0 supported_attrs
        u32s(&[1, 0]),                            // type, fh_expire_type
        u64s(&[0x0102_0304_0506_0708, 10]),       // change, size
        u32s(&[1, 1, 0]),                         // link_support, symlink_support, named_attr
        u64s(&[0xaaaa, 0xbb]),                    // fsid
        u32s(&[1, 90, 0, 0, 0]), // unique_handles, lease_time, rdattr_error, aclsupport, cansettime
        u32s(&[0, 1, 1]),        // case_insensitive, case_preserving, chown_restricted
        handle_of(1),
        u64s(&[101, 6, 5, 4]), // fileid, files_avail, files_free, files_total
        u32s(&[1]),            // homogeneous
        u64s(&[i64::MAX as u64]),
        u32s(&[65_000, 255]), // maxlink, maxname
        u64s(&[limits.read_bytes.into(), u64::from(limits.call_bytes) / 2]),
        u32s(&[0o644, 1, 1]), // mode, no_trunc, numlinks
        text(b"1000"),
        text(b"100"),
        u32s(&[0, 0]),            // rawdev
        u64s(&[3, 2, 1, 512, 1]), // space_avail, space_free, space_total, space_used, time_access
        u32s(&[2]),
        u64s(&[0]), // time_delta
        u32s(&[1]),
        u64s(&[-5_i64 as u64]), // time_metadata
        u32s(&[6]),
        u64s(&[3]), // time_modify
        u32s(&[4]),
        u64s(&[101]), // mounted_on_fileid
        u32s(&[0]),   // suppattr_exclcreat
    ];
    assert_eq!(values, expected.concat());
}

#[test]
fn attributes_are_compared() {
    let mut conversation = conversation();
    // size: 10
    let attributes = |size: u64| [u32s(&[1, 1 << 4]), text(&u64s(&[size]))].concat();
    for (operation, attributes, status) in [
        (op::VERIFY, attributes(10), OK),
        (op::VERIFY, attributes(11), NOT_SAME),
        (op::NVERIFY, attributes(10), SAME),
        (op::NVERIFY, attributes(11), OK),
        // acl, which there is not; rdattr_error; time_access_set.
        (op::VERIFY, [u32s(&[1, 1 << 12]), text(b"")].concat(), ATTRNOTSUPP),
        (op::NVERIFY, [u32s(&[1, 1 << 11]), text(&[0; 4])].concat(), INVAL),
        (op::VERIFY, [u32s(&[2, 0, 1 << 16]), text(b"")].concat(), INVAL),
    ] {
        let answer = conversation.operations(&on(&[b"file"], [code(operation), attributes.clone()].concat()));
        assert_eq!(answer.status, status, "{operation} {attributes:?}");
    }
    assert_eq!(conversation.operations(&on(&[b"file"], u32s(&[op::GETATTR, 2, 0, 1 << 16]))).status, INVAL);
    assert_eq!(conversation.operations(&on(&[b"file"], u32s(&[op::GETATTR, 0]))).status, OK);
}

#[test]
fn access_is_what_the_user_may_do() {
    let mut conversation = conversation();
    for (user, names, asked, granted) in [
        (1000, [b"folder".as_slice()], 0x3f, 0x3),
        (1000, [b"file"], 0x3f, 0x1),
        (1000, [b"file"], 0x1c, 0),
        (7, [b"file"], 0x1, 0),
        (7, [b"folder"], 0x2, 0),
    ] {
        conversation.credential = system(user);
        let answer = conversation.operations(&on(&names, u32s(&[op::ACCESS, asked])));
        assert!(answer.results.ends_with(&u32s(&[op::ACCESS, OK, asked, granted])), "{user} {names:?}");
    }
    conversation.credential = system(7);
    assert_eq!(conversation.operations(&on(&[b"file"], read(0, 1))).status, ACCESS);
}

#[test]
fn reads_end_with_the_file() {
    let mut conversation = conversation();
    for (offset, count, is_end, data) in [
        (0, 10, 1, b"0123456789".as_slice()),
        (0, 9, 0, b"012345678"),
        (9, 1, 1, b"9"),
        (0, 0, 0, b""),
        (10, 5, 1, b""),
        (11, 5, 1, b""),
        (u64::MAX, u32::MAX, 1, b""),
        (1, u32::MAX, 1, b"123456789"),
    ] {
        let answer = conversation.operations(&on(&[b"file"], read(offset, count)));
        let expected = [u32s(&[op::READ, OK, is_end]), text(data)].concat();
        assert!(answer.results.ends_with(&expected), "{offset} {count}: {answer:?}");
    }
    let answer = conversation.operations(&on(&[b"none"], read(0, 10)));
    assert!(answer.results.ends_with(&u32s(&[op::READ, OK, 1, 0])));
    for (name, status) in [(b"folder".as_slice(), ISDIR), (b"link", SYMLINK), (b"pipe", WRONG_TYPE)] {
        assert_eq!(conversation.operations(&on(&[name], read(0, 10))).status, status);
    }
}

#[test]
fn a_read_is_cut_to_what_the_reply_has_room_for() {
    let mut files = MemoryFiles::default();
    let content: Vec<u8> = (0..5000).map(|number| number as u8).collect();
    files.file(ROOT, b"large", &content);
    let mut conversation = Conversation::new(files);
    conversation.establish([0, 1024, 1001, 256, 8, 1]);
    let operations = on(&[b"large"], read(3, 5000));
    let answer = conversation.operations(&operations);
    let mut results = answer.behind_sequence();
    results.take(16);
    assert_eq!((results.u32(), results.u32(), results.u32()), (op::READ, OK, 0));
    let data = results.text();
    assert_eq!(data, &content[3..3 + data.len()]);
    let reply_bytes = answer.bytes.len() + 24;
    assert!(reply_bytes <= 1001 && reply_bytes > 990, "{reply_bytes}");
    // Something follows it, and has room, too.
    let operations = [operations, vec![code(op::PUTROOTFH), code(op::GETFH)]].concat();
    assert_eq!(conversation.operations(&operations).status, OK);
}

#[test]
fn links_are_read() {
    let mut conversation = conversation();
    let answer = conversation.operations(&on(&[b"link"], code(op::READLINK)));
    assert!(answer.results.ends_with(&[u32s(&[op::READLINK, OK]), text(b"folder/inner")].concat()));
    assert_eq!(conversation.operations(&on(&[b"file"], code(op::READLINK))).status, WRONG_TYPE);
}

#[test]
fn a_directory_is_read_in_parts_of_any_size() {
    let mut files = MemoryFiles::default();
    files.verifier = 7_u64.to_be_bytes();
    let names: Vec<_> =
        (0..100).map(|number| format!("entry-{number}-{}", "x".repeat(number)).into_bytes()).collect();
    for name in &names {
        files.file(ROOT, name, b"");
    }
    let mut conversation = with(files);
    for (wanted, most) in [
        (&[][..], 150),
        (&[1 << 11, 1 << 23][..], 170),
        (&[0x0010_0112, 0x0010_011a], 300),
        (&[0x0018_091a, 0x00b0_a23a], 400),
        (&[0x0018_091a, 0x00b0_a23a], 1 << 20),
    ] {
        for names_bytes in [0, 1, 200, u32::MAX] {
            let (mut after, mut verifier, mut found) = (0, 0, Vec::new());
            loop {
                let operation = read_directory(after, verifier, names_bytes, most, wanted);
                let answer = conversation.operations(&[code(op::PUTROOTFH), operation]);
                assert_eq!(answer.status, OK, "{wanted:?} {most} {after}");
                let mut results = answer.behind_sequence();
                results.take(16);
                assert!(results.0.len() <= most as usize);
                let (new_verifier, part, is_end) = entries(results);
                verifier = new_verifier;
                assert!(!part.is_empty());
                after = part[part.len() - 1].0;
                found.extend(part.into_iter().map(|(_, name)| name));
                if is_end {
                    break;
                }
            }
            assert_eq!(found, names, "{wanted:?} {most} {names_bytes}");
        }
    }
    // What names and cookies take is bounded by itself: 8 and 4 bytes, and 8, 9 and 10 of the first three names.
    for (names_bytes, count) in [(1, 1), (20, 1), (40, 1), (41, 2), (62, 2), (63, 3)] {
        let operation = read_directory(0, 0, names_bytes, 1 << 20, &[]);
        let answer = conversation.operations(&[code(op::PUTROOTFH), operation]);
        let mut results = answer.behind_sequence();
        results.take(16);
        let (_, part, is_end) = entries(results);
        assert_eq!((part.len(), is_end), (count, false), "{names_bytes}");
    }
    for (operation, status) in [
        (read_directory(1, 7, 0, 1000, &[0]), BAD_COOKIE),
        (read_directory(2, 7, 0, 1000, &[0]), BAD_COOKIE),
        (read_directory(3, 8, 0, 1000, &[0]), BAD_COOKIE),
        (read_directory(3, 7, 0, 1000, &[0]), OK),
        (read_directory(0, 0, 0, 0, &[0]), TOOSMALL),
        (read_directory(0, 0, 0, 15, &[0]), TOOSMALL),
        (read_directory(0, 0, 0, 40, &[0]), TOOSMALL),
        (read_directory(0, 0, 0, 1000, &[0, 1 << 16]), INVAL),
    ] {
        let answer = conversation.operations(&[code(op::PUTROOTFH), operation.clone()]);
        assert_eq!(answer.status, status, "{operation:?}");
    }
}

#[test]
fn an_entry_that_cannot_be_told_does_not_hide_the_others() {
    let mut files = MemoryFiles::sample();
    files.break_object(1, Fault::Failed);
    files.break_object(4, Fault::Stale);
    let mut conversation = with(files);
    // type and rdattr_error: the link has gone, and the file says why not.
    let operation = read_directory(0, 0, 0, 4096, &[1 << 11 | 1 << 1]);
    let answer = conversation.operations(&[code(op::PUTROOTFH), operation]);
    let mut results = answer.behind_sequence();
    results.take(16 + 8);
    assert_eq!((results.u32(), results.u64(), results.text()), (1, 3, b"file".as_slice()));
    assert_eq!((results.u32(), results.u32(), results.text()), (1, 1 << 11, u32s(&[IO]).as_slice()));
    let mut whole = answer.behind_sequence();
    whole.take(16);
    let names: Vec<_> = entries(whole).1.into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, [b"file".as_slice(), b"folder", b"pipe", b"none"]);
    // Without rdattr_error there is no room for a reason.
    let operation = read_directory(0, 0, 0, 4096, &[1 << 1]);
    assert_eq!(conversation.operations(&[code(op::PUTROOTFH), operation]).status, IO);
    let on_a_file = read_directory(0, 0, 0, 4096, &[0]);
    assert_eq!(conversation.operations(&on(&[b"pipe"], on_a_file)).status, NOTDIR);
}

/// Linux' client asks for type, rdattr_error and mounted_on_fileid of names that it was asked to list.
#[test]
fn what_a_directory_tells_of_its_entries_is_not_looked_up() {
    let mut files = MemoryFiles::sample();
    files.tells_kinds = true;
    let broken: Vec<_> = (1..=6).filter(|object| *object != 3).collect();
    for &object in &broken {
        files.break_object(object, Fault::Failed);
    }
    let mut conversation = with(files);
    let operation = read_directory(0, 0, 0, 4096, &[1 << 11 | 1 << 1, 1 << 23]);
    let answer = conversation.operations(&[code(op::PUTROOTFH), operation]);
    assert_eq!(answer.status, OK);
    let mut results = answer.behind_sequence();
    results.take(16 + 8);
    for (name, object, kind) in
        [(b"file".as_slice(), 1, Some(1)), (b"folder", 2, None), (b"link", 4, Some(5)), (b"pipe", 5, Some(7))]
    {
        assert_eq!((results.u32(), results.u64() > 2, results.text()), (1, true, name));
        let told = match kind {
            Some(kind) => {
                assert_eq!((results.u32(), results.u32(), results.u32()), (2, 1 << 11 | 1 << 1, 1 << 23));
                [u32s(&[kind, 0]), u64s(&[object + 100])].concat()
            }
            // A directory is looked up, and this one cannot be told.
            None => {
                assert_eq!((results.u32(), results.u32()), (1, 1 << 11));
                u32s(&[IO])
            }
        };
        assert_eq!(results.text(), told, "{name:?}");
    }
    // The size is in no directory.
    let operation = read_directory(0, 0, 0, 4096, &[1 << 4 | 1 << 1]);
    assert_eq!(conversation.operations(&[code(op::PUTROOTFH), operation]).status, IO);
}

#[test]
fn names_that_no_client_can_take_are_not_shown() {
    let mut files = MemoryFiles::default();
    for name in [b"".as_slice(), b".", b"..", b"a/b", &[b'n'; 256], b"good"] {
        files.file(ROOT, name, b"");
    }
    let mut conversation = with(files);
    let answer = conversation.operations(&[code(op::PUTROOTFH), read_directory(0, 0, 0, 4096, &[])]);
    let mut results = answer.behind_sequence();
    results.take(16);
    assert_eq!(entries(results), (0, vec![(8, b"good".to_vec())], true));
}

/// OPEN with these shares, kind of creation, and claim.
fn open(access: u32, deny: u32, how: &[u8], claim: &[u8]) -> Vec<u8> {
    let owner = [u64s(&[1]), text(b"owner")].concat();
    [u32s(&[op::OPEN, 0, access, deny]), owner, how.to_vec(), claim.to_vec()].concat()
}

#[test]
fn files_are_opened_for_reading_alone() {
    let mut conversation = conversation();
    let no_create = u32s(&[0]);
    // UNCHECKED4 and GUARDED4 with mode 0644, EXCLUSIVE4, EXCLUSIVE4_1.
    let attributes = [u32s(&[2, 0, 2]), text(&u32s(&[0o644]))].concat();
    let unchecked = [u32s(&[1, 0]), attributes.clone()].concat();
    let guarded = [u32s(&[1, 1]), attributes.clone()].concat();
    let exclusive = [u32s(&[1, 2]), u64s(&[5])].concat();
    let exclusive_1 = [u32s(&[1, 3]), u64s(&[5]), attributes].concat();
    let named = |name: &[u8]| [u32s(&[0]), text(name)].concat();
    let file = named(b"file");
    let missing = named(b"missing");
    for (operation, status) in [
        (open(1, 0, &no_create, &file), OK),
        (open(1, 2, &no_create, &file), OK),
        // Wishes for delegations.
        (open(0x1_0401, 0, &no_create, &file), OK),
        (open(1, 1, &no_create, &file), SHARE_DENIED),
        (open(1, 3, &no_create, &file), SHARE_DENIED),
        (open(1, 4, &no_create, &file), INVAL),
        (open(0, 0, &no_create, &file), INVAL),
        (open(5, 0, &no_create, &file), INVAL),
        (open(2, 0, &no_create, &file), ROFS),
        (open(3, 0, &no_create, &file), ROFS),
        (open(1, 0, &unchecked, &file), OK),
        (open(2, 0, &unchecked, &file), ROFS),
        (open(1, 0, &guarded, &file), EXIST),
        (open(1, 0, &exclusive, &file), EXIST),
        (open(1, 0, &exclusive_1, &file), EXIST),
        (open(1, 0, &no_create, &missing), NOENT),
        (open(1, 0, &unchecked, &missing), ROFS),
        (open(1, 0, &guarded, &missing), ROFS),
        (open(1, 0, &exclusive, &missing), ROFS),
        (open(1, 0, &u32s(&[2]), &file), BADXDR),
        (open(1, 0, &u32s(&[1, 4]), &file), BADXDR),
        (open(1, 0, &no_create, &named(b"folder")), ISDIR),
        (open(1, 0, &no_create, &named(b"link")), SYMLINK),
        (open(1, 0, &no_create, &named(b"pipe")), WRONG_TYPE),
        (open(1, 0, &no_create, &named(b"..")), BADNAME),
        (open(1, 0, &no_create, &u32s(&[2])), NOTSUPP),
        (open(1, 0, &no_create, &u32s(&[5])), NOTSUPP),
        (open(1, 0, &no_create, &u32s(&[7])), BADXDR),
        // CLAIM_FH of the root.
        (open(1, 0, &no_create, &u32s(&[4])), ISDIR),
    ] {
        let answer = conversation.operations(&[code(op::PUTROOTFH), operation.clone()]);
        assert_eq!(answer.status, status, "{operation:?}");
    }
    assert_eq!(conversation.operations(&on(&[b"file"], open(1, 0, &no_create, &u32s(&[4])))).status, OK);
    conversation.credential = system(7);
    let denied = conversation.operations(&[code(op::PUTROOTFH), open(1, 0, &no_create, &file)]);
    assert_eq!(denied.status, ACCESS);
}

#[test]
fn an_open_file_is_the_current_object_and_its_stateid_is_known() {
    let mut conversation = conversation();
    let by_name = open(1, 0, &u32s(&[0]), &[u32s(&[0]), text(b"file")].concat());
    let answer = conversation.operations(&[code(op::PUTROOTFH), by_name, code(op::GETFH)]);
    let mut results = answer.behind_sequence();
    results.take(8);
    assert_eq!((results.u32(), results.u32(), results.u32()), (op::OPEN, OK, 1));
    let other = results.take(12).to_vec();
    // Atomic, the directory's change twice, LOCKTYPE_POSIX, no attributes, no delegation.
    let change = 0x0102_0304_0506_0708;
    assert_eq!(results.take(4 + 16), [u32s(&[1]), u64s(&[change, change])].concat());
    assert_eq!(results.take(12), u32s(&[4, 0, 0]));
    assert_eq!(results.0, [u32s(&[op::GETFH, OK]), handle_of(1)].concat());

    let state_id = [u32s(&[1]), other].concat();
    let test = |ids: &[&[u8]]| [u32s(&[op::TEST_STATEID, ids.len() as u32]), ids.concat()].concat();
    let stranger = [9; 16];
    let answer = conversation.operations(&[test(&[&state_id, &stranger, &[0; 16]])]);
    assert!(answer.results.ends_with(&u32s(&[op::TEST_STATEID, OK, 3, OK, BAD_STATEID, BAD_STATEID])));
    let free = |id: &[u8]| [code(op::FREE_STATEID), id.to_vec()].concat();
    assert_eq!(conversation.operations(&[free(&state_id)]).status, OK);
    assert_eq!(conversation.operations(&[free(&stranger)]).status, BAD_STATEID);
    let many = [u32s(&[op::TEST_STATEID, u32::MAX]), state_id.clone()].concat();
    assert_eq!(conversation.operations(&[many]).status, BADXDR);

    let downgrade = |access| [code(op::OPEN_DOWNGRADE), state_id.clone(), u32s(&[0, access, 0])].concat();
    let answer = conversation.operations(&on(&[b"file"], downgrade(1)));
    assert!(answer.results.ends_with(&[u32s(&[op::OPEN_DOWNGRADE, OK, 2]), state_id[4..].to_vec()].concat()));
    assert_eq!(conversation.operations(&on(&[b"file"], downgrade(3))).status, INVAL);
    let close = [u32s(&[op::CLOSE, 0]), state_id].concat();
    let answer = conversation.operations(&on(&[b"file"], close));
    assert!(answer.results.ends_with(&[u32s(&[op::CLOSE, OK, u32::MAX]), vec![0; 12]].concat()));
}

#[test]
fn opens_of_before_a_restart_are_claimed_until_that_is_complete() {
    let mut conversation = conversation();
    // CLAIM_PREVIOUS without a delegation.
    let reclaim = on(&[b"file"], open(1, 0, &u32s(&[0]), &u32s(&[1, 0])));
    assert_eq!(conversation.operations(&reclaim).status, OK);
    assert_eq!(conversation.operations(&[u32s(&[op::RECLAIM_COMPLETE, 0])]).status, OK);
    assert_eq!(conversation.operations(&reclaim).status, NO_GRACE);
}

#[test]
fn readers_lock_and_writers_do_not() {
    let mut conversation = conversation();
    let owner = [u64s(&[1]), text(b"owner")].concat();
    let lock = |kind: u32, offset: u64, length: u64| {
        let new_owner = [u32s(&[1, 0]), vec![3; 16], u32s(&[0]), owner.clone()].concat();
        [u32s(&[op::LOCK, kind, 0]), u64s(&[offset, length]), new_owner].concat()
    };
    for (name, operation, status) in [
        (b"file".as_slice(), lock(1, 0, 5), OK),
        (b"file", lock(3, 5, u64::MAX), OK),
        (b"file", lock(2, 0, 5), OPENMODE),
        (b"file", lock(4, 0, 5), OPENMODE),
        (b"file", lock(5, 0, 5), BADXDR),
        (b"file", lock(1, 0, 0), INVAL),
        (b"file", lock(1, u64::MAX, 2), INVAL),
        (b"folder", lock(1, 0, 5), ISDIR),
        (b"link", lock(1, 0, 5), SYMLINK),
        (b"file", [u32s(&[op::LOCKT, 1]), u64s(&[0, 5]), owner.clone()].concat(), OK),
        (b"file", [u32s(&[op::LOCKU, 1, 0, 1]), vec![3; 12], u64s(&[0, 5])].concat(), OK),
    ] {
        let answer = conversation.operations(&on(&[name], operation.clone()));
        assert_eq!(answer.status, status, "{operation:?}");
    }
    // A lock that there is keeps its name.
    let again = [u32s(&[op::LOCK, 1, 0]), u64s(&[7, 1]), u32s(&[0, 4]), vec![5; 12], u32s(&[0])].concat();
    let answer = conversation.operations(&on(&[b"file"], again));
    assert!(answer.results.ends_with(&[u32s(&[op::LOCK, OK, 5]), vec![5; 12]].concat()));
}

#[test]
fn nothing_is_written() {
    let mut conversation = conversation();
    for operation in [5, 6, 11, 28, 29, 34, 38, 59, 60, 62, 70, 71, 73, 75] {
        // LINK, RENAME, COPY and CLONE are about the saved object, too.
        if [11, 29, 60, 71].contains(&operation) {
            let answer = conversation.operations(&on(&[b"file"], u32s(&[operation])));
            assert_eq!(answer.status, NOFILEHANDLE, "{operation}");
        }
        let operations = [at(&[b"file"]), vec![code(op::SAVEFH), u32s(&[operation])]].concat();
        let answer = conversation.operations(&operations);
        assert_eq!(answer.status, ROFS, "{operation}");
        // SETATTR names what it has set.
        let rest: &[u32] = if operation == op::SETATTR { &[operation, ROFS, 0] } else { &[operation, ROFS] };
        assert!(answer.results.ends_with(&u32s(rest)), "{operation}");
    }
}

#[test]
fn what_there_is_not() {
    let mut conversation = conversation();
    for (minor_version, operation, status) in [
        (2, op::READ_PLUS, NOTSUPP),
        (2, op::SEEK, NOTSUPP),
        (1, op::SEEK, OP_ILLEGAL),
        (1, op::ALLOCATE, OP_ILLEGAL),
        (2, 76, OP_ILLEGAL),
        (2, 2, OP_ILLEGAL),
        (2, u32::MAX, OP_ILLEGAL),
        (2, op::GET_DIR_DELEGATION, NOTSUPP),
        (1, 50, NOTSUPP),
        (1, op::RENEW, NOTSUPP),
    ] {
        conversation.minor_version = minor_version;
        let answer = conversation.operations(&on(&[b"file"], u32s(&[operation])));
        assert_eq!((answer.status, answer.count), (status, 4), "{operation}");
        let number = if status == OP_ILLEGAL { OP_ILLEGAL } else { operation };
        assert!(answer.results.ends_with(&u32s(&[number, status])), "{operation}");
    }
}

#[test]
fn security_is_asked_for() {
    let mut conversation = conversation();
    // AUTH_SYS, then AUTH_NONE.
    for operation in [
        [code(op::SECINFO), text(b"inner")].concat(),
        u32s(&[op::SECINFO_NO_NAME, 0]),
        u32s(&[op::SECINFO_NO_NAME, 1]),
    ] {
        let answer = conversation.operations(&on(&[b"folder"], operation.clone()));
        assert!(answer.results.ends_with(&u32s(&[OK, 2, 1, 0])), "{operation:?}");
    }
    let missing = [code(op::SECINFO), text(b"missing")].concat();
    assert_eq!(conversation.operations(&on(&[b"folder"], missing)).status, NOENT);
    assert_eq!(
        conversation.operations(&[code(op::PUTROOTFH), u32s(&[op::SECINFO_NO_NAME, 1])]).status,
        NOENT
    );
    assert_eq!(conversation.operations(&on(&[b"folder"], u32s(&[op::SECINFO_NO_NAME, 2]))).status, BADXDR);
}

#[test]
fn what_the_file_system_says_is_passed_on() {
    for (fault, status) in [
        (Fault::Stale, STALE),
        (Fault::Denied, ACCESS),
        (Fault::WrongSecurity, WRONGSEC),
        (Fault::Busy, DELAY),
        (Fault::Failed, IO),
        (Fault::NameTooLong, NAMETOOLONG),
    ] {
        let mut files = MemoryFiles::sample();
        files.break_object(1, fault);
        let mut conversation = with(files);
        let answer = conversation.operations(&on(&[b"file"], u32s(&[op::GETATTR, 1, 2])));
        assert_eq!(answer.status, status, "{fault}");
    }
    // It may not wait for ever.
    let mut files = MemoryFiles::sample();
    files.break_object(1, Fault::WouldWait);
    let mut conversation = with(files);
    let transaction = conversation.next_transaction();
    let sequence = conversation.sequence(1, 0, false);
    let operations = [vec![sequence], on(&[b"file"], u32s(&[op::ACCESS, 1]))].concat();
    let record = support::call(transaction, &system(1), [100_003, 4, 1], &support::compound(2, &operations));
    // SYSTEM_ERR
    assert_eq!(conversation.send(&record)[20..], u32s(&[5]));
}

#[test]
fn the_example_tree_is_what_the_tests_take_it_for() {
    let files = MemoryFiles::sample();
    let client = support::client();
    let identity = linerate_nfs::Identity::Nobody;
    let caller = linerate_nfs::Caller {
        client: &client,
        identity: &identity,
        waiting: linerate_nfs::Waiting::Allowed,
        is_mount: false,
    };
    let kinds: Vec<_> = (0..7).map(|object| files.attributes(&caller, &object).unwrap().kind).collect();
    let [directory, file] = [Kind::Directory, Kind::File];
    assert_eq!(kinds, [directory, file, directory, file, Kind::SymbolicLink, Kind::Pipe, file]);
}
