//! Tells when files change, however they are replaced: written in place, renamed over, or behind a symlink that is
//! swapped anywhere on their path (as Kubernetes and certbot do).
//!
//! Directories are watched, not files: a file that is renamed away takes its watch with it. An event only says that
//! something happened there; whether a file is another one now, its metadata tells.

mod path;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use path::{FileState, directories_on_the_way, file_state};
use std::{
    collections::BTreeSet,
    fmt, io,
    path::PathBuf,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How long all has to be quiet before a change is reported: a certificate and its key are replaced one after the
/// other.
const QUIET_TIME: Duration = Duration::from_millis(250);

/// The longest that a change is held back by others.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often the files are looked at where the system sends no events.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// How often they are looked at although it does: network file systems send none for what others change.
const BACKSTOP_INTERVAL: Duration = Duration::from_secs(60);

/// How changes are noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchMethod {
    /// The system tells.
    Events,
    /// The files are looked at every few seconds, because the system doesn't tell; why, is worth a line in the log.
    Polling {
        /// Why.
        reason: String,
    },
}

/// A watch over files. Ends when dropped.
pub struct FileWatch {
    method: WatchMethod,
    messages: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    SomethingHappened,
    Stop,
}

impl FileWatch {
    /// Calls `on_change`, on a thread of its own, whenever one of `files` has become another file, has other contents,
    /// or has come or gone. Several changes that come together are reported once. Files that don't exist (yet) may be
    /// watched, too.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        files: impl IntoIterator<Item = PathBuf>,
        on_change: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_with(files.into_iter().collect(), on_change, |sender| {
            notify::recommended_watcher(move |_| {
                // Nobody listens any more: the watch is being dropped.
                let _ = sender.send(Message::SomethingHappened);
            })
        })
    }

    fn start_with(
        files: BTreeSet<PathBuf>,
        on_change: impl FnMut() + Send + 'static,
        make_watcher: impl FnOnce(Sender<Message>) -> notify::Result<RecommendedWatcher>,
    ) -> io::Result<Self> {
        let (messages, received) = channel();
        let mut directories = BTreeSet::new();
        let mut method = WatchMethod::Events;
        let watcher = make_watcher(messages.clone()).and_then(|mut watcher| {
            watch_directories(&mut watcher, &mut directories, &files)?;
            Ok(watcher)
        });
        let watcher =
            watcher.map_err(|error| method = WatchMethod::Polling { reason: error.to_string() }).ok();
        // The state is taken after the directories are watched: what changes in between raises an event.
        let state = files.iter().map(|file| file_state(file)).collect();
        let mut watching = Watching { files, state, watcher, directories, received, on_change };
        let thread =
            std::thread::Builder::new().name("certificate-watch".to_owned()).spawn(move || watching.run())?;
        Ok(Self { method, messages, thread: Some(thread) })
    }

    /// How changes are noticed.
    #[must_use]
    pub fn method(&self) -> &WatchMethod {
        &self.method
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        // A thread that has ended needs no message, and one that panicked has nothing to tell.
        let _ = self.messages.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for FileWatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FileWatch").field("method", &self.method).finish_non_exhaustive()
    }
}

/// What the thread works on.
struct Watching<F> {
    files: BTreeSet<PathBuf>,
    state: Vec<FileState>,
    watcher: Option<RecommendedWatcher>,
    directories: BTreeSet<PathBuf>,
    received: Receiver<Message>,
    on_change: F,
}

impl<F: FnMut()> Watching<F> {
    fn run(&mut self) {
        let interval = if self.watcher.is_some() { BACKSTOP_INTERVAL } else { POLL_INTERVAL };
        loop {
            match self.received.recv_timeout(interval) {
                Ok(Message::SomethingHappened) if !self.wait_for_quiet() => return,
                Ok(Message::SomethingHappened) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look();
        }
    }

    /// Waits until there has been no event for a while; `false` if the watch is to end.
    fn wait_for_quiet(&self) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            match self.received.recv_timeout(QUIET_TIME) {
                Ok(Message::SomethingHappened) => {}
                Err(RecvTimeoutError::Timeout) => return true,
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        true
    }

    fn look(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            // A directory that cannot be watched (yet) leaves the others watched, and the backstop.
            let _ = watch_directories(watcher, &mut self.directories, &self.files);
        }
        let state: Vec<_> = self.files.iter().map(|file| file_state(file)).collect();
        if state != self.state {
            self.state = state;
            (self.on_change)();
        }
    }
}

/// Watches the directories that the files depend on now, and no others. All are tried; the first error is returned.
fn watch_directories(
    watcher: &mut RecommendedWatcher,
    watched: &mut BTreeSet<PathBuf>,
    files: &BTreeSet<PathBuf>,
) -> notify::Result<()> {
    let wanted: BTreeSet<_> = files.iter().flat_map(|file| directories_on_the_way(file)).collect();
    for gone in watched.difference(&wanted) {
        // It may have been deleted, and its watch with it.
        let _ = watcher.unwatch(gone);
    }
    watched.retain(|directory| wanted.contains(directory));
    let mut result = Ok(());
    for directory in wanted {
        // Watching again what is watched is cheap, and needed if the directory was replaced by one of the same name.
        match watcher.watch(&directory, RecursiveMode::NonRecursive) {
            Ok(()) => {
                watched.insert(directory);
            }
            Err(error) => result = result.and(Err(error)),
        }
    }
    result
}

#[cfg(test)]
mod tests;
