//! Cycles and instructions of a group of processes, by the processor's own counters.
//!
//! A counter is attached to each thread that is there at the beginning; threads and processes that these start are
//! counted with them. Time in the kernel counts, also that of soft interrupts which happen to run in these threads.

use std::io;

use linerate_os::perf::{Counter, Event, Of};

use super::process;
use crate::result::Reading;

/// What was counted for a group, over all threads.
#[derive(Clone, Debug)]
pub struct HardwareCounts {
    /// Cycles that cores spent in the group's threads.
    pub cycles: Reading<u64>,
    /// Instructions completed in them.
    pub instructions: Reading<u64>,
}

/// Counters that are running.
#[derive(Debug)]
pub(super) struct Running {
    cycles: Reading<Vec<Counter>>,
    instructions: Reading<Vec<Counter>>,
}

impl Running {
    /// Begins to count for all threads of the processes.
    pub(super) fn start(pids: &[u32]) -> Self {
        let threads: Vec<u32> = pids.iter().flat_map(|&pid| process::threads(pid)).collect();
        Self { cycles: start(&threads, Event::CYCLES), instructions: start(&threads, Event::INSTRUCTIONS) }
    }

    /// What was counted so far.
    pub(super) fn read(&self) -> HardwareCounts {
        HardwareCounts { cycles: sum(&self.cycles), instructions: sum(&self.instructions) }
    }
}

fn start(threads: &[u32], event: Event) -> Reading<Vec<Counter>> {
    let mut counters = Vec::with_capacity(threads.len());
    for &thread in threads {
        match Counter::start(event, Of::Thread(thread)) {
            Ok(counter) => counters.push(counter),
            // It has ended since it was listed.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {}
            Err(error) => return Reading::NotAvailable(meaning(&error)),
        }
    }
    if counters.is_empty() {
        return Reading::NotAvailable("there was no thread to count for".to_owned());
    }
    Reading::Value(counters)
}

/// The sum of counters, each of which is open.
pub(super) fn sum(counters: &Reading<Vec<Counter>>) -> Reading<u64> {
    let counters = match counters {
        Reading::Value(counters) => counters,
        Reading::NotAvailable(reason) => return Reading::NotAvailable(reason.clone()),
    };
    let mut sum = 0_u64;
    for counter in counters {
        match counter.value() {
            Ok(Some(count)) => sum = sum.saturating_add(count),
            Ok(None) => {
                let reason =
                    "the processor has fewer counters than were wanted, and never came to this event";
                return Reading::NotAvailable(reason.to_owned());
            }
            Err(error) => return Reading::NotAvailable(format!("cannot read a perf event: {error}")),
        }
    }
    Reading::Value(sum)
}

/// What it means that the kernel refuses to count an event.
pub(super) fn meaning(error: &io::Error) -> String {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let words = match errno {
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV | Errno::NXIO) => {
            "nothing here counts this event; most virtual machines are given no performance counters"
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            "not permitted: run as root, grant CAP_PERFMON, or lower kernel.perf_event_paranoid (containers also \
             filter perf_event_open)"
        }
        Some(Errno::MFILE | Errno::NFILE) => "too many open files: one is needed for each thread and event",
        Some(Errno::NOSYS) => "this kernel was built without perf events, or a sandbox hides them",
        Some(Errno::BUSY) => "another user of the counters has them to itself",
        _ if error.kind() == io::ErrorKind::Unsupported => "perf events are Linux's",
        _ => return format!("cannot count: {error}"),
    };
    format!("{words} ({error})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_put_into_words() {
        let of = |errno: rustix::io::Errno| meaning(&errno.into());
        assert!(of(rustix::io::Errno::NOENT).contains("virtual machines"));
        assert!(of(rustix::io::Errno::ACCESS).contains("perf_event_paranoid"));
        assert!(of(rustix::io::Errno::INVAL).starts_with("cannot count: "));
        assert!(meaning(&io::ErrorKind::Unsupported.into()).starts_with("perf events are Linux's"));
    }

    #[test]
    fn counts_are_there_with_a_reason_if_not() {
        let running = Running::start(&[std::process::id()]);
        let counts = running.read();
        for reading in [&counts.cycles, &counts.instructions] {
            match reading {
                Reading::Value(count) => assert!(*count > 0),
                Reading::NotAvailable(reason) => {
                    eprintln!("SKIPPED counts_are_there_with_a_reason_if_not: {reason}");
                    assert!(!reason.is_empty());
                }
            }
        }
        assert!(Running::start(&[]).read().cycles.value().is_none(), "no thread is not zero cycles");
    }

    #[test]
    fn what_threads_use_is_summed() {
        let counters = start(&process::threads(std::process::id()), Event::TASK_CLOCK);
        if let Reading::NotAvailable(reason) = &counters {
            eprintln!("SKIPPED what_threads_use_is_summed: {reason}");
            return;
        }
        let used = || linerate_os::clock::process_clocks(std::process::id()).expect("alive").run;
        let before = used();
        // Below this the kernel's tick shows.
        while (used() - before).as_millis() < 50 {
            std::hint::spin_loop();
        }
        let Reading::Value(counted_ns) = sum(&counters) else { panic!("counted") };
        assert!(counted_ns > 20_000_000, "{counted_ns} ns of more than 50 ms");
    }
}
