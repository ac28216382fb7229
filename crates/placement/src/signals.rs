//! What a decision looks at: the connection, and the machine.

use crate::{Combination, Engine};

/// A connection at the beginning of a response, or at a record boundary in it. All of it is known without asking anybody;
/// what costs a system call (retransmissions) is asked for by a function, and only when it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSignals {
    /// What was agreed on in the handshake.
    pub combination: Combination,
    /// What carries it now.
    pub engine: Engine,
    /// Bytes of the response under way, head included.
    pub response_bytes: u64,
    /// Bytes of it that have not been sent.
    pub left_bytes: u64,
    /// Bytes of the responses before it.
    pub sent_before_bytes: u64,
    /// Responses before it.
    pub responses_before: u64,
    /// Records that its key has left, by an engine that cannot change the key; `None` where that is no concern.
    pub records_left: Option<u64>,
}

/// The machine, as of a fraction of a second ago.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineSignals {
    /// The part (0 to 1) of the worker's time in which it had nothing to do.
    pub cpu_left: f64,
    /// Flows that the adapter has now, of this process and of others.
    pub nic_flows: u64,
}

impl Default for MachineSignals {
    /// A machine that is busy, and an adapter that is not.
    fn default() -> Self {
        Self { cpu_left: 0.0, nic_flows: 0 }
    }
}
