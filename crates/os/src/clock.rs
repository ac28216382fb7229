//! The CPU clocks of a process: what all of its threads have used, those that have ended included, in nanoseconds.

pub use crate::system::clock::process_clocks;

use std::time::Duration;

/// What a process has used since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessClocks {
    /// Time on a core, as the scheduler booked it: exact.
    pub run: Duration,
    /// Time in user mode, as the kernel knows it: sampled at timer ticks, unless the kernel was built to note each
    /// entry and exit (`CONFIG_VIRT_CPU_ACCOUNTING_GEN`, and booted with `nohz_full=`).
    pub sampled_user: Duration,
    /// Time in user mode and in the kernel, known in the same way: the whole that `sampled_user` is a part of.
    pub sampled: Duration,
}
