//! All exports: the tree that a client sees.

mod file_system;
mod finding;
mod permission;
mod tree;

use crate::{
    Export, ExportError, HandleKey, Refusal, Refusals,
    handle::Key,
    key,
    memory::{Nodes, Places},
    node::Node,
};
use finding::ticket;
use linerate_nfs::{Client, Handle, Time};
use std::{sync::Arc, time::SystemTime};

/// The export number of the directory that lists exports.
const TREE: u32 = 0;

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
}
