//! Which CPUs there are, which NUMA node they belong to, and pinning a thread to one.

pub use crate::system::processor::node_of;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// The CPUs that this process may run on, in ascending order.
///
/// # Errors
/// The kernel's.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Pins the calling thread to one CPU.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a CPU that does not exist or that this process may not use.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_pinned_to_what_is_allowed_and_nothing_else() {
        let cpus = allowed().expect("readable");
        let &last = cpus.last().expect("at least one");
        std::thread::spawn(move || {
            pin_current_thread(last).expect("allowed");
            assert_eq!(allowed().expect("readable"), [last]);
        })
        .join()
        .expect("no panic");
        assert!(pin_current_thread(CpuSet::MAX_CPU).is_err());
        assert!(pin_current_thread(CpuSet::MAX_CPU - 1).is_err(), "no machine of ours has that many");
    }
}
