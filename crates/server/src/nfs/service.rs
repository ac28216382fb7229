//! What NFS connections are answered from, as one reading of the configuration came to it.

use super::complaints::Complaints;
use crate::report;
use linerate_export::{ExportError, Exports, Refusal, TlsRule};
use linerate_nfs::{Client, Limits, Protocol, TlsPolicy};
use linerate_tls::Acceptor;
use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// Exports, certificates, and what the protocol keeps about clients.
#[derive(Clone)]
pub(crate) struct NfsService {
    pub(crate) exports: Arc<Exports>,
    /// Present if an export has TLS.
    pub(crate) acceptor: Option<Arc<Acceptor>>,
    /// Clients and their sessions, which outlive reloads.
    pub(crate) protocol: Arc<Protocol>,
    pub(crate) started: Instant,
    /// What the operator was told lately.
    pub(crate) complaints: Arc<Complaints>,
}

impl NfsService {
    /// # Errors
    /// There is no randomness.
    pub(crate) fn new(exports: Arc<Exports>, acceptor: Option<Arc<Acceptor>>) -> Result<Self, ExportError> {
        let protocol = Protocol::new(Limits::default(), exports.server_name().as_bytes(), exports.seed()?);
        Ok(Self {
            exports,
            acceptor,
            protocol: Arc::new(protocol),
            started: Instant::now(),
            complaints: Arc::default(),
        })
    }

    /// What is said to clients in the clear.
    pub(crate) fn tls_policy(&self) -> TlsPolicy {
        let mut rules = self.exports.iter().map(|export| export.clients().tls);
        if self.acceptor.is_none() {
            TlsPolicy::Off
        } else if rules.all(|rule| rule == TlsRule::Require) {
            TlsPolicy::Required
        } else {
            TlsPolicy::Offered
        }
    }

    /// The protocol's clock.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Tells the operator of a client that is refused, unless that was told lately.
    pub(crate) fn complain(&self, address: SocketAddr, message: &str) {
        if let Some(line) = self.complaints.line(address.ip(), message, self.now()) {
            report::warn(&line);
        }
    }

    /// Why nothing is for this client, and of which export that is the reason.
    pub(crate) fn refusal(&self, client: &Client) -> Option<(String, Refusal)> {
        self.exports.refusal(client).map(|(export, refusal)| (format!("/{}", export.name()), refusal))
    }
}

impl fmt::Debug for NfsService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NfsService").field("exports", &self.exports).finish_non_exhaustive()
    }
}
