//! The sessions that a client can resume.
//!
//! rustls' own cache keeps eight TLS 1.3 tickets for a server; a client that opens hundreds of connections at a time
//! uses one for each, and gets one or two from each.

use rustls::{
    NamedGroup,
    client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue},
    pki_types::ServerName,
};
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Tickets kept for one server. Older ones go first.
const TICKETS_LIMIT: usize = 65_536;

/// By server; of as many servers as the client is told to talk to.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<ServerName<'static>, OfServer>>);

#[derive(Default)]
struct OfServer {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Sessions {
    /// What a thread that panicked left behind is whole: every change is one call.
    fn servers(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, OfServer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.servers().entry(server_name).or_default().group = Some(group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.servers().get(&server_name.to_owned())?.group
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.servers().entry(server_name).or_default().tls12 = Some(value);
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.servers().get(&server_name.to_owned())?.tls12.clone()
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        if let Some(server) = self.servers().get_mut(server_name) {
            server.tls12 = None;
        }
    }

    fn insert_tls13_ticket(&self, server_name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut servers = self.servers();
        let tickets = &mut servers.entry(server_name).or_default().tickets;
        if tickets.len() == TICKETS_LIMIT {
            tickets.pop_front();
        }
        tickets.push_back(value);
    }

    fn take_tls13_ticket(&self, server_name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        // The newest: the others may be near the end of their lives.
        self.servers().get_mut(server_name)?.tickets.pop_back()
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sessions").finish_non_exhaustive()
    }
}
