//! Follows root directories: a root's path that comes to mean another directory (a link that a deployment switches, a
//! directory renamed into its place) is opened anew.

use crate::{report, snapshot::Snapshot};
use arc_swap::ArcSwap;
use linerate_content::Root;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, thread, time::Duration};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How often the paths are looked at: one `stat` for each site, and no longer than the content cache relies on a path
/// beneath a root.
const INTERVAL: Duration = Duration::from_secs(1);

/// Roots that are other directories now.
pub(super) struct Replaced {
    /// The snapshot that was looked at.
    pub(super) generation: u64,
    /// Each with the index of its site.
    pub(super) roots: Vec<(usize, Root)>,
}

/// Tells when roots are replaced.
pub(super) struct RootWatch {
    replaced: Receiver<Replaced>,
    /// Keeps the channel open, and silent, where there is no thread.
    _sender: Sender<Replaced>,
}

impl RootWatch {
    /// Starts to look, on a thread that ends with the process: a `stat` may hang with the file system that it asks.
    pub(super) fn start(snapshots: &Arc<ArcSwap<Snapshot>>) -> Self {
        let (sender, replaced) = channel(1);
        let watching = {
            let (sender, snapshots) = (sender.clone(), Arc::clone(snapshots));
            let mut looker = Looker::default();
            move || {
                loop {
                    thread::sleep(INTERVAL);
                    let found = looker.look(&snapshots.load_full());
                    if found.roots.is_empty() {
                        continue;
                    }
                    if sender.blocking_send(found).is_err() {
                        return;
                    }
                }
            }
        };
        if let Err(error) = thread::Builder::new().name("root-watch".to_owned()).spawn(watching) {
            report::warn(&format!("a root that is replaced is served from HUP on only: {error}"));
        }
        Self { replaced, _sender: sender }
    }

    pub(super) async fn replaced(&mut self) -> Replaced {
        match self.replaced.recv().await {
            Some(replaced) => replaced,
            // Never closed: this holds a sender itself.
            None => std::future::pending().await,
        }
    }
}

/// Looks, and says once what is wrong.
#[derive(Default)]
struct Looker {
    /// The fault last told of each path.
    faults: BTreeMap<PathBuf, String>,
}

impl Looker {
    fn look(&mut self, snapshot: &Snapshot) -> Replaced {
        let mut roots = Vec::new();
        for (index, site) in snapshot.sites.iter().enumerate() {
            let path = site.root.path();
            match site.root.reopened_if_replaced() {
                Ok(reopened) => {
                    self.faults.remove(path);
                    roots.extend(reopened.map(|root| (index, root)));
                }
                Err(error) => {
                    let fault = error.to_string();
                    if self.faults.get(path) != Some(&fault) {
                        report::warn(&format!(
                            "{fault}; the directory opened before is served until it is back"
                        ));
                        self.faults.insert(path.to_owned(), fault);
                    }
                }
            }
        }
        Replaced { generation: snapshot.generation, roots }
    }
}
