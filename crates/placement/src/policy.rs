//! What the operator said of placement, or what holds where nothing was said.

use crate::{Engine, NicMode};

/// Whether there is something to decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// By cost.
    #[default]
    Auto,
    /// The operator's choice, where it can be had.
    Fixed {
        /// The choice.
        engine: Engine,
        /// From responses of this size on.
        from_bytes: u64,
        /// After so many bytes on the connection.
        after_bytes: u64,
    },
}

/// What the operator said, or the defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Whether there is something to decide.
    pub mode: Mode,
    /// How the adapter takes part.
    pub nic_mode: NicMode,
    /// Set-ups a second that the adapter is asked for by all workers at most; `None` is all that it can do. Where they
    /// queue there it is asked for less, in both cases.
    pub nic_set_ups_per_s: Option<f64>,
    /// Workers, which share the adapter's set-ups equally.
    pub workers: usize,
    /// A flow of whose bytes more than this part was sent again has no place on the adapter. FreeBSD has the same rule
    /// as a setting: `kern.ipc.tls.ifnet_max_rexmit_pct`, 2 % by default.
    pub retransmitted_limit: f64,
    /// Whether observations count.
    pub learning: bool,
    /// One of so many responses that could be moved and are not is moved all the same, to learn; 0 is none.
    pub trial_every: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            nic_mode: NicMode::LinuxInline,
            nic_set_ups_per_s: None,
            workers: 1,
            retransmitted_limit: 0.01,
            learning: true,
            trial_every: 0,
        }
    }
}
