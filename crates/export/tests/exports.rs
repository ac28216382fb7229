//! Exports as the protocol sees them: what is found, what is not, and what handles survive.

use linerate_export::{
    ClientRule, Export, ExportError, ExportOptions, Exports, HandleKey, IdentityRule, Object, Refusal,
    TlsRule,
};
use linerate_nfs::{
    Attributes, Caller, Certificate, Client, Fault, FileSystem, Handle, Identity, Kind, ListingRequest, Name,
    System, Tls, Waiting,
};
use std::{
    fs,
    io::Read,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::Arc,
};

/// A client, and as whom it calls.
struct Peer {
    client: Client,
    identity: Identity,
}

impl Peer {
    fn somebody() -> Self {
        Self {
            client: Client { address: "192.0.2.1:1000".parse().unwrap(), tls: None },
            identity: Identity::Nobody,
        }
    }

    fn with_tls(names: Option<&[&str]>) -> Self {
        let certificate =
            names.map(|names| Certificate { names: names.iter().map(|name| (*name).to_owned()).collect() });
        let mut peer = Self::somebody();
        peer.client.tls = Some(Tls { certificate });
        peer
    }

    fn caller(&self) -> Caller<'_> {
        Caller { client: &self.client, identity: &self.identity, waiting: Waiting::Allowed, is_mount: false }
    }
}

fn options(name: &str, directory: &Path) -> ExportOptions {
    ExportOptions {
        name: name.to_owned(),
        directory: directory.to_owned(),
        clients: ClientRule { tls: TlsRule::Offer, ..ClientRule::default() },
        identity: IdentityRule::Server,
    }
}

fn exports(key: &HandleKey, all: Vec<ExportOptions>) -> Exports {
    let opened = all.into_iter().map(|options| Export::open(options).unwrap()).collect();
    Exports::new(opened, key.clone(), 64).unwrap()
}

fn sole(key: &HandleKey, directory: &Path) -> Exports {
    exports(key, vec![options("", directory)])
}

/// Walks down from the root.
fn walk(exports: &Exports, peer: &Peer, path: &str) -> Result<Object, Fault> {
    let root = exports.root(&peer.caller())?;
    path.split('/').filter(|name| !name.is_empty()).try_fold(root, |directory, name| {
        exports.look_up(&peer.caller(), &directory, Name::new(name.as_bytes()).unwrap())
    })
}

fn content(exports: &Exports, peer: &Peer, object: &Object) -> Result<String, Fault> {
    let opened = exports.open(&peer.caller(), object)?;
    let mut text = String::new();
    opened.file.file().try_clone().unwrap().read_to_string(&mut text).unwrap();
    Ok(text)
}

/// What a handle leads to, its file's content.
fn resolved(exports: &Exports, peer: &Peer, handle: &Handle) -> Result<String, Fault> {
    let object = exports.resolve(&peer.caller(), handle.as_bytes())?;
    assert_eq!(exports.handle(&object), *handle, "an object has one handle");
    content(exports, peer, &object)
}

fn names(exports: &Exports, peer: &Peer, directory: &Object) -> Vec<String> {
    let request = ListingRequest { after: 0, verifier: [0; 8], limit_entries: 1000 };
    let listing = exports.list(&peer.caller(), directory, request).unwrap();
    assert!(listing.is_end);
    let mut names: Vec<_> =
        listing.entries.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()).collect();
    names.sort();
    names
}

/// INV-EXPORT-1.
#[test]
fn nothing_outside_is_reached() {
    let home = tempfile::tempdir().unwrap();
    let shown = home.path().join("shown");
    fs::create_dir_all(shown.join("folder")).unwrap();
    fs::write(home.path().join("secret"), "secret").unwrap();
    fs::create_dir(home.path().join("outside")).unwrap();
    fs::write(home.path().join("outside/file"), "secret").unwrap();
    symlink("../secret", shown.join("relative")).unwrap();
    symlink(home.path().join("secret"), shown.join("absolute")).unwrap();
    symlink("../outside", shown.join("directory")).unwrap();
    symlink("folder", shown.join("within")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        shown.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let (key, peer) = (HandleKey::ephemeral().unwrap(), Peer::somebody());
    let exports = sole(&key, &shown);
    for (link, text) in [
        ("relative", "../secret".to_owned()),
        ("directory", "../outside".to_owned()),
        ("within", "folder".to_owned()),
    ] {
        let object = walk(&exports, &peer, link).unwrap();
        assert_eq!(exports.attributes(&peer.caller(), &object).unwrap().kind, Kind::SymbolicLink);
        assert_eq!(exports.read_link(&peer.caller(), &object).unwrap(), text.as_bytes());
        assert_eq!(exports.open(&peer.caller(), &object).map(|_| ()), Err(Fault::NotFile));
        // A link is no directory, wherever it leads.
        assert_eq!(walk(&exports, &peer, &format!("{link}/file")).map(|_| ()), Err(Fault::NotDirectory));
    }
    let pipe = walk(&exports, &peer, "pipe").unwrap();
    assert_eq!(
        exports.open(&peer.caller(), &pipe).map(|_| ()),
        Err(Fault::NotFile),
        "its writer is not waited for"
    );
    let root = exports.root(&peer.caller()).unwrap();
    assert_eq!(exports.parent(&peer.caller(), &root).map(|_| ()), Err(Fault::NotFound));
    let folder = walk(&exports, &peer, "folder").unwrap();
    let above = exports.parent(&peer.caller(), &folder).unwrap();
    assert_eq!(exports.handle(&above), exports.handle(&root));

    // A directory that is moved out of the export takes nobody along, and neither does its handle.
    fs::write(shown.join("folder/file"), "shown").unwrap();
    let inside = exports.handle(&walk(&exports, &peer, "folder/file").unwrap());
    fs::rename(shown.join("folder"), home.path().join("outside/folder")).unwrap();
    let restarted = sole(&key, &shown);
    assert_eq!(resolved(&restarted, &peer, &inside), Err(Fault::Stale));
    assert_eq!(
        restarted.resolve(&peer.caller(), exports.handle(&folder).as_bytes()).map(|_| ()),
        Err(Fault::Stale)
    );
}

/// Another file system beneath an export has inode numbers of its own.
#[test]
fn a_mount_point_is_not_crossed() {
    let (key, peer) = (HandleKey::ephemeral().unwrap(), Peer::somebody());
    let exports = sole(&key, Path::new("/"));
    assert_eq!(walk(&exports, &peer, "proc/self").map(|_| ()), Err(Fault::NotFound));
    assert_eq!(described(&exports, &peer, &walk(&exports, &peer, "").unwrap(), "proc"), Err(Fault::NotFound));
}

/// What a listing tells of an entry.
fn described(
    exports: &Exports,
    peer: &Peer,
    directory: &Object,
    name: &str,
) -> Result<(Attributes, Handle), Fault> {
    let told = exports.describe(&peer.caller(), directory, Name::new(name.as_bytes()).unwrap())?;
    Ok((told.attributes, told.handle))
}

/// INV-EXPORT-1, and the handles of a listing lead where those of a look-up do.
#[test]
fn an_entry_is_described_as_it_is_found() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("folder/deeper")).unwrap();
    fs::write(home.path().join("folder/file"), "content").unwrap();
    symlink("/etc/passwd", home.path().join("folder/link")).unwrap();
    let (key, peer) = (HandleKey::ephemeral().unwrap(), Peer::somebody());
    // What is described first is remembered as what is looked up first.
    for is_first in [false, true] {
        let exports = sole(&key, home.path());
        let folder = walk(&exports, &peer, "folder").unwrap();
        for name in ["deeper", "file", "link"] {
            let early = is_first.then(|| described(&exports, &peer, &folder, name).unwrap());
            let found = walk(&exports, &peer, &format!("folder/{name}")).unwrap();
            let attributes = exports.attributes(&peer.caller(), &found).unwrap();
            let late = described(&exports, &peer, &folder, name).unwrap();
            assert_eq!(late, (attributes, exports.handle(&found)), "{name}");
            assert!(early.is_none_or(|early| early == late), "{name}");
        }
        assert_eq!(described(&exports, &peer, &folder, "missing"), Err(Fault::NotFound));
        let file = walk(&exports, &peer, "folder/file").unwrap();
        assert_eq!(described(&exports, &peer, &file, "any"), Err(Fault::NotDirectory));
        // The root of the tree where exports have names.
        let named = super_tree(&key, home.path());
        let root = named.root(&peer.caller()).unwrap();
        let export = walk(&named, &peer, "named").unwrap();
        let told = described(&named, &peer, &root, "named").unwrap();
        assert_eq!(told.1, named.handle(&export));
    }
    // One that a listing told of leads there without a search, and after a restart by one.
    let exports = sole(&key, home.path());
    let folder = walk(&exports, &peer, "folder").unwrap();
    let (_, handle) = described(&exports, &peer, &folder, "file").unwrap();
    assert_eq!(resolved(&exports, &peer, &handle).unwrap(), "content");
    assert_eq!(resolved(&sole(&key, home.path()), &peer, &handle).unwrap(), "content");
}

fn super_tree(key: &HandleKey, directory: &Path) -> Exports {
    exports(key, vec![options("named", directory)])
}

#[test]
fn handles_survive_restarts_and_renames() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    fs::create_dir_all(path("a/b/c")).unwrap();
    fs::create_dir_all(path("z/y")).unwrap();
    for name in ["top", "a/b/c/deep", "a/b/c/other", "a/middle"] {
        fs::write(path(name), name).unwrap();
    }
    let (key, peer) = (HandleKey::ephemeral().unwrap(), Peer::somebody());
    let first = sole(&key, home.path());
    let handle = |exports: &Exports, name: &str| exports.handle(&walk(exports, &peer, name).unwrap());
    let (top, deep, middle, directory) = (
        handle(&first, "top"),
        handle(&first, "a/b/c/deep"),
        handle(&first, "a/middle"),
        handle(&first, "a/b"),
    );
    let restarted = || sole(&key, home.path());
    for exports in [&first, &restarted()] {
        assert_eq!(resolved(exports, &peer, &deep).unwrap(), "a/b/c/deep");
        assert_eq!(resolved(exports, &peer, &top).unwrap(), "top");
        assert_eq!(handle(exports, "a/b/c/deep"), deep, "the same handle for the same object");
    }
    // A name of its own, one of a directory above, another directory, and all at once.
    fs::rename(path("top"), path("renamed")).unwrap();
    fs::rename(path("a/b"), path("a/bb")).unwrap();
    fs::rename(path("a/bb/c/deep"), path("a/bb/c/still deep")).unwrap();
    fs::rename(path("a/middle"), path("z/y/moved")).unwrap();
    for exports in [&first, &restarted()] {
        exports.release();
        assert_eq!(resolved(exports, &peer, &top).unwrap(), "top");
        assert_eq!(resolved(exports, &peer, &deep).unwrap(), "a/b/c/deep");
        assert_eq!(resolved(exports, &peer, &middle).unwrap(), "a/middle");
        let renamed = exports.resolve(&peer.caller(), directory.as_bytes()).unwrap();
        assert_eq!(names(exports, &peer, &renamed), ["c"]);
        let above = exports.parent(&peer.caller(), &renamed).unwrap();
        assert_eq!(names(exports, &peer, &above), ["bb"]);
    }
    // A second name leads to the same object.
    fs::hard_link(path("renamed"), path("z/second")).unwrap();
    assert_eq!(handle(&first, "z/second"), top);
    fs::remove_file(path("renamed")).unwrap();
    first.release();
    assert_eq!(resolved(&first, &peer, &top).unwrap(), "top");

    fs::remove_file(path("a/bb/c/still deep")).unwrap();
    // The file behind the handle is not the next one of that name.
    fs::write(path("a/bb/c/still deep"), "another").unwrap();
    let later = restarted();
    let gone = later.resolve(&peer.caller(), deep.as_bytes()).map(|object| content(&later, &peer, &object));
    assert!(matches!(gone, Err(Fault::Stale)), "{gone:?}");
}

/// INV-EXPORT-2.
#[test]
fn a_handle_that_was_made_up_is_refused_and_counted() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), "x").unwrap();
    let (key, peer) = (HandleKey::ephemeral().unwrap(), Peer::somebody());
    let exports = sole(&key, home.path());
    let handle = exports.handle(&walk(&exports, &peer, "file").unwrap());
    for bytes in [&b""[..], &[1], &[0; 128], &handle.as_bytes()[1..]] {
        assert_eq!(exports.resolve(&peer.caller(), bytes).map(|_| ()), Err(Fault::BadHandle));
    }
    assert_eq!(exports.refusals().value(Refusal::Handle), 4);
    let strangers = sole(&HandleKey::ephemeral().unwrap(), home.path());
    assert_eq!(strangers.resolve(&peer.caller(), handle.as_bytes()).map(|_| ()), Err(Fault::BadHandle));
    // Another export of the same directory is another export.
    let renamed = self::exports(&key, vec![options("named", home.path())]);
    assert_eq!(renamed.resolve(&peer.caller(), handle.as_bytes()).map(|_| ()), Err(Fault::Stale));
}

#[test]
fn a_call_that_must_not_wait_either_knows_or_says_that_it_would() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("folder")).unwrap();
    fs::write(home.path().join("folder/file"), "x").unwrap();
    let (key, peer) = (HandleKey::ephemeral().unwrap(), Peer::somebody());
    let exports = sole(&key, home.path());
    let hurried = Caller { waiting: Waiting::Forbidden, ..peer.caller() };
    let file = walk(&exports, &peer, "folder/file").unwrap();
    let handle = exports.handle(&file);
    // The names are cached by now.
    let found = exports.resolve(&hurried, handle.as_bytes()).unwrap();
    assert_eq!(content(&exports, &peer, &found).unwrap(), "x");
    // Nothing is remembered: it has to be searched for.
    let restarted = sole(&key, home.path());
    assert_eq!(restarted.resolve(&hurried, handle.as_bytes()).map(|_| ()), Err(Fault::WouldWait));
    let root = exports.root(&peer.caller()).unwrap();
    let request = ListingRequest { after: 0, verifier: [0; 8], limit_entries: 10 };
    assert_eq!(exports.list(&hurried, &root, request).map(|_| ()), Err(Fault::WouldWait));
}

#[test]
fn each_client_sees_the_exports_that_are_for_it() {
    let homes = [(); 3].map(|()| tempfile::tempdir().unwrap());
    for (number, home) in homes.iter().enumerate() {
        fs::write(home.path().join("number"), number.to_string()).unwrap();
    }
    let [open, secured, named] = homes.each_ref().map(|home| home.path());
    let mut all = vec![options("open", open), options("secured", secured), options("named", named)];
    all[1].clients.tls = TlsRule::Require;
    all[2].clients.names = vec!["nas.example".to_owned()];
    let key = HandleKey::ephemeral().unwrap();
    let exports = exports(&key, all.clone());
    let seen = |peer: &Peer| names(&exports, peer, &exports.root(&peer.caller()).unwrap());
    let (clear, tls, certified) =
        (Peer::somebody(), Peer::with_tls(None), Peer::with_tls(Some(&["nas.example"])));
    assert_eq!(seen(&clear), ["open"]);
    assert_eq!(seen(&tls), ["open", "secured"]);
    assert_eq!(seen(&certified), ["named", "open", "secured"]);
    assert_eq!(exports.exports(&clear.caller()).unwrap(), [b"/open"]);
    assert_eq!(walk(&exports, &clear, "secured").map(|_| ()), Err(Fault::WrongSecurity));
    assert_eq!(walk(&exports, &clear, "nowhere").map(|_| ()), Err(Fault::NotFound));
    let wrong = Peer::with_tls(Some(&["other.example"]));
    assert_eq!(walk(&exports, &wrong, "named").map(|_| ()), Err(Fault::Denied));
    // A handle is no proof.
    let handle = exports.handle(&walk(&exports, &certified, "named/number").unwrap());
    assert_eq!(resolved(&exports, &certified, &handle).unwrap(), "2");
    assert_eq!(resolved(&exports, &clear, &handle), Err(Fault::WrongSecurity));
    assert_eq!(resolved(&exports, &wrong, &handle), Err(Fault::Denied));
    // MOUNT comes in the clear, and gets the handle of what needs more; the handle alone is of no use.
    let mounting = Caller { is_mount: true, ..clear.caller() };
    assert_eq!(exports.exports(&mounting).unwrap().len(), 3);
    let tree = exports.root(&mounting).unwrap();
    for name in ["named", "secured"] {
        let object = exports.look_up(&mounting, &tree, Name::new(name.as_bytes()).unwrap()).unwrap();
        let handle = exports.handle(&object);
        assert_eq!(
            exports.resolve(&clear.caller(), handle.as_bytes()).map(|_| ()),
            Err(Fault::WrongSecurity)
        );
    }
    let counted = |refusal| exports.refusals().value(refusal);
    assert_eq!((counted(Refusal::NoTls), counted(Refusal::CertificateName)), (2, 2));

    // The tree's parts are file systems of their own, and lead back up to it.
    let tree = exports.root(&tls.caller()).unwrap();
    let export = walk(&exports, &tls, "secured").unwrap();
    let attributes = |object: &Object| exports.attributes(&tls.caller(), object).unwrap();
    assert_ne!(attributes(&tree).file_system, attributes(&export).file_system);
    assert_ne!(attributes(&export).number, attributes(&export).mounted_on_number);
    let above = exports.parent(&tls.caller(), &export).unwrap();
    assert_eq!(exports.handle(&above), exports.handle(&tree));

    // A reload that takes an export away makes its handles stale; the others stay.
    let kept = all[..2].iter().map(|options| Export::open(options.clone()).unwrap()).collect();
    let renewed = exports.renewed(kept, 64).unwrap();
    assert_eq!(resolved(&renewed, &certified, &handle), Err(Fault::Stale));
    let number = exports.handle(&walk(&exports, &tls, "secured/number").unwrap());
    assert_eq!(resolved(&renewed, &tls, &number).unwrap(), "1");
    all[1].clients.tls = TlsRule::Off;
    let sealed = self::exports(&key, vec![all[1].clone()]);
    assert_eq!(sealed.root(&tls.caller()).map(|_| ()), Err(Fault::WrongSecurity));
    assert_eq!(sealed.refusal(&tls.client).map(|(_, refusal)| refusal), Some(Refusal::Tls));
}

#[test]
fn permission_by_the_callers_numbers() {
    let home = tempfile::tempdir().unwrap();
    let own = fs::metadata(home.path()).unwrap();
    let (user, group) =
        (std::os::unix::fs::MetadataExt::uid(&own), std::os::unix::fs::MetadataExt::gid(&own));
    let set = |name: &str, mode| {
        let path = home.path().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir(home.path().join("closed")).unwrap();
    for name in ["group's", "everybody's", "closed/file"] {
        fs::write(home.path().join(name), name).unwrap();
    }
    set("", 0o755);
    set("group's", 0o040);
    set("everybody's", 0o644);
    set("closed", 0o700);
    let options = ExportOptions { identity: IdentityRule::Client, ..options("", home.path()) };
    let exports = exports(&HandleKey::ephemeral().unwrap(), vec![options]);
    let stranger = {
        let identity = Identity::System(System { user: user + 1, group: group + 1, groups: Vec::new() });
        Peer { identity, ..Peer::somebody() }
    };
    let everybodys = walk(&exports, &stranger, "everybody's").unwrap();
    assert_eq!(content(&exports, &stranger, &everybodys).unwrap(), "everybody's");
    assert_eq!(walk(&exports, &stranger, "closed/file").map(|_| ()), Err(Fault::Denied));
    let groups = walk(&exports, &stranger, "group's").unwrap();
    assert_eq!(content(&exports, &stranger, &groups), Err(Fault::Denied));
    assert!(!exports.access(&stranger.caller(), &groups).unwrap().read);
    assert!(exports.access(&stranger.caller(), &everybodys).unwrap().read);
    let closed = walk(&exports, &stranger, "closed").unwrap();
    let request = ListingRequest { after: 0, verifier: [0; 8], limit_entries: 10 };
    assert_eq!(exports.list(&stranger.caller(), &closed, request).map(|_| ()), Err(Fault::Denied));
    assert_eq!(exports.refusals().value(Refusal::Permission), 3);
}

#[test]
fn what_cannot_be_exported_is_said() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    let fault = |path: &Path| Export::open(options("x", path)).unwrap_err();
    assert!(matches!(fault(&home.path().join("none")), ExportError::Missing { .. }));
    assert!(matches!(fault(&home.path().join("file")), ExportError::NotDirectory { .. }));
    let export = |name| Export::open(options(name, home.path())).unwrap();
    let key = || HandleKey::ephemeral().unwrap();
    for names in [["a", "a"], ["", "a"]] {
        let both = names.map(export).to_vec();
        assert!(matches!(Exports::new(both, key(), 8), Err(ExportError::NameTwice { .. })), "{names:?}");
    }
    fn crosses_threads<T: Send + Sync>(_: &T) {}
    crosses_threads(&Arc::new(Exports::new(vec![export("a")], key(), 8).unwrap()));
}
