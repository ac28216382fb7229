//! Session tickets: the keys that seal them, shared by all workers and kept over a reload.

use crate::TlsError;
use rustls::{crypto::aws_lc_rs::Ticketer, server::ProducesTickets};
use std::{fmt, sync::Arc};

/// How many tickets a client gets after a full or resumed TLS 1.3 handshake.
///
/// One: a connection that resumes gets the next, so a client that comes back never runs out, and the second costs
/// another 3 µs and 216 bytes of every handshake (`examples/handshake_cost.rs`). A client that opens several
/// connections at once can ask for more (RFC 9149).
pub(crate) const TICKETS_PER_HANDSHAKE: usize = 1;

/// The most tickets that a client gets when it asks for a number of them (RFC 9149).
pub(crate) const TICKETS_ON_REQUEST_LIMIT: usize = 4;

/// The keys that seal session tickets. They are made anew every six hours and forgotten after twelve, and exist in
/// this process alone. Clones share them.
///
/// Sharing them between acceptors and sites is safe: rustls resumes a session only for the SNI name it was made for,
/// and there is no client authentication that could be carried over.
#[derive(Clone)]
pub struct Tickets(Arc<dyn ProducesTickets>);

impl Tickets {
    /// New keys: tickets sealed with others are not recognised, and their bearers make a full handshake.
    ///
    /// # Errors
    /// [`TlsError::Crypto`] if there is no randomness.
    pub fn new() -> Result<Self, TlsError> {
        Ticketer::new().map(Self).map_err(|error| TlsError::Crypto(error.to_string()))
    }

    pub(crate) fn producer(&self) -> Arc<dyn ProducesTickets> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tickets").finish_non_exhaustive()
    }
}
