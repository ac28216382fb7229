//! What the machine's cores did, from `/proc/stat`.
//!
//! Times there are printed in clock ticks (10 ms). Idle time is exact on kernels that stop the tick while a core is
//! idle (nearly all); user, system and interrupt time are sampled at the tick unless the kernel was built to measure
//! them. So what a core was busy is better known as the rest of the time than as the sum of what it did:
//! [`busy_s`].

use std::collections::BTreeMap;

use super::{Error, procfs, read, unreadable_form};
use crate::result::{CoreTimes, MachineCost};

/// The cores at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    cores: BTreeMap<u32, procfs::CoreTicks>,
}

impl Moment {
    pub(super) fn take() -> Result<Self, Error> {
        let path = "/proc/stat";
        let cores = procfs::cores(&read(path)?);
        if cores.is_empty() { Err(unreadable_form(path)) } else { Ok(Self { cores }) }
    }

    /// What the cores did since `before`; those that were there at both ends.
    pub(super) fn since(&self, before: &Self) -> MachineCost {
        let cores: BTreeMap<u32, CoreTimes> = self
            .cores
            .iter()
            .filter_map(|(&core, now)| Some((core, difference(now, before.cores.get(&core)?))))
            .collect();
        MachineCost { total: sum(cores.values()), cores }
    }
}

fn difference(now: &procfs::CoreTicks, earlier: &procfs::CoreTicks) -> CoreTimes {
    // Some of these are known to go backwards by a little: proc(5) says so of iowait.
    let time_s = |of: fn(&procfs::CoreTicks) -> u64| {
        super::process::from_ticks(of(now).saturating_sub(of(earlier))).as_secs_f64()
    };
    CoreTimes {
        user_s: time_s(|ticks| ticks.user),
        system_s: time_s(|ticks| ticks.system),
        interrupt_s: time_s(|ticks| ticks.interrupt),
        softirq_s: time_s(|ticks| ticks.softirq),
        steal_s: time_s(|ticks| ticks.steal),
        idle_s: time_s(|ticks| ticks.idle),
    }
}

fn sum<'a>(cores: impl Iterator<Item = &'a CoreTimes>) -> CoreTimes {
    cores.fold(CoreTimes::default(), |sum, core| CoreTimes {
        user_s: sum.user_s + core.user_s,
        system_s: sum.system_s + core.system_s,
        interrupt_s: sum.interrupt_s + core.interrupt_s,
        softirq_s: sum.softirq_s + core.softirq_s,
        steal_s: sum.steal_s + core.steal_s,
        idle_s: sum.idle_s + core.idle_s,
    })
}

/// Core seconds in which the machine was neither idle nor taken away by a hypervisor, of `elapsed_s`.
#[must_use]
pub fn busy_s(machine: &MachineCost, elapsed_s: f64) -> f64 {
    machine.cores.values().map(|core| (elapsed_s - core.idle_s - core.steal_s).max(0.0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(stat: &str) -> Moment {
        Moment { cores: procfs::cores(stat) }
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn the_total_is_the_sum_of_the_cores() {
        // A xorshift, so that many different machines are tried, and the same ones each time.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for _ in 0..200 {
            let cores = random(64) + 1;
            let mut stat = || -> String {
                (0..cores)
                    .map(|core| {
                        let fields: Vec<String> = (0..10).map(|_| random(100_000).to_string()).collect();
                        format!("cpu{core} {}\n", fields.join(" "))
                    })
                    .collect()
            };
            // Random at both ends: half of the counters go backwards.
            let (before, after) = (moment(&stat()), moment(&stat()));
            let cost = after.since(&before);
            let summed = |of: fn(&CoreTimes) -> f64| cost.cores.values().map(of).sum::<f64>();
            let fields: [fn(&CoreTimes) -> f64; 6] = [
                |times| times.user_s,
                |times| times.system_s,
                |times| times.interrupt_s,
                |times| times.softirq_s,
                |times| times.steal_s,
                |times| times.idle_s,
            ];
            for of in fields {
                assert!(close(of(&cost.total), summed(of)), "{cost:?}");
                assert!(cost.cores.values().all(|core| of(core) >= 0.0), "{cost:?}");
            }
            assert!(busy_s(&cost, 1.0) >= 0.0);
        }
    }

    #[test]
    fn busy_is_what_is_neither_idle_nor_stolen() {
        let before = moment("cpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n");
        let after = moment("cpu0 9 1 20 100 20 2 3 30 0 0\ncpu1 0 0 0 200 0 0 0 0 0 0\n");
        let cost = after.since(&before);
        let second = rustix::param::clock_ticks_per_second() as f64;
        let expected = CoreTimes {
            user_s: 10.0 / second,
            system_s: 20.0 / second,
            interrupt_s: 2.0 / second,
            softirq_s: 3.0 / second,
            steal_s: 30.0 / second,
            idle_s: 120.0 / second,
        };
        assert_eq!(cost.cores.get(&0), Some(&expected));
        assert!(close(busy_s(&cost, 200.0 / second), 50.0 / second), "{cost:?}");
    }

    #[test]
    fn a_core_that_comes_or_goes_is_left_out() {
        let before = moment("cpu0 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1\n");
        let after = moment("cpu1 2 2 2 2 2 2 2 2\ncpu2 1 1 1 1 1 1 1 1\n");
        assert_eq!(after.since(&before).cores.keys().copied().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn this_machine_is_read() {
        assert!(!Moment::take().expect("Linux").cores.is_empty());
    }
}
