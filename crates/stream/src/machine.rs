//! What all of a machine's cores did, from `/proc/stat`.
//!
//! Busy is what is not idle: idle time is exact on kernels that stop the tick of an idle core (nearly all); what a core did
//! is sampled.

use crate::report::MachineTime;
use std::fs;

/// The cores at one moment, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    cores: u32,
    all: u64,
    idle: u64,
    stolen: u64,
}

impl Moment {
    /// Now; nothing where the system does not tell.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line has the sums of all cores: user, nice, system, idle, waiting for a disk, interrupts, soft interrupts,
    /// stolen; guests' time, which follows, is in user's (proc(5)).
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let sums = lines.next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = sums.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen, ..] = ticks[..] else {
            return None;
        };
        let cores = lines.take_while(|line| line.starts_with("cpu")).count();
        Some(Self {
            cores: u32::try_from(cores).ok()?,
            all: user + nice + system + idle + waiting + interrupts + soft_interrupts + stolen,
            idle: idle + waiting,
            stolen,
        })
    }

    /// What the cores did since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> MachineTime {
        let tick_s = 1.0 / rustix::param::clock_ticks_per_second().max(1) as f64;
        // Some of these are known to go backwards by a little.
        let all = self.all.saturating_sub(earlier.all);
        let idle = self.idle.saturating_sub(earlier.idle);
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        let busy = all.saturating_sub(idle).saturating_sub(stolen);
        MachineTime { cores: self.cores, busy_s: busy as f64 * tick_s, stolen_s: stolen as f64 * tick_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_is_neither_idle_nor_stolen() {
        let moment = |sums: &str| Moment::parse(&format!("cpu  {sums}\ncpu0 1\ncpu1 1\nintr 5\n")).unwrap();
        let earlier = moment("100 0 100 1000 50 0 0 10 3 0");
        let later = moment("200 10 150 1100 60 5 35 40 3 0");
        let tick_s = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let time = later.since(&earlier);
        assert_eq!(time.cores, 2);
        assert!((time.busy_s - 200.0 * tick_s).abs() < 1e-9, "{time:?}");
        assert!((time.stolen_s - 30.0 * tick_s).abs() < 1e-9, "{time:?}");
        assert_eq!(Moment::parse("cpu 1 2 3\n"), None);
        assert_eq!(Moment::parse(""), None);
        assert!(Moment::now().is_some_and(|now| now.cores >= 1));
    }
}
