//! File handles: only what the server has named is found by one, and what it names is found, however its ancestors' bits lie.

use crate::{Verdict, damaged};
use aws_lc_rs::hmac;
use linerate_export::{ClientRule, Export, ExportOptions, Exports, HandleKey, IdentityRule, TlsRule};
use linerate_nfs::{Caller, Client, Fault, FileSystem, Handle, Identity, Name, Waiting};
use std::{fs, sync::OnceLock};
use tempfile::TempDir;

const KEY: [u8; 32] = [7; 32];
/// Where a handle's authenticator stands; what it says is behind it.
const AUTHENTICATOR: std::ops::Range<usize> = 1..17;
/// Where what it says has the inode number.
const INODE: std::ops::Range<usize> = 4..12;
/// Deeper than a handle names ancestors.
const DEPTH: usize = 20;

/// The first byte, by threes: 0: the rest is a handle. 1: commands of three bytes follow, each a place in two bytes and a value,
/// which change a handle that the server gave out. 2: they change what it says, and it is authenticated anew. The first byte also
/// chooses whose handle that is.
///
/// # Panics
/// If a handle that the server has not made is taken, or one leads to another file than it names.
pub fn handle(data: &[u8]) -> Verdict {
    let Some((&first, rest)) = data.split_first() else { return Verdict::Refused };
    let shared = Shared::get();
    let given = shared.handles[usize::from(first / 3) % shared.handles.len()].as_bytes();
    match first % 3 {
        0 => shared.unknown(rest),
        1 => shared.unknown(&damaged(given, rest)),
        _ => shared.authentic(&damaged(&given[AUTHENTICATOR.end..], rest)),
    }
}

/// A tree of files, the key, and the handles of every object.
struct Shared {
    tree: TempDir,
    key: HandleKey,
    handles: Vec<Handle>,
}

impl Shared {
    fn get() -> &'static Self {
        static SHARED: OnceLock<Shared> = OnceLock::new();
        SHARED.get_or_init(|| Self::make().expect("a folder of its own"))
    }

    fn make() -> std::io::Result<Self> {
        let (tree, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let deepest: String = (0..DEPTH).map(|level| format!("{level}/")).collect();
        fs::create_dir_all(tree.path().join(&deepest))?;
        for path in ["file".to_owned(), "0/file".to_owned(), "0/1/file".to_owned(), format!("{deepest}file")]
        {
            fs::write(tree.path().join(path), "content")?;
        }
        // As a server that was here before has kept it.
        fs::write(state.path().join("nfs-handle-key"), KEY)?;
        let key = HandleKey::kept_in(state.path()).map_err(std::io::Error::other)?;
        let mut shared = Self { tree, key, handles: Vec::new() };
        let exports = shared.exports();
        let somebody = Somebody::new();
        let caller = somebody.caller();
        let mut waiting = vec![exports.root(&caller).expect("a root")];
        while let Some(object) = waiting.pop() {
            shared.handles.push(exports.handle(&object));
            for name in (0..DEPTH).map(|level| level.to_string()).chain(["file".to_owned()]) {
                let name = Name::new(name.as_bytes()).expect("a name");
                waiting.extend(exports.look_up(&caller, &object, name));
            }
        }
        assert_eq!(shared.handles.len(), 1 + DEPTH + 4, "of every object");
        Ok(shared)
    }

    /// The exports of a server that has just started: it remembers no file.
    fn exports(&self) -> Exports {
        let options = ExportOptions {
            name: String::new(),
            directory: self.tree.path().to_owned(),
            clients: ClientRule { tls: TlsRule::Offer, ..ClientRule::default() },
            identity: IdentityRule::Server,
        };
        let export = Export::open(options).expect("it is there");
        Exports::new(vec![export], self.key.clone(), 64).expect("one export")
    }

    /// Bytes that the server has given out only if they are one of these.
    fn unknown(&self, bytes: &[u8]) -> Verdict {
        let exports = self.exports();
        let somebody = Somebody::new();
        let is_given = self.handles.iter().any(|handle| handle.as_bytes() == bytes);
        match exports.resolve(&somebody.caller(), bytes) {
            Ok(object) => {
                assert!(is_given, "a handle was made up");
                assert_eq!(exports.handle(&object).as_bytes(), bytes, "an object has one handle");
                Verdict::Taken
            }
            Err(fault) => {
                assert!(!is_given, "{fault:?} for what the server has named");
                assert_eq!(fault, Fault::BadHandle);
                Verdict::Refused
            }
        }
    }

    /// A handle that says `said`, as only the server can make them.
    fn authentic(&self, said: &[u8]) -> Verdict {
        let signed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &KEY), said);
        let bytes = [&[1], &signed.as_ref()[..AUTHENTICATOR.len()], said].concat();
        let exports = self.exports();
        let somebody = Somebody::new();
        let caller = somebody.caller();
        let Ok(object) = exports.resolve(&caller, &bytes) else { return Verdict::Refused };
        let inode = said[INODE].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let found = exports.attributes(&caller, &object).expect("it is there").number;
        // None at all stands for the export's root.
        assert!(inode == 0 || inode == found, "inode {found} for {inode}");
        Verdict::Taken
    }
}

struct Somebody(Client, Identity);

impl Somebody {
    fn new() -> Self {
        Self(Client { address: ([192, 0, 2, 7], 700).into(), tls: None }, Identity::Nobody)
    }

    fn caller(&self) -> Caller<'_> {
        Caller { client: &self.0, identity: &self.1, waiting: Waiting::Allowed, is_mount: false }
    }
}
