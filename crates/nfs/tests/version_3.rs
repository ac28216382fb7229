//! Version 3 and MOUNT, byte by byte as RFC 1813 has them.

mod support;

use linerate_nfs::{Fault, Handle};
use support::{
    Conversation,
    bytes::{Bytes, text, u32s, u64s},
    call,
    memory::{MemoryFiles, ROOT},
    system,
};

const OK: u32 = 0;
const NOENT: u32 = 2;
const IO: u32 = 5;
const ACCES: u32 = 13;
const NOTDIR: u32 = 20;
const ISDIR: u32 = 21;
const INVAL: u32 = 22;
const ROFS: u32 = 30;
const NAMETOOLONG: u32 = 63;
const STALE: u32 = 70;
const BADHANDLE: u32 = 10001;
const BAD_COOKIE: u32 = 10003;
const TOOSMALL: u32 = 10005;
const SERVERFAULT: u32 = 10006;
const JUKEBOX: u32 = 10008;

const NFS: u32 = 100_003;
const MOUNT: u32 = 100_005;

/// The results of a procedure.
fn called(conversation: &Conversation, program: u32, procedure: u32, arguments: &[u8]) -> Vec<u8> {
    let reply = conversation.send(&call(7, &conversation.credential, [program, 3, procedure], arguments));
    reply.strip_prefix(u32s(&[7, 1, 0, 0, 0, 0]).as_slice()).expect("it is accepted").to_vec()
}

fn nfs(conversation: &Conversation, procedure: u32, arguments: &[u8]) -> Vec<u8> {
    called(conversation, NFS, procedure, arguments)
}

fn handle(object: u32) -> Vec<u8> {
    text(&[b"obj:".as_slice(), &object.to_be_bytes()].concat())
}

/// `fattr3` of the tree's objects: type, mode 0644, one link, user 1000, group 100, size, used, rdev, fsid, fileid, three times.
fn attributes(kind: u32, size: u64, number: u64) -> Vec<u8> {
    [
        u32s(&[kind, 0o644, 1, 1000, 100]),
        u64s(&[size, 512]),
        u32s(&[0, 0]),
        u64s(&[0xaaaa ^ 0xbb, number]),
        // The last lies before 1970, which version 3 has no number for.
        u32s(&[1, 2, 3, 4, 0, 6]),
    ]
    .concat()
}

/// `post_op_attr`
fn known(attributes: Vec<u8>) -> Vec<u8> {
    [u32s(&[1]), attributes].concat()
}

const REGULAR: u32 = 1;
const DIRECTORY: u32 = 2;
const LINK: u32 = 5;

fn root() -> Vec<u8> {
    attributes(DIRECTORY, 5, 100)
}

fn file() -> Vec<u8> {
    attributes(REGULAR, 10, 101)
}

#[test]
fn each_procedure_answers_as_the_rfc_has_it() {
    let conversation = Conversation::new(MemoryFiles::sample());
    let limits = linerate_nfs::Limits::default();
    for (procedure, arguments, expected) in [
        // GETATTR
        (1, handle(1), [u32s(&[OK]), file()].concat()),
        // LOOKUP: handle, its attributes, the directory's.
        (
            3,
            [handle(0), text(b"file")].concat(),
            [u32s(&[OK]), handle(1), known(file()), known(root())].concat(),
        ),
        (
            3,
            [handle(0), text(b"..")].concat(),
            [u32s(&[OK]), handle(0), known(root()), known(root())].concat(),
        ),
        (
            3,
            [handle(2), text(b".")].concat(),
            [
                u32s(&[OK]),
                handle(2),
                known(attributes(DIRECTORY, 1, 102)),
                known(attributes(DIRECTORY, 1, 102)),
            ]
            .concat(),
        ),
        // ACCESS: nobody may write.
        (4, [handle(0), u32s(&[0x3f])].concat(), [u32s(&[OK]), known(root()), u32s(&[0x3])].concat()),
        // READLINK
        (5, handle(4), [u32s(&[OK]), known(attributes(LINK, 12, 104)), text(b"folder/inner")].concat()),
        // READ: count, end, data.
        (
            6,
            [handle(1), u64s(&[3]), u32s(&[5])].concat(),
            [u32s(&[OK]), known(file()), u32s(&[5, 0]), text(b"34567")].concat(),
        ),
        (
            6,
            [handle(1), u64s(&[8]), u32s(&[500])].concat(),
            [u32s(&[OK]), known(file()), u32s(&[2, 1]), text(b"89")].concat(),
        ),
        (
            6,
            [handle(1), u64s(&[u64::MAX]), u32s(&[500])].concat(),
            [u32s(&[OK]), known(file()), u32s(&[0, 1]), text(b"")].concat(),
        ),
        // FSSTAT
        (18, handle(0), [u32s(&[OK]), known(root()), u64s(&[1, 2, 3, 4, 5, 6]), u32s(&[0])].concat()),
        // FSINFO
        (
            19,
            handle(0),
            [
                u32s(&[OK]),
                known(root()),
                u32s(&[limits.read_bytes, limits.read_bytes, 4096]),
                u32s(&[limits.call_bytes / 2, limits.call_bytes / 2, 4096, limits.reply_bytes]),
                u64s(&[i64::MAX as u64]),
                u32s(&[0, 1, 0xb]),
            ]
            .concat(),
        ),
        // PATHCONF
        (20, handle(0), [u32s(&[OK]), known(root()), u32s(&[65_000, 255, 1, 1, 0, 1])].concat()),
    ] {
        assert_eq!(nfs(&conversation, procedure, &arguments), expected, "{procedure}");
    }
}

#[test]
fn what_fails_says_why_and_how_the_object_is() {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    let long = [b'n'; 256];
    let read = |object| [handle(object), u64s(&[0]), u32s(&[5])].concat();
    let pipe = attributes(7, 0, 105);
    for (procedure, arguments, status, of) in [
        (1, text(b"nonsense"), BADHANDLE, None),
        (1, handle(99), STALE, None),
        (3, [handle(0), text(b"missing")].concat(), NOENT, Some(known(root()))),
        (3, [handle(0), text(b"")].concat(), INVAL, Some(known(root()))),
        (3, [handle(0), text(b"a/b")].concat(), INVAL, Some(known(root()))),
        (3, [handle(0), text(&long)].concat(), NAMETOOLONG, Some(known(root()))),
        (3, [handle(1), text(b"x")].concat(), NOTDIR, Some(known(file()))),
        (3, [handle(99), text(b"x")].concat(), STALE, Some(u32s(&[0]))),
        (5, handle(1), INVAL, Some(known(file()))),
        (6, read(0), ISDIR, Some(known(root()))),
        (6, read(5), INVAL, Some(known(pipe))),
        (16, [handle(1), u64s(&[0, 0]), u32s(&[1000])].concat(), NOTDIR, Some(known(file()))),
    ] {
        let expected = [u32s(&[status]), of.unwrap_or_default()].concat();
        assert_eq!(nfs(&conversation, procedure, &arguments), expected, "{procedure} {status}");
    }
    conversation.credential = system(7);
    assert_eq!(nfs(&conversation, 6, &read(1)), [u32s(&[ACCES]), known(file())].concat());

    for (fault, status) in [
        (Fault::Failed, IO),
        (Fault::Busy, JUKEBOX),
        (Fault::WrongSecurity, ACCES),
        (Fault::Denied, ACCES),
        (Fault::Stale, STALE),
    ] {
        let mut files = MemoryFiles::sample();
        files.break_object(1, fault);
        let conversation = Conversation::new(files);
        assert_eq!(nfs(&conversation, 1, &handle(1)), u32s(&[status]), "{fault}");
        assert_eq!(nfs(&conversation, 4, &[handle(1), u32s(&[1])].concat()), u32s(&[status, 0]), "{fault}");
    }
}

#[test]
fn arguments_that_cannot_be_read_are_told_apart_from_what_fails() {
    let conversation = Conversation::new(MemoryFiles::sample());
    for (procedure, arguments) in [
        (1, vec![]),
        (1, text(&[1; 65])),
        (3, handle(0)),
        (6, [handle(1), u64s(&[0])].concat()),
        (16, handle(0)),
        (17, [handle(0), u64s(&[0, 0]), u32s(&[1])].concat()),
    ] {
        let reply = conversation.send(&call(7, &system(1), [NFS, 3, procedure], &arguments));
        // GARBAGE_ARGS
        assert_eq!(reply, u32s(&[7, 1, 0, 0, 0, 4]), "{procedure}");
    }
    let reply = conversation.send(&call(7, &system(1), [MOUNT, 3, 1], &text(&[b'/'; 1025])));
    assert_eq!(reply, u32s(&[7, 1, 0, 0, 0, 4]));
}

#[test]
fn nothing_is_written() {
    let conversation = Conversation::new(MemoryFiles::sample());
    for (procedure, booleans) in
        [(2, 2), (7, 2), (8, 2), (9, 2), (10, 2), (11, 2), (12, 2), (13, 2), (14, 4), (15, 3), (21, 2)]
    {
        let expected = [u32s(&[ROFS]), vec![0; 4 * booleans]].concat();
        assert_eq!(nfs(&conversation, procedure, &handle(1)), expected, "{procedure}");
    }
}

/// An entry's number, name and cookie.
type Listed = (u64, Vec<u8>, u64);

/// A listing's verifier; its entries; whether that is the end.
fn listed(results: &[u8], is_plus: bool) -> (u64, Vec<Listed>, bool) {
    let mut results = Bytes(results);
    assert_eq!((results.u32(), results.u32()), (OK, 1));
    results.take(84);
    let verifier = results.u64();
    let mut entries = Vec::new();
    while results.u32() == 1 {
        let (number, name, cookie) = (results.u64(), results.text().to_vec(), results.u64());
        entries.push((number, name, cookie));
        if is_plus {
            if results.u32() == 1 {
                results.take(44);
                assert_eq!(results.u64(), 0xaaaa ^ 0xbb);
                assert_eq!(results.u64(), number);
                results.take(24);
            }
            if results.u32() == 1 {
                assert_eq!(results.text()[..4], *b"obj:");
            }
        }
    }
    let is_end = results.u32() == 1;
    assert!(results.is_empty());
    (verifier, entries, is_end)
}

#[test]
fn a_directory_begins_with_itself_and_the_one_above() {
    let conversation = Conversation::new(MemoryFiles::sample());
    let expected = [(102, b".".to_vec(), 1), (100, b"..".to_vec(), 2), (103, b"inner".to_vec(), 3)];
    let results = nfs(&conversation, 16, &[handle(2), u64s(&[0, 0]), u32s(&[1000])].concat());
    assert_eq!(listed(&results, false), (0, expected.to_vec(), true));
    let results = nfs(&conversation, 17, &[handle(2), u64s(&[0, 0]), u32s(&[1000, 2000])].concat());
    assert_eq!(listed(&results, true), (0, expected.to_vec(), true));
    // From any of their cookies on.
    for after in 1..=3 {
        let results = nfs(&conversation, 16, &[handle(2), u64s(&[after, 0]), u32s(&[1000])].concat());
        assert_eq!(listed(&results, false).1, expected[after as usize..]);
    }
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
    let conversation = Conversation::new(files);
    for (is_plus, sizes) in [(false, [240, 400, 1 << 20]), (true, [360, 800, 1 << 20])] {
        for most in sizes {
            for names_bytes in [1, 300, u32::MAX] {
                let (mut after, mut verifier, mut found) = (0, 0, Vec::new());
                loop {
                    let place = [handle(0), u64s(&[after, verifier])].concat();
                    let results = if is_plus {
                        nfs(&conversation, 17, &[place, u32s(&[names_bytes, most])].concat())
                    } else {
                        nfs(&conversation, 16, &[place, u32s(&[most])].concat())
                    };
                    assert!(results.len() <= most as usize, "{} of {most}", results.len());
                    let (new_verifier, part, is_end) = listed(&results, is_plus);
                    verifier = new_verifier;
                    after = part[part.len() - 1].2;
                    found.extend(part.into_iter().map(|(_, name, _)| name));
                    if is_end {
                        break;
                    }
                }
                assert_eq!(found[..2], [b".".to_vec(), b"..".to_vec()]);
                assert_eq!(found[2..], names, "{is_plus} {most} {names_bytes}");
            }
        }
    }
    for (procedure, arguments, status) in [
        (16, [u64s(&[3, 8]), u32s(&[1000])].concat(), BAD_COOKIE),
        (16, [u64s(&[0, 0]), u32s(&[100])].concat(), TOOSMALL),
        (16, [u64s(&[50, 7]), u32s(&[130])].concat(), TOOSMALL),
        (17, [u64s(&[50, 7]), u32s(&[1000, 200])].concat(), TOOSMALL),
    ] {
        let results = nfs(&conversation, procedure, &[handle(0), arguments].concat());
        assert_eq!(Bytes(&results).u32(), status, "{procedure}");
    }
}

#[test]
fn an_entry_that_cannot_be_told_has_its_name_alone() {
    let mut files = MemoryFiles::sample();
    files.break_object(1, Fault::Failed);
    files.break_object(4, Fault::Stale);
    let conversation = Conversation::new(files);
    let results = nfs(&conversation, 17, &[handle(0), u64s(&[2, 0]), u32s(&[4000, 4000])].concat());
    let names: Vec<_> = listed(&results, true).1.into_iter().map(|(_, name, _)| name).collect();
    assert_eq!(names, [b"file".as_slice(), b"folder", b"link", b"pipe", b"none"]);
}

#[test]
fn a_path_is_mounted() {
    let conversation = Conversation::new(MemoryFiles::sample());
    let mounted = |path: &[u8]| called(&conversation, MOUNT, 1, &text(path));
    for (path, object) in
        [(b"/".as_slice(), 0), (b"", 0), (b"/folder", 2), (b"folder/", 2), (b"//./folder//", 2)]
    {
        // The handle; AUTH_SYS and AUTH_NONE.
        let expected = [u32s(&[OK]), handle(object), u32s(&[2, 1, 0])].concat();
        assert_eq!(mounted(path), expected, "{}", path.escape_ascii());
    }
    let long = [b"/".as_slice(), &[b'n'; 256]].concat();
    for (path, status) in [
        (b"/missing".as_slice(), NOENT),
        (b"/file", NOTDIR),
        (b"/file/x", NOTDIR),
        (b"/folder/..", INVAL),
        (&long, NAMETOOLONG),
    ] {
        assert_eq!(mounted(path), u32s(&[status]), "{}", path.escape_ascii());
    }
    // DUMP, UMNT, UMNTALL, EXPORT
    assert_eq!(called(&conversation, MOUNT, 2, b""), u32s(&[0]));
    assert_eq!(called(&conversation, MOUNT, 3, &text(b"/")), b"");
    assert_eq!(called(&conversation, MOUNT, 4, b""), b"");
    let expected = [u32s(&[1]), text(b"/"), u32s(&[0, 1]), text(b"/folder"), u32s(&[0, 0])].concat();
    assert_eq!(called(&conversation, MOUNT, 5, b""), expected);
}

#[test]
fn handles_that_version_3_has_no_room_for() {
    let mut files = MemoryFiles::sample();
    files.handle_bytes = Handle::V3_LIMIT_BYTES;
    let mut conversation = Conversation::new(files);
    let mounted = called(&conversation, MOUNT, 1, &text(b"/"));
    assert_eq!(Bytes(&mounted).u32(), OK);
    conversation.files.handle_bytes = Handle::V3_LIMIT_BYTES + 1;
    assert_eq!(called(&conversation, MOUNT, 1, &text(b"/")), u32s(&[SERVERFAULT]));
    let looked_up = nfs(&conversation, 3, &[handle(0), text(b"file")].concat());
    assert_eq!(looked_up, [u32s(&[SERVERFAULT]), known(root())].concat());
    // A listing does without.
    let listing = nfs(&conversation, 17, &[handle(0), u64s(&[0, 0]), u32s(&[4000, 4000])].concat());
    assert_eq!(listed(&listing, true).1.len(), 7);
}

#[test]
fn what_is_cold_is_evaluated_again() {
    let conversation = Conversation::new(MemoryFiles::sample());
    conversation.files.is_cold.set(true);
    for (number, (program, procedure, arguments)) in [
        (NFS, 1, handle(1)),
        (NFS, 6, [handle(1), u64s(&[0]), u32s(&[5])].concat()),
        (NFS, 17, [handle(0), u64s(&[0, 0]), u32s(&[4000, 4000])].concat()),
        (MOUNT, 1, text(b"/folder")),
    ]
    .into_iter()
    .enumerate()
    {
        let results = called(&conversation, program, procedure, &arguments);
        assert_eq!(Bytes(&results).u32(), OK);
        assert_eq!(conversation.files.waited.get() as usize, number + 1);
    }
}
