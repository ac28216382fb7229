//! Where objects were seen last, and which of them are at hand. Both are bounded, and both may forget: a handle that nothing is
//! remembered of is searched for.

use crate::{handle::Key, node::Node};
use linerate_nfs::Handle;
use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Places remembered, about 200 bytes each.
const PLACES_LIMIT: usize = 128 * 1024;
/// How long a node counts as being where it was found: as long as content caches rely on a path.
const TRUSTED: Duration = Duration::from_secs(1);

/// A map that forgets: entries that were not asked for while as many others were put in are dropped together.
#[derive(Debug)]
struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    /// Of each generation.
    limit: usize,
}

impl<K: Eq + Hash + Clone, V: Clone> Generations<K, V> {
    fn new(limit: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), limit: (limit / 2).max(1) }
    }

    fn get(&mut self, key: &K) -> Option<V> {
        self.look_at(key, V::clone)
    }

    fn look_at<R>(&mut self, key: &K, look: impl FnOnce(&V) -> R) -> Option<R> {
        if let Some(value) = self.young.get(key) {
            return Some(look(value));
        }
        let value = self.old.remove(key)?;
        let seen = look(&value);
        self.insert(key.clone(), value);
        Some(seen)
    }

    /// Returns what is forgotten by it, for the caller to drop where that delays nobody.
    fn insert(&mut self, key: K, value: V) -> Option<HashMap<K, V>> {
        let is_full = self.young.len() >= self.limit && !self.young.contains_key(&key);
        let forgotten = is_full.then(|| {
            let young = std::mem::take(&mut self.young);
            std::mem::replace(&mut self.old, young)
        });
        self.young.insert(key, value);
        forgotten
    }

    fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }
}

/// Where an object was seen last.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Relative to the export's directory.
    pub(crate) path: Arc<[u8]>,
    /// Of the directories above it, as in a handle, but all of them.
    pub(crate) ancestors: Arc<[u16]>,
    /// The handle that clients were given first.
    pub(crate) handle: Handle,
}

/// Where objects were seen last. It outlives reloads.
#[derive(Debug)]
pub(crate) struct Places(Mutex<Generations<Key, Place>>);

impl Places {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Generations::new(PLACES_LIMIT)))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Place> {
        locked(&self.0).get(key)
    }

    /// The handle of an object that is remembered as the entry `name` of `directory`.
    pub(crate) fn handle_of_entry(&self, key: &Key, directory: &Node, name: &[u8]) -> Option<Handle> {
        let handle = |place: &Place| directory.has_at(name, place).then_some(place.handle);
        locked(&self.0).look_at(key, handle).flatten()
    }

    pub(crate) fn put(&self, key: Key, place: Place) {
        let forgotten = locked(&self.0).insert(key, place);
        drop(forgotten);
    }
}

/// Nodes with their descriptors.
#[derive(Debug)]
pub(crate) struct Nodes(Mutex<Generations<Key, (Arc<Node>, Instant)>>);

impl Nodes {
    /// At most `limit`, with up to two descriptors each.
    pub(crate) fn new(limit: usize) -> Self {
        Self(Mutex::new(Generations::new(limit)))
    }

    /// The node, if it was found there lately.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Node>> {
        let (node, found) = locked(&self.0).get(key)?;
        (found.elapsed() < TRUSTED).then_some(node)
    }

    /// The node, however long ago it was found: the file that it has open is not opened again where it still is the same.
    pub(crate) fn last(&self, key: &Key) -> Option<Arc<Node>> {
        locked(&self.0).get(key).map(|(node, _)| node)
    }

    pub(crate) fn put(&self, key: Key, node: &Arc<Node>) {
        let forgotten = locked(&self.0).insert(key, (Arc::clone(node), Instant::now()));
        drop(forgotten);
    }

    pub(crate) fn remove(&self, key: &Key) {
        locked(&self.0).remove(key);
    }

    /// Forgets all, to give their descriptors back.
    pub(crate) fn clear(&self) {
        let mut nodes = locked(&self.0);
        let forgotten = (std::mem::take(&mut nodes.young), std::mem::take(&mut nodes.old));
        drop(nodes);
        drop(forgotten);
    }
}

/// What a thread that panicked left behind is whole: every change is one call.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_forgotten() {
        let mut map = Generations::new(20);
        for number in 0..1000 {
            map.insert(number, number * 2);
            assert_eq!(map.get(&0), Some(0), "after {number}");
            assert!(map.young.len() + map.old.len() <= 20);
        }
        assert_eq!((map.get(&999), map.get(&500)), (Some(1998), None));
        map.remove(&999);
        assert_eq!(map.get(&999), None);
    }
}
