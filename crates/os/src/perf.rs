//! Counters of the kernel's perf events: of one thread and the threads it will start, or of one core.
//!
//! Events are counted, not sampled: nothing is mapped, and what is counted costs nothing while it is.

pub use crate::system::perf::Counter;

/// What is counted: a kind of event source, and its number for the event (`perf_event_open(2)`: `type`, `config`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// `PERF_TYPE_HARDWARE`, `PERF_TYPE_SOFTWARE`, or what `/sys/bus/event_source/devices/NAME/type` says.
    pub source: u32,
    /// The event's number.
    pub config: u64,
}

impl Event {
    /// Cycles of the core, at whatever clock it runs.
    pub const CYCLES: Self = Self { source: 0, config: 0 };
    /// Instructions that were completed.
    pub const INSTRUCTIONS: Self = Self { source: 0, config: 1 };
    /// Nanoseconds on a core, counted by the kernel: to be had on every machine.
    pub const TASK_CLOCK: Self = Self { source: 1, config: 1 };
}

/// Whose events are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The thread with this id, and every thread and process that it starts from now on. Counts of those that end
    /// are kept.
    Thread(u32),
    /// Everything on this core, and for sources outside of the cores what the core stands for.
    Core(u32),
}
