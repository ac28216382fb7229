//! All exports: the tree that a client sees.

use crate::{
    Export, ExportError, HandleKey, IdentityRule, OpenFile, Refusal, Refusals,
    access::Wish,
    attributes::Facts,
    export::fault_of,
    file::descriptor_path,
    handle::{Key, Ticket},
    key, listing,
    memory::{Nodes, Place, Places},
    node::Node,
    search::{self, Whereabouts, join},
};
use linerate_nfs::{
    Access, Attributes, Caller, Client, Described, Device, Entry, Fault, FileSystem, FileSystemId, Handle,
    Kind, Listing, ListingRequest, Name, Opened, Space, Time, Waiting,
};
use rustix::{
    fs::{Access as Mode, AtFlags, CWD, accessat, fstatvfs, readlinkat},
    io::Errno,
};
use std::{sync::Arc, time::SystemTime};

/// The export number of the directory that lists exports.
const TREE: u32 = 0;
/// What its entries' cookies begin at.
const COOKIE_SHIFT: u64 = 3;

/// The exports, and what is remembered of their files.
#[derive(Debug)]
pub struct Exports {
    /// By number.
    exports: Vec<Arc<Export>>,
    key: HandleKey,
    places: Arc<Places>,
    nodes: Nodes,
    refusals: Arc<Refusals>,
    tree: Handle,
    made: Time,
}

/// Something that a client can see.
#[derive(Clone, Debug)]
pub struct Object(Which);

#[derive(Clone, Debug)]
enum Which {
    /// The directory that lists the exports.
    Tree,
    Node(Arc<Node>),
}

impl Exports {
    /// These exports: either one without a name, which is the root of all that clients see, or some with names, which are listed
    /// there. Up to `nodes_limit` of their files are kept at hand, with at most two descriptors each.
    ///
    /// # Errors
    /// [`ExportError::NameTwice`], also for two names that lead to the same number.
    pub fn new(exports: Vec<Arc<Export>>, key: HandleKey, nodes_limit: usize) -> Result<Self, ExportError> {
        Self::with(exports, key, nodes_limit, Arc::new(Places::new()), Arc::default())
    }

    /// Other exports, after a reload: what is remembered of files, and what was counted, stays.
    ///
    /// # Errors
    /// As [`Exports::new`].
    pub fn renewed(&self, exports: Vec<Arc<Export>>, nodes_limit: usize) -> Result<Self, ExportError> {
        let (places, refusals) = (Arc::clone(&self.places), Arc::clone(&self.refusals));
        Self::with(exports, self.key.clone(), nodes_limit, places, refusals)
    }

    fn with(
        mut exports: Vec<Arc<Export>>,
        key: HandleKey,
        nodes_limit: usize,
        places: Arc<Places>,
        refusals: Arc<Refusals>,
    ) -> Result<Self, ExportError> {
        exports.sort_by_key(|export| export.id());
        let is_alone = exports.len() == 1;
        for (index, export) in exports.iter().enumerate() {
            let is_twice = exports.get(index + 1).is_some_and(|next| next.id() == export.id());
            if is_twice || export.name().is_empty() && !is_alone {
                return Err(ExportError::NameTwice { name: export.name().to_owned() });
            }
        }
        let tree = ticket(Key { export: TREE, inode: 0, birth: 0 }, &[]).seal(&key);
        let tree = tree.ok_or(ExportError::NameTwice { name: String::new() })?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        let made = Time { seconds, nanoseconds: since.subsec_nanos() };
        Ok(Self { exports, key, places, nodes: Nodes::new(nodes_limit), refusals, tree, made })
    }

    /// Every export.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Export>> {
        self.exports.iter()
    }

    /// How often which reason was given.
    #[must_use]
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Why `client` gets nothing at all: the reason of the first export; `None` if there is something for it.
    #[must_use]
    pub fn refusal(&self, client: &Client) -> Option<(&Export, Refusal)> {
        let mut refused = self.exports.iter().map(|export| (&**export, export.clients().admit(client)));
        let first = refused.next()?;
        match (first, refused.all(|(_, admitted)| admitted.is_err())) {
            ((export, Err(refusal)), true) => Some((export, refusal)),
            _ => None,
        }
    }

    /// Counts a call of a client that nothing is for.
    pub fn count(&self, refusal: Refusal) {
        self.refusals.count(refusal);
    }

    /// A name that tells this server from all others, and stays over restarts.
    #[must_use]
    pub fn server_name(&self) -> String {
        let name = self.key.authenticator(b"the name of this server");
        let hexadecimal: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("linerate-{hexadecimal}")
    }

    /// A number that nobody knows, and another each time.
    ///
    /// # Errors
    /// [`ExportError::Key`] if there is no randomness.
    pub fn seed(&self) -> Result<u128, ExportError> {
        key::seed()
    }

    /// Gives up the descriptors that are kept for what may be asked next.
    pub fn release(&self) {
        self.nodes.clear();
    }

    /// The export without a name, which is the root of all.
    fn sole(&self) -> Option<&Arc<Export>> {
        self.exports.first().filter(|export| export.name().is_empty())
    }

    fn refuse(&self, refusal: Refusal) -> Fault {
        self.refusals.count(refusal);
        match refusal {
            Refusal::NoTls | Refusal::Tls | Refusal::NoCertificate => Fault::WrongSecurity,
            Refusal::Handle => Fault::BadHandle,
            _ => Fault::Denied,
        }
    }

    fn admit(&self, export: &Export, caller: &Caller<'_>) -> Result<(), Fault> {
        judge(export, caller).map_err(|refusal| self.refuse(refusal))
    }

    /// Counts what the kernel, or the rule about users, does not permit.
    fn counted(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Denied => self.refuse(Refusal::Permission),
            // Descriptors are short: those for what may be asked next are given up first.
            Fault::Busy => {
                self.release();
                Fault::Busy
            }
            other => other,
        }
    }

    fn permit(&self, caller: &Caller<'_>, export: &Export, facts: &Facts, wish: Wish) -> Result<(), Fault> {
        if export.identity().allows(caller.identity, facts, wish) {
            Ok(())
        } else {
            Err(self.refuse(Refusal::Permission))
        }
    }

    /// Whether the caller may look for names in this directory. What it is now is asked only where that matters.
    fn permit_search(&self, caller: &Caller<'_>, directory: &Node) -> Result<(), Fault> {
        if directory.export.identity() == IdentityRule::Server {
            return Ok(());
        }
        self.permit(caller, &directory.export, &directory.facts()?, Wish::Execute)
    }

    /// The directory that is exported.
    fn root_of(&self, export: &Arc<Export>, waiting: Waiting) -> Result<Arc<Node>, Fault> {
        let key = export.root_key();
        if let Some(node) = self.nodes.get(&key) {
            return Ok(node);
        }
        let (descriptor, facts) = export.find(export.root(), b"", waiting)?;
        let handle = ticket(key, &[]).seal(&self.key).ok_or(Fault::Failed)?;
        let place = Place { path: Arc::new([]), ancestors: Arc::new([]), handle };
        let node = Node::new(export, key, facts.kind.0, place, descriptor);
        self.nodes.put(key, &node);
        Ok(node)
    }

    /// What was found at `path`, whose directories have the tags `ancestors`; under the handle that clients know it by.
    fn node(
        &self,
        export: &Arc<Export>,
        (descriptor, facts): (rustix::fd::OwnedFd, Facts),
        path: Arc<[u8]>,
        ancestors: Arc<[u16]>,
        known: Option<Handle>,
    ) -> Result<Arc<Node>, Fault> {
        let key = export.key(&facts);
        let place = self.place(key, path, ancestors, known)?;
        let node = Node::new(export, key, facts.kind.0, place, descriptor);
        if let Some(last) = self.nodes.last(&key) {
            node.inherit(&last);
        }
        self.nodes.put(key, &node);
        Ok(node)
    }

    /// Remembers where an object is, under the handle that clients know it by.
    fn place(
        &self,
        key: Key,
        path: Arc<[u8]>,
        ancestors: Arc<[u16]>,
        known: Option<Handle>,
    ) -> Result<Place, Fault> {
        let remembered = self.places.get(&key);
        let handle = match remembered.as_ref().map(|place| place.handle).or(known) {
            Some(handle) => handle,
            None => ticket(key, &ancestors).seal(&self.key).ok_or(Fault::Failed)?,
        };
        let place = Place { path, ancestors, handle };
        let is_known =
            remembered.is_some_and(|known| known.path == place.path && known.ancestors == place.ancestors);
        if !is_known {
            self.places.put(key, place.clone());
        }
        Ok(place)
    }

    /// The object where it was seen last, if it is there.
    fn at_its_place(
        &self,
        export: &Arc<Export>,
        key: &Key,
        waiting: Waiting,
    ) -> Result<Option<Arc<Node>>, Fault> {
        let Some(place) = self.places.get(key) else { return Ok(None) };
        match export.find(export.root(), &place.path, waiting) {
            Ok(found) if export.key(&found.1) == *key => {
                self.node(export, found, place.path, place.ancestors, None).map(Some)
            }
            Err(fault @ (Fault::WouldWait | Fault::Busy | Fault::Failed)) => Err(fault),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// The object that a ticket names, wherever it is.
    fn locate(
        &self,
        export: &Arc<Export>,
        handle: &[u8],
        said: &Ticket,
        waiting: Waiting,
    ) -> Result<Arc<Node>, Fault> {
        if let Some(node) = self.nodes.get(&said.key) {
            return Ok(node);
        }
        if let Some(node) = self.at_its_place(export, &said.key, waiting)? {
            return Ok(node);
        }
        if waiting == Waiting::Forbidden {
            return Err(Fault::WouldWait);
        }
        let found = search::find(export, said).inspect_err(|_| self.nodes.remove(&said.key))?;
        let Whereabouts { path, ancestors } = found;
        let there = export.find(export.root(), &path, waiting).map_err(|_| Fault::Busy)?;
        if export.key(&there.1) != said.key {
            // It moves while it is looked for.
            return Err(Fault::Busy);
        }
        self.node(export, there, path.into(), ancestors.into(), Handle::new(handle))
    }

    fn tree_attributes(&self) -> Attributes {
        Attributes {
            kind: Kind::Directory,
            mode: 0o555,
            links: 2,
            user: 0,
            group: 0,
            size_bytes: 4096,
            used_bytes: 0,
            device: Device::default(),
            file_system: FileSystemId::default(),
            number: 1,
            mounted_on_number: 1,
            // Exports come and go with a reload.
            change: self.made.seconds.cast_unsigned().wrapping_mul(1_000_000_000)
                + u64::from(self.made.nanoseconds),
            accessed: self.made,
            modified: self.made,
            attributes_changed: self.made,
        }
    }

    fn admitted<'a>(&'a self, caller: &'a Caller<'_>) -> impl Iterator<Item = &'a Arc<Export>> {
        self.exports.iter().filter(|export| judge(export, caller).is_ok())
    }
}

/// Whether a call may look into an export. For a MOUNT in the clear the connection need not be as good as the files' has to be
/// ([`Caller::is_mount`]).
fn judge(export: &Export, caller: &Caller<'_>) -> Result<(), Refusal> {
    match export.clients().admit(caller.client) {
        Err(Refusal::NoTls | Refusal::NoCertificate) if caller.is_mount && caller.client.tls.is_none() => {
            Ok(())
        }
        judged => judged,
    }
}

fn ticket(key: Key, ancestors: &[u16]) -> Ticket {
    Ticket { key, ancestors: ancestors.to_vec(), is_whole: true }
}

impl FileSystem for Exports {
    type Object = Object;
    type File = Arc<OpenFile>;

    fn root(&self, caller: &Caller<'_>) -> Result<Object, Fault> {
        if let Some(export) = self.sole() {
            self.admit(export, caller)?;
            return Ok(Object(Which::Node(self.root_of(export, caller.waiting)?)));
        }
        match self.refusal(caller.client) {
            Some((_, refusal)) if self.admitted(caller).next().is_none() => Err(self.refuse(refusal)),
            _ => Ok(Object(Which::Tree)),
        }
    }

    fn resolve(&self, caller: &Caller<'_>, handle: &[u8]) -> Result<Object, Fault> {
        let said = Ticket::open(&self.key, handle).ok_or_else(|| self.refuse(Refusal::Handle))?;
        if said.key.export == TREE {
            return if self.sole().is_none() { self.root(caller) } else { Err(Fault::Stale) };
        }
        let index = self.exports.binary_search_by_key(&said.key.export, |export| export.id());
        let export = index.ok().and_then(|index| self.exports.get(index)).ok_or(Fault::Stale)?;
        self.admit(export, caller)?;
        let node = if said.key == export.root_key() {
            self.root_of(export, caller.waiting)
        } else {
            self.locate(export, handle, &said, caller.waiting)
        };
        node.map(|node| Object(Which::Node(node))).map_err(|fault| match fault {
            Fault::NotFound | Fault::NotDirectory => Fault::Stale,
            other => self.counted(other),
        })
    }

    fn handle(&self, object: &Object) -> Handle {
        match &object.0 {
            Which::Tree => self.tree,
            Which::Node(node) => node.place.handle,
        }
    }

    fn look_up(&self, caller: &Caller<'_>, directory: &Object, name: Name<'_>) -> Result<Object, Fault> {
        let Which::Node(above) = &directory.0 else {
            let export = self.admitted(caller).find(|export| export.name().as_bytes() == name.as_bytes());
            let Some(export) = export else {
                // Why one that there is cannot be had is told: a mount would say "no such file" otherwise.
                let hidden = self.exports.iter().find(|export| export.name().as_bytes() == name.as_bytes());
                return Err(match hidden.map(|export| self.admit(export, caller)) {
                    Some(Err(fault)) => fault,
                    _ => Fault::NotFound,
                });
            };
            return self.root_of(export, caller.waiting).map(|node| Object(Which::Node(node)));
        };
        if above.kind != Kind::Directory {
            return Err(Fault::NotDirectory);
        }
        let export = &above.export;
        self.permit(caller, export, &above.facts()?, Wish::Execute)?;
        let found = export
            .find(above.descriptor(), name.as_bytes(), caller.waiting)
            .map_err(|fault| self.counted(fault))?;
        let path = join(&above.place.path, name.as_bytes());
        let node = self.node(export, found, path.into(), above.ancestors_of_entries(), None)?;
        Ok(Object(Which::Node(node)))
    }

    fn describe(&self, caller: &Caller<'_>, directory: &Object, name: Name<'_>) -> Result<Described, Fault> {
        if let Which::Node(above) = &directory.0
            && above.kind == Kind::Directory
            && caller.waiting == Waiting::Allowed
        {
            let export = &above.export;
            self.permit_search(caller, above)?;
            let found = export.describe(above.descriptor(), name).map_err(|fault| self.counted(fault))?;
            if let Some(facts) = found {
                let path = join(&above.place.path, name.as_bytes());
                let place =
                    self.place(export.key(&facts), path.into(), above.ancestors_of_entries(), None)?;
                let attributes = facts.attributes(export.file_system_id(), facts.inode);
                return Ok(Described { attributes, handle: place.handle });
            }
        }
        let object = self.look_up(caller, directory, name)?;
        Ok(Described { attributes: self.attributes(caller, &object)?, handle: self.handle(&object) })
    }

    fn parent(&self, caller: &Caller<'_>, directory: &Object) -> Result<Object, Fault> {
        let Which::Node(node) = &directory.0 else { return Err(Fault::NotFound) };
        if node.kind != Kind::Directory {
            return Err(Fault::NotDirectory);
        }
        if node.is_root() {
            return if self.sole().is_some() { Err(Fault::NotFound) } else { self.root(caller) };
        }
        let export = &node.export;
        // Where it is now: a directory that was moved has another one above it.
        let here =
            self.locate(export, node.place.handle.as_bytes(), &self.ticket_of(node), caller.waiting)?;
        let path = &here.place.path;
        let Some(cut) = path.iter().rposition(|&byte| byte == b'/') else {
            return self.root_of(export, caller.waiting).map(|node| Object(Which::Node(node)));
        };
        let above: Arc<[u8]> = path.get(..cut).unwrap_or_default().into();
        let ancestors = here.place.ancestors.split_last().map_or(&[][..], |(_, rest)| rest);
        let found =
            export.find(export.root(), &above, caller.waiting).map_err(|fault| self.counted(fault))?;
        let node = self.node(export, found, above, ancestors.into(), None)?;
        Ok(Object(Which::Node(node)))
    }

    fn attributes(&self, _caller: &Caller<'_>, object: &Object) -> Result<Attributes, Fault> {
        let Which::Node(node) = &object.0 else { return Ok(self.tree_attributes()) };
        let facts = node.facts()?;
        let export = &node.export;
        let mounted_on_number = if node.is_root() { export.mounted_on_number() } else { facts.inode };
        Ok(facts.attributes(export.file_system_id(), mounted_on_number))
    }

    fn space(&self, caller: &Caller<'_>, object: &Object) -> Result<Space, Fault> {
        let Which::Node(node) = &object.0 else { return Ok(Space::default()) };
        if caller.waiting == Waiting::Forbidden {
            // A network file system asks its server.
            return Err(Fault::WouldWait);
        }
        let told = fstatvfs(node.descriptor()).map_err(fault_of)?;
        let bytes = |blocks: u64| blocks.saturating_mul(told.f_frsize);
        Ok(Space {
            total_bytes: bytes(told.f_blocks),
            free_bytes: bytes(told.f_bfree),
            available_bytes: bytes(told.f_bavail),
            total_files: told.f_files,
            free_files: told.f_ffree,
            available_files: told.f_favail,
        })
    }

    fn access(&self, caller: &Caller<'_>, object: &Object) -> Result<Access, Fault> {
        let Which::Node(node) = &object.0 else {
            return Ok(Access { read: true, look_up: true, execute: false });
        };
        let facts = node.facts()?;
        if node.kind == Kind::SymbolicLink {
            return Ok(Access { read: true, look_up: false, execute: false });
        }
        let path = descriptor_path(node.descriptor());
        let may = |wish, mode| {
            node.export.identity().allows(caller.identity, &facts, wish)
                && accessat(CWD, path.as_str(), mode, AtFlags::EACCESS).is_ok()
        };
        let is_directory = node.kind == Kind::Directory;
        let executes = may(Wish::Execute, Mode::EXEC_OK);
        Ok(Access {
            read: may(Wish::Read, Mode::READ_OK) && (is_directory || node.kind == Kind::File),
            look_up: is_directory && executes,
            execute: node.kind == Kind::File && executes,
        })
    }

    fn open(&self, caller: &Caller<'_>, object: &Object) -> Result<Opened<Arc<OpenFile>>, Fault> {
        let Which::Node(node) = &object.0 else { return Err(Fault::IsDirectory) };
        match node.kind {
            Kind::File => {}
            Kind::Directory => return Err(Fault::IsDirectory),
            _ => return Err(Fault::NotFile),
        }
        let facts = node.facts()?;
        self.permit(caller, &node.export, &facts, Wish::Read)?;
        let file = node.reading().map_err(|fault| self.counted(fault))?;
        Ok(Opened { file, size_bytes: facts.size_bytes })
    }

    fn read_link(&self, _caller: &Caller<'_>, object: &Object) -> Result<Vec<u8>, Fault> {
        match &object.0 {
            Which::Node(node) if node.kind == Kind::SymbolicLink => {
                match readlinkat(node.descriptor(), "", Vec::new()) {
                    Ok(text) => Ok(text.into_bytes()),
                    Err(Errno::NOENT) => Err(Fault::Stale),
                    Err(errno) => Err(self.counted(fault_of(errno))),
                }
            }
            _ => Err(Fault::NotLink),
        }
    }

    fn list(
        &self,
        caller: &Caller<'_>,
        directory: &Object,
        request: ListingRequest,
    ) -> Result<Listing, Fault> {
        let Which::Node(node) = &directory.0 else { return Ok(self.list_exports(caller, request)) };
        if node.kind != Kind::Directory {
            return Err(Fault::NotDirectory);
        }
        self.permit(caller, &node.export, &node.facts()?, Wish::Read)?;
        if caller.waiting == Waiting::Forbidden {
            // No call reads only what is in memory of a directory.
            return Err(Fault::WouldWait);
        }
        let opened =
            node.export.open_directory(node.descriptor(), b"").map_err(|fault| self.counted(fault))?;
        listing::list(&opened, request)
    }

    fn exports(&self, caller: &Caller<'_>) -> Result<Vec<Vec<u8>>, Fault> {
        let paths: Vec<Vec<u8>> =
            self.admitted(caller).map(|export| [b"/", export.name().as_bytes()].concat()).collect();
        match self.refusal(caller.client) {
            Some((_, refusal)) if paths.is_empty() => Err(self.refuse(refusal)),
            _ => Ok(paths),
        }
    }
}

impl Exports {
    fn ticket_of(&self, node: &Node) -> Ticket {
        Ticket { key: node.key, ancestors: node.place.ancestors.to_vec(), is_whole: true }
    }

    /// Those that the client may use, by number: cookies are numbers of exports, so a reload leads none astray.
    fn list_exports(&self, caller: &Caller<'_>, request: ListingRequest) -> Listing {
        let cookie = |export: &Export| u64::from(export.id()) + COOKIE_SHIFT;
        let mut following = self.admitted(caller).filter(|export| cookie(export) > request.after);
        let entries = following
            .by_ref()
            .take(request.limit_entries.max(1))
            .map(|export| Entry {
                name: export.name().as_bytes().to_vec(),
                cookie: cookie(export),
                number: export.mounted_on_number(),
            })
            .collect();
        Listing { verifier: [0; 8], entries, is_end: following.next().is_none() }
    }
}
