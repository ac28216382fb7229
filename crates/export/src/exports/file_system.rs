//! What a client's calls ask of the exports.

use super::{Exports, Object, TREE, Which, finding::ticket};
use crate::{
    OpenFile, Refusal, access::Wish, export::fault_of, file::descriptor_path, handle::Ticket, listing,
    search::join,
};
use linerate_nfs::{
    Access, Attributes, Caller, Described, Fault, FileSystem, Handle, Kind, Listing, ListingRequest, Name,
    Opened, Space, Waiting,
};
use rustix::{
    fs::{Access as Mode, AtFlags, CWD, accessat, fstatvfs, readlinkat},
    io::Errno,
};
use std::sync::Arc;

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
                let (key, name) = (export.key(&facts), name.as_bytes());
                // Of thousands of entries that are listed again nothing is to be put together.
                let handle = match self.places.handle_of_entry(&key, above, name) {
                    Some(handle) => handle,
                    None => {
                        let path = join(&above.place.path, name);
                        self.place(key, path.into(), above.ancestors_of_entries(), None)?.handle
                    }
                };
                let attributes = facts.attributes(export.file_system_id(), facts.inode);
                return Ok(Described { attributes, handle });
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
        let said = ticket(node.key, &node.place.ancestors);
        let here = self.locate(export, node.place.handle.as_bytes(), &said, caller.waiting)?;
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
