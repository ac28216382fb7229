//! Pins this thread, and what it starts, to a core.

use anyhow::{Context, Result};
use rustix::thread::CpuSet;

/// Pins the calling thread, and all that it starts from now on, to `core`.
pub(crate) fn pin(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set)
        .with_context(|| format!("cannot run on core {core} (is there one, and may this process use it?)"))
}

/// Runs `start` while the calling thread is pinned to `core`: a child process inherits that.
pub(crate) fn on_core<T>(core: usize, start: impl FnOnce() -> T) -> Result<T> {
    let before = rustix::thread::sched_getaffinity(None).context("cannot read the CPU affinity")?;
    pin(core)?;
    let started = start();
    rustix::thread::sched_setaffinity(None, &before).context("cannot restore the CPU affinity")?;
    Ok(started)
}
