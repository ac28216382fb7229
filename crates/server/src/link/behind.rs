//! Files that the kernel still sends from when their response is over.
//!
//! `sendfile` in the clear puts a file's pages into the socket, not a copy. What the peer has not acknowledged leaves, or
//! leaves again, as the pages are then. So a file that its response was sent from is looked at in each sweep until the peer
//! has all of it; if it is changed before that, the connection is reset, so that the peer does not take for whole what it
//! gets (INV-FILE-1). A peer that got the last byte before that cannot be told any more.

use super::{Link, wire::Wire};
use crate::{ending::Ending, hot_file::CachedFile, report, watch::SWEEP_INTERVAL};
use linerate_engine::source::settled_change_since;
use linerate_os::{file::Stamp, socket};
use linerate_record::KeySource;

/// Responses of a client that pipelines, the oldest of which are not looked after any more. Nearly always there is one.
const MOST: usize = 8;

/// A file behind a response that is over.
pub(super) struct Behind {
    file: CachedFile,
    announced: Stamp,
    /// What was asked for.
    target: Box<str>,
    /// The peer has all of it once it has acknowledged so many bytes of the connection.
    ends_at_bytes: u64,
}

impl<K: KeySource> Link<K> {
    /// Looks after a file that went into the socket as it lies in memory.
    pub(crate) fn look_after(&self, file: &CachedFile, announced: Stamp, target: &str) {
        self.wire.look_after(file, announced, target);
    }
}

impl Wire {
    fn look_after(&self, file: &CachedFile, announced: Stamp, target: &str) {
        let mut behind = self.behind.borrow_mut();
        // All that was sent on this connection so far went through `send`.
        let ends_at_bytes = self.sent_bytes;
        if let Some(known) = behind.iter_mut().find(|known| CachedFile::ptr_eq(&known.file, file)) {
            known.ends_at_bytes = ends_at_bytes;
            return;
        }
        if behind.len() == MOST {
            behind.remove(0);
        }
        behind.push(Behind {
            file: CachedFile::clone(file),
            announced,
            target: target.into(),
            ends_at_bytes,
        });
        self.watch.follow(true);
    }

    /// Whether one of those files was changed before the peer had all of it. If so, a warning names it.
    pub(super) fn has_changed_behind(&self) -> bool {
        let mut behind = self.behind.borrow_mut();
        // A kernel that does not tell cannot be asked later, either.
        let acknowledged_bytes = socket::acknowledged_of(&self.stream, self.sent_bytes).unwrap_or(u64::MAX);
        behind.retain(|one| acknowledged_bytes < one.ends_at_bytes);
        if behind.is_empty() {
            self.watch.follow(false);
            return false;
        }
        // A file that cannot be asked about is not known to have changed.
        let changed = behind.iter().find(|Behind { file, announced, .. }| {
            matches!(settled_change_since(announced, file.content.file()), Ok(Some(_)))
        });
        if let Some(Behind { target, .. }) = changed {
            let ending = Ending::ChangedBehind;
            let peer = self.stream.peer_addr().map_or("a client".into(), |peer| peer.to_string());
            report::warn(&format!("{target}: {ending}; the connection to {peer} was cut"));
        }
        changed.is_some()
    }

    /// Looks after files until the peer has all of them.
    pub(super) async fn look_after_to_the_end(&self) -> Result<(), Ending> {
        while !self.behind.borrow().is_empty() {
            tokio::select! {
                ended = self.wait(false, false) => drop(ended?),
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
            }
        }
        Ok(())
    }
}
