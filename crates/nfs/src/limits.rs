//! How much clients may ask for.

use std::time::Duration;

/// Bounds on what clients may make the server keep, read or send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest call, in bytes (`ca_maxrequestsize`). Longer records end the connection.
    pub call_bytes: u32,
    /// The most that a READ returns, in bytes.
    pub read_bytes: u32,
    /// The most that a reply holds beside a READ's bytes, and all of any other reply, in bytes.
    pub reply_bytes: u32,
    /// Operations in a COMPOUND.
    pub operations: u32,
    /// Clients of version 4 that are known at one time.
    pub clients: usize,
    /// Sessions that a client may have.
    pub sessions_per_client: usize,
    /// Calls that a session may have under way.
    pub slots: u32,
    /// The longest reply that is kept for a retry, in bytes (`ca_maxresponsesize_cached`).
    pub cached_reply_bytes: u32,
    /// All replies that are kept for retries, in bytes.
    pub cached_replies_bytes: usize,
    /// How long a client is certainly known after its last call.
    pub lease: Duration,
    /// How long a client that says nothing is kept, if there is room. At least as long as the lease.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_bytes: 64 << 10,
            read_bytes: 1 << 20,
            reply_bytes: 64 << 10,
            operations: 64,
            clients: 4096,
            sessions_per_client: 16,
            slots: 256,
            cached_reply_bytes: 2 << 10,
            cached_replies_bytes: 64 << 20,
            lease: Duration::from_secs(90),
            silence: Duration::from_secs(3600),
        }
    }
}

impl Limits {
    /// The longest reply, in bytes.
    pub(crate) const fn longest_reply_bytes(&self) -> u32 {
        self.read_bytes.saturating_add(self.reply_bytes)
    }
}
