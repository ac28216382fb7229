//! Listeners that the configuration gives up: they are closed when the connections that had begun are accepted
//! (INV-RELOAD-2).

use super::{Listening, Server};
use crate::worker::{Command, RETIREMENT};
use linerate_config::{ListenerKind, Settings};
use tokio::time::Instant;

/// A listener on which no connection begins any more.
#[derive(Clone, Debug)]
pub(super) struct Retiring {
    listening: Listening,
    /// When it is closed.
    due: Instant,
}

/// Waits until one of them is to be closed.
pub(super) async fn is_due(retiring: &[Retiring]) {
    match retiring.iter().map(|listener| listener.due).min() {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

impl Server {
    /// Lets nobody begin to connect there.
    pub(super) fn retire(&mut self, listening: Listening) {
        self.tell_all(|| Command::Retire(listening.bound));
        self.retiring.push(Retiring { listening, due: Instant::now() + RETIREMENT });
    }

    /// Whether a listener that retires can be taken back for one that is configured. Port 0 is another port each time.
    pub(super) fn can_take_back(&self, configured: std::net::SocketAddr) -> bool {
        configured.port() != 0
            && self.retiring.iter().any(|retiring| retiring.listening.configured == configured)
    }

    /// Takes those back that are configured again, and returns them as they are to be served now.
    pub(super) fn take_back(&mut self) -> Vec<Listening> {
        let mut wanted_again = Vec::new();
        let listeners = &self.settings.listeners;
        self.retiring.retain(|Retiring { listening, .. }| {
            let configured = listeners.iter().find(|listener| listener.address == listening.configured);
            let Some(configured) = configured.filter(|listener| listener.address.port() != 0) else {
                return true;
            };
            wanted_again.push(Listening { kind: configured.kind, ..listening.clone() });
            false
        });
        self.listening.extend(wanted_again.iter().cloned());
        wanted_again
    }

    /// Closes those whose time has come.
    pub(super) fn close_retired(&mut self) {
        let now = Instant::now();
        let (due, later) = self.retiring.drain(..).partition(|retiring| retiring.due <= now);
        self.retiring = later;
        let due: Vec<Retiring> = due;
        for Retiring { listening, .. } in &due {
            self.tell_all(|| Command::Close(listening.bound));
        }
    }

    /// Whether connections of this kind may still come although `settings` have no listener for them.
    pub(super) fn retires(&self, settings: &Settings, kind: ListenerKind) -> bool {
        let is_gone = |known: &&Listening| !settings.listeners.iter().any(|listener| known.is(listener));
        let retiring = self.retiring.iter().map(|retiring| &retiring.listening);
        retiring.chain(&self.listening).filter(is_gone).any(|known| known.kind == kind)
    }
}
