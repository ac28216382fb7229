//! From a handle, or a name, to the object, wherever it is by now.

use super::Exports;
use crate::{
    Export,
    attributes::Facts,
    handle::{Key, Ticket},
    memory::Place,
    node::Node,
    search::{self, Whereabouts},
};
use linerate_nfs::{Fault, Handle, Waiting};
use std::sync::Arc;

impl Exports {
    /// The directory that is exported.
    pub(super) fn root_of(&self, export: &Arc<Export>, waiting: Waiting) -> Result<Arc<Node>, Fault> {
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
    pub(super) fn node(
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
    pub(super) fn place(
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
    pub(super) fn locate(
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
}

/// What the handle of an object with this key tells, where the directories above it have the tags `ancestors`.
pub(super) fn ticket(key: Key, ancestors: &[u16]) -> Ticket {
    Ticket { key, ancestors: ancestors.to_vec(), is_whole: true }
}
