//! Signals, as operators' fingers know them from nginx.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal, or a changed certificate, asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// HUP: configuration and certificates anew.
    Reload,
    /// A certificate or key file changed.
    CertificatesChanged,
    /// USR1: log files anew, after they were renamed.
    ReopenLogs,
    /// QUIT: finish what is under way, then end.
    Drain,
    /// TERM, INT: end now.
    Stop,
}

pub(super) struct Signals {
    hangup: Signal,
    quit: Signal,
    terminate: Signal,
    interrupt: Signal,
    user1: Signal,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            user1: signal(SignalKind::user_defined1())?,
        })
    }

    /// One that ends the server. The others wait.
    pub(super) async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.quit.recv() => {}
        }
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Event {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Event::Stop,
            _ = self.interrupt.recv() => Event::Stop,
            _ = self.quit.recv() => Event::Drain,
            _ = self.hangup.recv() => Event::Reload,
            _ = self.user1.recv() => Event::ReopenLogs,
        }
    }
}
