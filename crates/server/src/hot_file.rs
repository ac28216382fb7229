//! What a worker keeps with a file it serves often: a mapping to seal from.

use crate::{mapped_bytes::Share, workplace::Workplace};
use linerate_content::{Content, Entry};
use linerate_os::mapping::Mapping;
use std::{cell::OnceCell, sync::Arc};

/// Files that changed this lately are read, not mapped: they may be about to change again.
const QUIET_SECONDS: i64 = 10;

/// A cached file and what the worker keeps with it.
pub(crate) type CachedFile = Arc<Entry<HotFile>>;

/// Hangs on a cached file; empty until the file is first served.
#[derive(Debug, Default)]
pub(crate) struct HotFile {
    mapping: OnceCell<Option<(Mapping, Share)>>,
}

impl HotFile {
    /// The mapping that was made, if any.
    pub(crate) fn mapping_made(&self) -> Option<&Mapping> {
        self.mapping.get()?.as_ref().map(|(mapping, _)| mapping)
    }

    /// The file's mapping, made now if the file is large enough, at rest, and there is room for it. `None` means: read
    /// it. Once a file is old enough the answer stays the same as long as the file does.
    pub(crate) fn mapping(&self, content: &Content, workplace: &Workplace) -> Option<&Mapping> {
        if self.mapping.get().is_none() && is_young(content) {
            return None;
        }
        let entry = self.mapping.get_or_init(|| map(content, workplace));
        // A mapping that was truncated once stays what it is: zeros. The file is read from then on.
        entry.as_ref().map(|(mapping, _)| mapping).filter(|mapping| !mapping.is_broken())
    }
}

/// A clock or a file from the future counts as young: reading is always right.
fn is_young(content: &Content) -> bool {
    let now = i64::try_from(Workplace::unix_seconds()).unwrap_or(i64::MAX);
    now.saturating_sub(content.modified().unix_seconds) < QUIET_SECONDS
}

fn map(content: &Content, workplace: &Workplace) -> Option<(Mapping, Share)> {
    let length_bytes = content.length_bytes();
    if length_bytes < workplace.tuning.get().map_threshold_bytes {
        return None;
    }
    let share = workplace.mapped_bytes.take(length_bytes)?;
    // If mapping fails (no address space, or no way to learn what is in memory), reading still works.
    Mapping::new(content.file(), length_bytes).ok().map(|mapping| (mapping, share))
}
