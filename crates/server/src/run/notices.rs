//! What the service manager is told (`sd_notify(3)`), by a thread of its own: a manager that does not read what it is
//! told must not hold the server up.

use crate::{outbox::Outbox, report};
use sd_notify::NotifyState;
use std::time::Duration;

/// Notices that may wait; a server has a handful to give in its life, and two more at each reload.
const WAITING_NOTICES: usize = 16;
/// How long the end of the process waits for the last notice to be taken.
const PATIENCE: Duration = Duration::from_millis(500);

/// The way to the service manager.
pub(super) struct Notices(Option<Outbox<Vec<NotifyState<'static>>>>);

impl Notices {
    /// Where there is no manager, telling it does nothing.
    pub(super) fn new() -> Self {
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Self(None);
        }
        let outbox = Outbox::start("notices", WAITING_NOTICES, |state: Vec<NotifyState<'static>>| {
            if let Err(error) = sd_notify::notify(&state) {
                report::warn(&format!("the service manager could not be told: {error}"));
            }
        });
        match outbox {
            Ok(outbox) => Self(Some(outbox)),
            Err(error) => {
                report::warn(&format!("the service manager cannot be told anything: {error}"));
                Self(None)
            }
        }
    }

    /// Tells it. What was said on standard error before is there by the time that it hears.
    pub(super) fn tell(&self, state: Vec<NotifyState<'static>>) {
        report::settle();
        if let Some(outbox) = &self.0
            && !outbox.put(state)
        {
            report::warn("the service manager does not take what it is told: a notice was dropped");
        }
    }

    /// Gives the last notices a moment to be taken.
    pub(super) fn settle(&self) {
        if let Some(outbox) = &self.0 {
            outbox.flush(PATIENCE);
        }
    }
}
