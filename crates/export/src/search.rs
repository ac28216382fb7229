//! Finds an object whose place nobody remembers, by its inode number. A handle names the directories above it by a few bits of
//! their numbers; these lead the way, whatever the directories are called by now. An object that was moved to another directory
//! is looked for everywhere, which is bounded, and rare.

use crate::{
    export::Export,
    handle::{Key, Ticket, ancestor_tag},
    listing::{READ_BYTES, read_names},
};
use linerate_nfs::Fault;
use rustix::fs::FileType;
use std::{
    collections::HashMap,
    sync::PoisonError,
    time::{Duration, Instant},
};

/// Entries that are read at most where the handle leads.
const GUIDED_LIMIT_ENTRIES: u64 = 4_000_000;
/// Entries that are read at most where the whole export is searched.
const ANYWHERE_LIMIT_ENTRIES: u64 = 300_000;
/// Directories that wait to be read.
const WAITING_LIMIT: usize = 50_000;
/// The pause behind a search of the whole export is so many times as long, but for a small export's.
const ANYWHERE_SHARE: u32 = 10;
const ANYWHERE_FREE: Duration = Duration::from_millis(100);
/// How long an object that was not found is not looked for again.
const LOST_FOR: Duration = Duration::from_secs(60);
/// Objects known to be gone.
const LOST_LIMIT: usize = 4096;

/// Where an object is.
pub(crate) struct Whereabouts {
    pub(crate) path: Vec<u8>,
    pub(crate) ancestors: Vec<u16>,
}

/// What was looked for in vain, and when the whole export may be searched again.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    objects: HashMap<Key, Instant>,
    not_before: Option<Instant>,
}

impl Lost {
    fn has(&self, key: &Key) -> bool {
        self.objects.get(key).is_some_and(|since| since.elapsed() < LOST_FOR)
    }

    fn put(&mut self, key: Key) {
        if self.objects.len() >= LOST_LIMIT {
            self.objects.clear();
        }
        self.objects.insert(key, Instant::now());
    }
}

/// Looks for the object of `ticket`. It waits for the disk.
///
/// # Errors
/// [`Fault::Stale`] if it is gone; [`Fault::Busy`] if it may be anywhere, and the export was searched just now.
pub(crate) fn find(export: &Export, ticket: &Ticket) -> Result<Whereabouts, Fault> {
    let lost = || export.lost.lock().unwrap_or_else(PoisonError::into_inner);
    if lost().has(&ticket.key) {
        return Err(Fault::Stale);
    }
    let mut guided = Search { export, ticket, is_guided: true, left_entries: GUIDED_LIMIT_ENTRIES };
    if let Some(found) = guided.run()? {
        return Ok(found);
    }
    {
        let mut lost = lost();
        let now = Instant::now();
        if lost.not_before.is_some_and(|not_before| now < not_before) {
            return Err(Fault::Busy);
        }
        // Nobody else begins meanwhile.
        lost.not_before = Some(now + LOST_FOR);
    }
    let began = Instant::now();
    let mut anywhere = Search { export, ticket, is_guided: false, left_entries: ANYWHERE_LIMIT_ENTRIES };
    let found = anywhere.run();
    let mut lost = lost();
    lost.not_before = Some(Instant::now() + (began.elapsed() * ANYWHERE_SHARE).saturating_sub(ANYWHERE_FREE));
    if let Ok(None) = found {
        lost.put(ticket.key);
    }
    found?.ok_or(Fault::Stale)
}

struct Search<'a> {
    export: &'a Export,
    ticket: &'a Ticket,
    is_guided: bool,
    left_entries: u64,
}

impl Search<'_> {
    fn run(&mut self) -> Result<Option<Whereabouts>, Fault> {
        let mut waiting = vec![Whereabouts { path: Vec::new(), ancestors: Vec::new() }];
        let mut buffer = Vec::with_capacity(READ_BYTES);
        while let Some(above) = waiting.pop() {
            // What cannot be opened any more holds nothing.
            let Ok(directory) = self.export.open_directory(self.export.root(), &above.path) else { continue };
            let mut found = None;
            let depth = above.ancestors.len();
            read_names(&directory, &mut buffer, |name, number, kind| {
                if self.left_entries == 0 || found.is_some() {
                    return false;
                }
                self.left_entries -= 1;
                let path = || join(&above.path, name);
                if number == self.ticket.key.inode && self.is_it(&path()) {
                    found = Some(Whereabouts { path: path(), ancestors: above.ancestors.clone() });
                    return false;
                }
                let may_be_directory = matches!(kind, FileType::Directory | FileType::Unknown);
                let tag = ancestor_tag(number);
                if may_be_directory && waiting.len() < WAITING_LIMIT && self.leads_on(depth, tag) {
                    let ancestors = above.ancestors.iter().copied().chain([tag]).collect();
                    waiting.push(Whereabouts { path: path(), ancestors });
                }
                true
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Whether the object can be beneath a directory of this tag, `depth` directories below the export's.
    fn leads_on(&self, depth: usize, tag: u16) -> bool {
        if !self.is_guided {
            return true;
        }
        match self.ticket.ancestors.get(depth) {
            Some(ancestor) => *ancestor == tag,
            None => !self.ticket.is_whole,
        }
    }

    fn is_it(&self, path: &[u8]) -> bool {
        let found = self.export.find(self.export.root(), path, linerate_nfs::Waiting::Allowed);
        found.is_ok_and(|(_, facts)| self.export.key(&facts) == self.ticket.key)
    }
}

/// The path of `name` in the directory `path`.
pub(crate) fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}
