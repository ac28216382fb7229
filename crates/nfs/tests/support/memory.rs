//! A tree in memory.

use linerate_nfs::{
    Access, Attributes, Caller, Device, Entry, Fault, FileSystem, FileSystemId, Handle, Identity, Kind,
    Listing, ListingRequest, Name, Opened, Space, Time, Waiting,
};
use std::{cell::Cell, ops::Range};

/// An object by its number, which is its place in the tree's list.
pub(crate) type Object = usize;

/// A file to send ranges of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read(pub(crate) Object);

#[derive(Clone, Debug)]
enum Content {
    Directory(Vec<(Vec<u8>, Object)>),
    File(Vec<u8>),
    Link(Vec<u8>),
    Pipe,
}

impl Content {
    fn described(&self) -> (Kind, usize) {
        match self {
            Self::Directory(entries) => (Kind::Directory, entries.len()),
            Self::File(content) => (Kind::File, content.len()),
            Self::Link(text) => (Kind::SymbolicLink, text.len()),
            Self::Pipe => (Kind::Pipe, 0),
        }
    }
}

#[derive(Clone, Debug)]
struct Node {
    parent: Object,
    content: Content,
    fault: Option<Fault>,
}

/// A tree whose objects stay. The root is object 0.
#[derive(Debug)]
pub(crate) struct MemoryFiles {
    nodes: Vec<Node>,
    /// How often it was told to wait.
    pub(crate) waited: Cell<u32>,
    /// Nothing is in the kernel's caches.
    pub(crate) is_cold: Cell<bool>,
    /// Directories tell what their entries are, but for directories.
    pub(crate) tells_kinds: bool,
    /// Cookies belong to this.
    pub(crate) verifier: [u8; 8],
    pub(crate) handle_bytes: usize,
}

pub(crate) const ROOT: Object = 0;

impl Default for MemoryFiles {
    fn default() -> Self {
        let root = Node { parent: ROOT, content: Content::Directory(Vec::new()), fault: None };
        Self {
            nodes: vec![root],
            waited: Cell::new(0),
            is_cold: Cell::new(false),
            tells_kinds: false,
            verifier: [0; 8],
            handle_bytes: 8,
        }
    }
}

impl MemoryFiles {
    /// `/file` ("0123456789"), `/folder`, `/folder/inner` ("inner!"), `/link` to `folder/inner`, `/pipe`, `/none` (empty).
    pub(crate) fn sample() -> Self {
        let mut files = Self::default();
        files.file(ROOT, b"file", b"0123456789");
        let folder = files.folder(ROOT, b"folder");
        files.file(folder, b"inner", b"inner!");
        files.add(ROOT, b"link", Content::Link(b"folder/inner".to_vec()));
        files.add(ROOT, b"pipe", Content::Pipe);
        files.file(ROOT, b"none", b"");
        files
    }

    pub(crate) fn folder(&mut self, parent: Object, name: &[u8]) -> Object {
        self.add(parent, name, Content::Directory(Vec::new()))
    }

    pub(crate) fn file(&mut self, parent: Object, name: &[u8], content: &[u8]) -> Object {
        self.add(parent, name, Content::File(content.to_vec()))
    }

    fn add(&mut self, parent: Object, name: &[u8], content: Content) -> Object {
        let object = self.nodes.len();
        self.nodes.push(Node { parent, content, fault: None });
        let Content::Directory(entries) = &mut self.nodes[parent].content else { panic!("no directory") };
        entries.push((name.to_vec(), object));
        object
    }

    /// From now on this object answers everything with `fault`.
    pub(crate) fn break_object(&mut self, object: Object, fault: Fault) {
        self.nodes[object].fault = Some(fault);
    }

    pub(crate) fn range(&self, file: &Read, range: Range<u64>) -> &[u8] {
        let Content::File(content) = &self.nodes[file.0].content else { panic!("no file") };
        &content[range.start as usize..range.end as usize]
    }

    fn node(&self, caller: &Caller<'_>, object: Object) -> Result<&Node, Fault> {
        if self.is_cold.get() && caller.waiting == Waiting::Forbidden {
            self.waited.set(self.waited.get() + 1);
            return Err(Fault::WouldWait);
        }
        let node = &self.nodes[object];
        node.fault.map_or(Ok(node), Err)
    }
}

impl FileSystem for MemoryFiles {
    type Object = Object;
    type File = Read;

    fn root(&self, _: &Caller<'_>) -> Result<Object, Fault> {
        Ok(ROOT)
    }

    fn resolve(&self, _: &Caller<'_>, handle: &[u8]) -> Result<Object, Fault> {
        let Some((b"obj:", rest)) = handle.split_at_checked(4) else { return Err(Fault::BadHandle) };
        let number = rest.first_chunk().ok_or(Fault::BadHandle)?;
        let object = u32::from_be_bytes(*number) as usize;
        if object < self.nodes.len() { Ok(object) } else { Err(Fault::Stale) }
    }

    fn handle(&self, object: &Object) -> Handle {
        let mut bytes = [b"obj:".as_slice(), &(*object as u32).to_be_bytes()].concat();
        bytes.resize(self.handle_bytes, 0);
        Handle::new(&bytes).unwrap()
    }

    fn look_up(&self, caller: &Caller<'_>, directory: &Object, name: Name<'_>) -> Result<Object, Fault> {
        let Content::Directory(entries) = &self.node(caller, *directory)?.content else {
            return Err(Fault::NotDirectory);
        };
        let found = entries.iter().find(|(entry, _)| entry == name.as_bytes());
        found.map(|(_, object)| *object).ok_or(Fault::NotFound)
    }

    fn parent(&self, caller: &Caller<'_>, directory: &Object) -> Result<Object, Fault> {
        let node = self.node(caller, *directory)?;
        match node.content {
            Content::Directory(_) if *directory == ROOT => Err(Fault::NotFound),
            Content::Directory(_) => Ok(node.parent),
            _ => Err(Fault::NotDirectory),
        }
    }

    fn attributes(&self, caller: &Caller<'_>, object: &Object) -> Result<Attributes, Fault> {
        let (kind, size) = self.node(caller, *object)?.content.described();
        Ok(Attributes {
            kind,
            mode: 0o644,
            links: 1,
            user: 1000,
            group: 100,
            size_bytes: size as u64,
            used_bytes: 512,
            device: Device::default(),
            file_system: FileSystemId { major: 0xaaaa, minor: 0xbb },
            number: *object as u64 + 100,
            mounted_on_number: *object as u64 + 100,
            change: 0x0102_0304_0506_0708,
            accessed: Time { seconds: 1, nanoseconds: 2 },
            modified: Time { seconds: 3, nanoseconds: 4 },
            attributes_changed: Time { seconds: -5, nanoseconds: 6 },
        })
    }

    fn space(&self, caller: &Caller<'_>, object: &Object) -> Result<Space, Fault> {
        self.node(caller, *object)?;
        Ok(Space {
            total_bytes: 1,
            free_bytes: 2,
            available_bytes: 3,
            total_files: 4,
            free_files: 5,
            available_files: 6,
        })
    }

    /// User 7 may do nothing.
    fn access(&self, caller: &Caller<'_>, object: &Object) -> Result<Access, Fault> {
        let is_directory = matches!(self.node(caller, *object)?.content, Content::Directory(_));
        let is_refused = matches!(caller.identity, Identity::System(system) if system.user == 7);
        Ok(Access { read: !is_refused, look_up: is_directory && !is_refused, execute: false })
    }

    fn open(&self, caller: &Caller<'_>, object: &Object) -> Result<Opened<Read>, Fault> {
        match &self.node(caller, *object)?.content {
            Content::File(content) => {
                if matches!(caller.identity, Identity::System(system) if system.user == 7) {
                    return Err(Fault::Denied);
                }
                Ok(Opened { file: Read(*object), size_bytes: content.len() as u64 })
            }
            Content::Directory(_) => Err(Fault::IsDirectory),
            _ => Err(Fault::NotFile),
        }
    }

    fn read_link(&self, caller: &Caller<'_>, object: &Object) -> Result<Vec<u8>, Fault> {
        match &self.node(caller, *object)?.content {
            Content::Link(text) => Ok(text.clone()),
            _ => Err(Fault::NotLink),
        }
    }

    /// The cookie is an entry's place, and two.
    fn list(
        &self,
        caller: &Caller<'_>,
        directory: &Object,
        request: ListingRequest,
    ) -> Result<Listing, Fault> {
        let Content::Directory(entries) = &self.node(caller, *directory)?.content else {
            return Err(Fault::NotDirectory);
        };
        if request.after > 0 && request.verifier != self.verifier {
            return Err(Fault::BadCookie);
        }
        let first = request.after.saturating_sub(2) as usize;
        let shown = entries.iter().enumerate().skip(first).take(request.limit_entries);
        let shown: Vec<_> = shown
            .map(|(place, (name, object))| Entry {
                name: name.clone(),
                cookie: place as u64 + 3,
                number: *object as u64 + 100,
                kind: Some(self.nodes[*object].content.described().0)
                    .filter(|kind| self.tells_kinds && *kind != Kind::Directory),
            })
            .collect();
        let is_end = first + shown.len() >= entries.len();
        Ok(Listing { verifier: self.verifier, entries: shown, is_end })
    }

    fn exports(&self, _: &Caller<'_>) -> Result<Vec<Vec<u8>>, Fault> {
        Ok(vec![b"/".to_vec(), b"/folder".to_vec()])
    }
}
