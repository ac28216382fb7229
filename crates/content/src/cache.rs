//! The open files that one worker keeps, found by root, path and accepted codings.
//!
//! A hit costs a hash of the path and one `fstat`, and allocates nothing. A file that was written to or renamed over is
//! noticed by that `fstat` at once; what it can't notice (a sibling that was added, a link that was switched, a
//! directory renamed above the file) is noticed when the path is resolved again, once every `revalidate_ms`.
//! Refusals are not kept.
//!
//! Paths are evicted by the clock algorithm: a hand goes round, spares once each path that was used since it last came
//! by, and takes the first that was not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_http::{AcceptedCodings, Coding, DecodedPath};

use crate::content::{Content, FileState};
use crate::error::ContentError;
use crate::resolve::Blocking;
use crate::root::{Directory, Found, Root, RootId};

/// The bounds of a [`Cache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLimits {
    /// How many files are kept open at most; each costs one descriptor. Transfers that outlive an entry keep theirs
    /// open on their own account. 0 keeps nothing.
    pub entries: usize,
    /// How long a path is taken to lead to the same file without being resolved again.
    pub revalidate_ms: u64,
    /// How long a file that nobody asks for is kept open; [`Cache::sweep`] closes it.
    pub idle_ms: u64,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { entries: 1024, revalidate_ms: 1000, idle_ms: 60_000 }
    }
}

/// One kept file, with whatever else its user wants to keep as long as the file is the same (a mapping, a made-up
/// response head).
#[derive(Debug)]
pub struct Entry<X> {
    /// The file.
    pub content: Content,
    /// The user's own; made by `X::default()`.
    pub extension: X,
}

/// What a path led to, by way of the cache.
#[derive(Debug)]
pub enum Served<X> {
    /// A file to send.
    File(Arc<Entry<X>>),
    /// See [`Found::NeedsSlash`].
    NeedsSlash,
    /// See [`Found::Listing`].
    Listing(Directory),
}

/// The open files that one worker keeps. Entries are shared by `Arc`, so that a read may go on on another thread.
#[derive(Debug)]
pub struct Cache<X> {
    limits: CacheLimits,
    /// A handful of scopes, so a scan finds one faster than a hash does.
    by_scope: Vec<(Scope, SlotByPath)>,
    slots: Vec<Slot<X>>,
    /// Where the clock's hand stands, an index of `slots`.
    hand: usize,
    /// Files kept, over all slots: never more than `limits.entries`.
    kept: usize,
}

/// A root, and whether the path ended in a slash: `/a` and `/a/` lead to different things.
type Scope = (RootId, bool);

/// Where in `slots` a path is.
type SlotByPath = HashMap<Arc<[u8]>, usize>;

/// One path.
#[derive(Debug)]
struct Slot<X> {
    scope: Scope,
    path: Arc<[u8]>,
    used: bool,
    variants: Vec<Variant<X>>,
}

/// One file that the path leads to, by what the client accepts: the file itself or a precompressed sibling.
#[derive(Debug)]
struct Variant<X> {
    entry: Arc<Entry<X>>,
    /// For which `Accept-Encoding` it is known to be the choice, and until when that is taken as true. If the content
    /// doesn't vary, one element stands for all.
    chosen_for: Vec<(Preference, Instant)>,
}

/// The codings a client accepts, in its order, in six bits: 16 values, so nobody can fill the memory with variations
/// of Accept-Encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Preference(u8);

impl Preference {
    fn of(accepted: &AcceptedCodings) -> Self {
        Self(accepted.iter().fold(0, |bits, coding| {
            let number = match coding {
                Coding::Brotli => 1,
                Coding::Zstd => 2,
                Coding::Gzip => 3,
            };
            bits << 2 | number
        }))
    }
}

impl<X: Default> Cache<X> {
    /// An empty cache.
    #[must_use]
    pub fn new(limits: CacheLimits) -> Self {
        Self { limits, by_scope: Vec::new(), slots: Vec::new(), hand: 0, kept: 0 }
    }

    /// How many files are kept open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept == 0
    }

    /// Closes all files, and forgets all paths: after a reload, or when descriptors run out.
    pub fn clear(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Looks `path` up here, and in `root` if it isn't kept or has to be resolved again.
    ///
    /// `now` is the caller's clock, read once a turn. On [`ContentError::WouldBlock`] call [`Root::lookup`] on another
    /// thread with [`Blocking::Allowed`] and hand the content it finds to [`Cache::insert`].
    ///
    /// # Errors
    /// Those of [`Root::lookup`].
    pub fn lookup(
        &mut self,
        root: &Root,
        path: &DecodedPath<'_>,
        accepted: &AcceptedCodings,
        now: Instant,
        blocking: Blocking,
    ) -> Result<Served<X>, ContentError> {
        if let Some(entry) = self.find(root.id(), path, accepted, now) {
            return Ok(Served::File(entry));
        }
        let mut found = root.lookup(path, accepted, blocking);
        if matches!(found, Err(ContentError::DescriptorsExhausted)) && !self.is_empty() {
            // Kept files are the descriptors that can be spared.
            self.clear();
            found = root.lookup(path, accepted, blocking);
        }
        if matches!(found, Err(ContentError::Refused(_))) {
            self.forget(root.id(), path);
        }
        match found? {
            Found::File(content) => Ok(Served::File(self.insert(root.id(), path, accepted, content, now))),
            Found::NeedsSlash => Ok(Served::NeedsSlash),
            Found::Listing(directory) => Ok(Served::Listing(directory)),
        }
    }

    /// The kept file for `path`, if it was resolved lately and one `fstat` says that the file is unchanged.
    #[must_use]
    pub fn find(
        &mut self,
        root: RootId,
        path: &DecodedPath<'_>,
        accepted: &AcceptedCodings,
        now: Instant,
    ) -> Option<Arc<Entry<X>>> {
        let index = self.index_of(root, path)?;
        let slot = self.slots.get_mut(index)?;
        let preference = Preference::of(accepted);
        let variant = slot.variants.iter().find(|variant| variant.is_current_for(preference, now))?;
        let content = &variant.entry.content;
        // A changed file stays until the look-up that follows puts its successor in its place.
        if !matches!(content.state(), Ok(FileState::Unchanged)) || content.has_come_to_rest() {
            return None;
        }
        slot.used = true;
        Some(Arc::clone(&variant.entry))
    }

    /// Keeps `content`, which a look-up of `path` in `root` for `accepted` found, and gives it back as an entry.
    ///
    /// If the same file is kept already (the path was resolved again, or another client accepts other codings), the
    /// kept entry is given back with its extension, and `content` is closed.
    pub fn insert(
        &mut self,
        root: RootId,
        path: &DecodedPath<'_>,
        accepted: &AcceptedCodings,
        content: Content,
        now: Instant,
    ) -> Arc<Entry<X>> {
        let until = now + Duration::from_millis(self.limits.revalidate_ms);
        if self.limits.entries == 0 {
            return Arc::new(Entry { content, extension: X::default() });
        }
        let known = self.index_of(root, path);
        let index = known.unwrap_or_else(|| self.add_path(root, path));
        // `index_of` and `add_path` give indices of slots that exist.
        let slot = &mut self.slots[index];
        // A path that is asked for once and never again should be the first to go.
        slot.used |= known.is_some();
        let before = slot.variants.len();
        let entry = slot.keep(content, Preference::of(accepted), until);
        self.kept = self.kept - before + slot.variants.len();
        self.evict_down_to_limit(index);
        entry
    }

    /// Closes what `path` led to: it is gone, or is not to be served any more.
    pub fn forget(&mut self, root: RootId, path: &DecodedPath<'_>) {
        if let Some(index) = self.index_of(root, path) {
            self.evict(index);
        }
    }

    /// Closes the files that changed, were removed or renamed over, and those that nobody asked for within
    /// `idle_ms`: one `fstat` each. Call it every few seconds, or a removed file keeps its disk space.
    pub fn sweep(&mut self, now: Instant) {
        let idle = Duration::from_millis(self.limits.idle_ms);
        let mut index = 0;
        while let Some(slot) = self.slots.get(index) {
            if slot.variants.iter().all(|variant| variant.is_worth_keeping(now, idle)) {
                index += 1;
            } else {
                self.evict(index);
            }
        }
    }

    fn index_of(&self, root: RootId, path: &DecodedPath<'_>) -> Option<usize> {
        let scope = (root, path.is_directory);
        let (_, paths) = self.by_scope.iter().find(|(known, _)| *known == scope)?;
        paths.get(path.relative.as_ref()).copied()
    }

    /// Adds a slot without variants for `path`, and says where.
    fn add_path(&mut self, root: RootId, path: &DecodedPath<'_>) -> usize {
        let scope = (root, path.is_directory);
        let path: Arc<[u8]> = path.relative.as_ref().into();
        let index = self.slots.len();
        match self.by_scope.iter_mut().find(|(known, _)| *known == scope) {
            Some((_, paths)) => {
                paths.insert(Arc::clone(&path), index);
            }
            None => self.by_scope.push((scope, HashMap::from([(Arc::clone(&path), index)]))),
        }
        self.slots.push(Slot { scope, path, used: false, variants: Vec::new() });
        index
    }

    /// Moves the clock's hand until no more files are kept than allowed. The path in slot `newest` is spared, unless it
    /// is the only one.
    fn evict_down_to_limit(&mut self, newest: usize) {
        // One file was added, so one eviction does; the hand passes a slot at most twice before, since the first time
        // it takes its mark away.
        while self.kept > self.limits.entries {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let is_spared = self.hand == newest && self.slots.len() > 1;
            match self.slots.get_mut(self.hand) {
                None => return,
                Some(slot) if slot.used || is_spared => slot.used = false,
                Some(_) => self.evict(self.hand),
            }
            self.hand += 1;
        }
    }

    /// Forgets the path in slot `index`; the last slot takes its place.
    fn evict(&mut self, index: usize) {
        let gone = self.slots.swap_remove(index);
        self.kept -= gone.variants.len();
        if let Some(at) = self.by_scope.iter().position(|(scope, _)| *scope == gone.scope)
            && let Some((_, paths)) = self.by_scope.get_mut(at)
        {
            paths.remove(&gone.path);
            // A root that was replaced by a reload leaves nothing behind once its last path has gone.
            if paths.is_empty() {
                self.by_scope.swap_remove(at);
            }
        }
        if let Some(moved) = self.slots.get(index)
            && let Some((_, paths)) = self.by_scope.iter_mut().find(|(scope, _)| *scope == moved.scope)
            && let Some(place) = paths.get_mut(&moved.path)
        {
            *place = index;
        }
    }
}

impl<X: Default> Slot<X> {
    /// Makes `content` the choice for `preference` until `until`: as the variant that is kept already if it is the same
    /// file, otherwise as a new one. Variants that are nobody's choice any more are dropped.
    fn keep(&mut self, content: Content, preference: Preference, until: Instant) -> Arc<Entry<X>> {
        for variant in &mut self.variants {
            variant.chosen_for.retain(|(known, _)| *known != preference);
        }
        let varies = content.varies();
        let mut variant =
            match self.variants.iter().position(|variant| variant.entry.content.is_same(&content)) {
                Some(position) => self.variants.swap_remove(position),
                None => Variant {
                    entry: Arc::new(Entry { content, extension: X::default() }),
                    chosen_for: Vec::new(),
                },
            };
        if !varies {
            variant.chosen_for.clear();
        }
        variant.chosen_for.push((preference, until));
        let coding = variant.entry.content.coding();
        self.variants.retain(|other| {
            // The same coding in another state is out of date, whatever preference it was chosen for.
            varies && !other.chosen_for.is_empty() && other.entry.content.coding() != coding
        });
        let entry = Arc::clone(&variant.entry);
        self.variants.push(variant);
        entry
    }
}

impl<X> Variant<X> {
    fn is_current_for(&self, preference: Preference, now: Instant) -> bool {
        let any = !self.entry.content.varies();
        self.chosen_for.iter().any(|(known, until)| (any || *known == preference) && now < *until)
    }

    fn is_worth_keeping(&self, now: Instant, idle: Duration) -> bool {
        let asked_for = self.chosen_for.iter().any(|(_, until)| now < *until + idle);
        asked_for && matches!(self.entry.content.state(), Ok(FileState::Unchanged))
    }
}
