//! What the operator is told of clients that are refused: each thing once a minute, and not more than a few of them. A client that
//! comes again and again, or many of them, must not fill the log.

use std::{
    collections::HashSet,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// How long what was said counts as said.
const WINDOW: Duration = Duration::from_secs(60);
/// Messages in that time.
const MESSAGES_LIMIT: usize = 32;

/// What was said lately. One for all workers; it outlives reloads.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    since: Duration,
    messages: HashSet<(IpAddr, String)>,
    held_back: u64,
}

impl Complaints {
    /// The line to write about `message`, which concerns this address; `None` if nothing is to be written. `now` is time since
    /// the server's start.
    pub(super) fn line(&self, address: IpAddr, message: &str, now: Duration) -> Option<String> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held_back = 0;
        if now.saturating_sub(said.since) >= WINDOW {
            held_back = said.held_back;
            *said = Said { since: now, ..Said::default() };
        }
        let is_told =
            said.messages.len() < MESSAGES_LIMIT && said.messages.insert((address, message.to_owned()));
        if !is_told {
            said.held_back += 1;
            return None;
        }
        Some(match held_back {
            0 => format!("nfs: {address}: {message}"),
            _ => format!(
                "nfs: {address}: {message} ({held_back} further connections were refused since without a message: \
                 linerate_nfs_refused_total counts calls)"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_is_told_once_a_minute_and_few_things_at_all() {
        let complaints = Complaints::default();
        let at = |seconds| Duration::from_secs(seconds);
        let address = |last| IpAddr::from([192, 0, 2, last]);
        let first = complaints.line(address(1), "no", at(1)).unwrap();
        assert_eq!(first, "nfs: 192.0.2.1: no");
        assert_eq!(complaints.line(address(1), "no", at(59)), None);
        assert!(complaints.line(address(1), "another reason", at(59)).is_some());
        assert!(complaints.line(address(2), "no", at(59)).is_some());
        let told = (3..=255).filter(|last| complaints.line(address(*last), "no", at(59)).is_some()).count();
        assert_eq!(told, MESSAGES_LIMIT - 3);
        let next = complaints.line(address(1), "no", at(60)).unwrap();
        let held_back = 1 + 253 - (MESSAGES_LIMIT - 3);
        assert!(next.contains(&format!("({held_back} further connections")), "{next}");
        assert_eq!(complaints.line(address(1), "no", at(119)), None);
        assert_eq!(complaints.line(address(1), "no", at(121)).unwrap().matches("(1 further").count(), 1);
    }
}
