//! What a slice cost: run time of the serving processes, busy time of both cores, steal.
//!
//! The serving processes' time is read once before and once after a slice, for all of their threads, from
//! /proc/PID/task/TID/schedstat (nanoseconds), or from /proc/PID/stat (clock ticks) where a thread has ended in
//! between or the kernel lacks it. It is user plus system time. Who pays for soft interrupts: without
//! CONFIG_IRQ_TIME_ACCOUNTING (Debian's kernels have it, small VMs' often do not) the task that was interrupted
//! does, and on loopback and veth that is nearly always the sender, in whose `send` the receiver's TCP work runs.
//! With it soft interrupts are charged to nobody. The server core's busy time, given beside it, includes them
//! in both cases. ACKs are processed on the client's core, whichever server is running.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::procfs;

/// A core is taken to be the limit when it is busy for longer than this share of a slice.
pub(crate) const SATURATED: f64 = 0.95;

/// The cores of an experiment.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Cores {
    /// The servers' core.
    pub(crate) server: usize,
    /// The client's core.
    pub(crate) client: usize,
}

/// The counters at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    at: Instant,
    thread_ns: BTreeMap<(u32, u32), u64>,
    process_ns: u64,
    cores: [procfs::CoreTicks; 2],
}

/// What happened between two snapshots.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Usage {
    /// Wall clock.
    pub(crate) wall_s: f64,
    /// Run time of the serving processes.
    pub(crate) server_cpu_s: f64,
    /// Busy time of the server's core, interrupts included.
    pub(crate) server_core_busy_s: f64,
    /// Share of the wall clock in which the server's core was busy.
    pub(crate) server_core_busy: f64,
    /// Share of the wall clock in which the client's core was busy.
    pub(crate) client_core_busy: f64,
    /// CPU time of the client's process, to a clock tick.
    pub(crate) client_cpu_s: f64,
    /// Share of the two cores' time that the hypervisor took.
    pub(crate) steal: f64,
}

impl Usage {
    /// The client could not go faster while the server could have.
    pub(crate) fn client_limited(&self) -> bool {
        self.client_core_busy > SATURATED && self.server_core_busy < SATURATED
    }

    /// Others have used the cores: time that neither server nor client account for. The client's core is allowed
    /// more of it, as interrupts that wake an idle core are charged to nobody (15–20 % of the bulk works).
    pub(crate) fn disturbed(&self) -> bool {
        let on_server_core = (self.server_core_busy_s - self.server_cpu_s) / self.wall_s;
        let on_client_core = self.client_core_busy - self.client_cpu_s / self.wall_s;
        on_server_core > 0.05 || on_client_core > 0.30
    }
}

impl Snapshot {
    /// Reads all counters for the processes `pids`.
    pub(crate) fn take(pids: &[u32], cores: Cores) -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let core = |core: usize| {
            procfs::core_ticks(&stat, core).with_context(|| format!("/proc/stat does not show core {core}"))
        };
        let cores = [core(cores.server)?, core(cores.client)?];
        let mut snapshot = Self { at: Instant::now(), thread_ns: BTreeMap::new(), process_ns: 0, cores };
        for &pid in pids {
            snapshot.add_process(pid)?;
        }
        Ok(snapshot)
    }

    fn add_process(&mut self, pid: u32) -> Result<()> {
        let stat = process_stat(pid)?;
        self.process_ns += stat.cpu_ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second());
        for task in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
            let run_time = fs::read_to_string(task.path().join("schedstat")).ok();
            let thread = task.file_name().to_str().and_then(|name| name.parse().ok());
            if let (Some(thread), Some(ns)) = (thread, run_time.as_deref().and_then(procfs::run_time_ns)) {
                self.thread_ns.insert((pid, thread), ns);
            }
        }
        Ok(())
    }

    /// What was used since `before`.
    pub(crate) fn since(&self, before: &Self) -> Usage {
        let wall_s = self.at.duration_since(before.at).as_secs_f64().max(1e-9);
        let tick_s = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let [server, client] = [0, 1].map(|core| {
            let idle_s = self.cores[core].idle.saturating_sub(before.cores[core].idle) as f64 * tick_s;
            let steal_s = self.cores[core].steal.saturating_sub(before.cores[core].steal) as f64 * tick_s;
            // From idle time, which tickless kernels count exactly; busy time they only sample.
            ((wall_s - idle_s - steal_s).clamp(0.0, wall_s), steal_s)
        });
        Usage {
            wall_s,
            server_cpu_s: self.server_ns_since(before) as f64 / 1e9,
            server_core_busy_s: server.0,
            server_core_busy: server.0 / wall_s,
            client_core_busy: client.0 / wall_s,
            client_cpu_s: 0.0,
            steal: (server.1 + client.1) / (2.0 * wall_s),
        }
    }

    fn server_ns_since(&self, before: &Self) -> u64 {
        let ended = before.thread_ns.keys().any(|thread| !self.thread_ns.contains_key(thread));
        if ended || self.thread_ns.is_empty() {
            return self.process_ns.saturating_sub(before.process_ns);
        }
        let earlier = |thread| before.thread_ns.get(thread).copied().unwrap_or(0);
        self.thread_ns.iter().map(|(thread, ns)| ns.saturating_sub(earlier(thread))).sum()
    }
}

/// Waits until the server has finished what it was given, that is until it uses next to no time, and snapshots.
pub(crate) fn settled(pids: &[u32], cores: Cores) -> Result<Snapshot> {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut earlier = Snapshot::take(pids, cores)?;
    for _ in 0..100 {
        std::thread::sleep(PAUSE);
        let now = Snapshot::take(pids, cores)?;
        if now.since(&earlier).server_cpu_s < 0.001 {
            return Ok(now);
        }
        earlier = now;
    }
    bail!("the server is still at work two seconds after its client has left");
}

/// CPU time of the process `pid` so far, ended threads included, to a clock tick.
pub(crate) fn process_cpu_s(pid: u32) -> Result<f64> {
    Ok(process_stat(pid)?.cpu_ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// CPU time so far of the processes that this one has started and waited for, to a clock tick.
pub(crate) fn ended_children_cpu_s() -> Result<f64> {
    let ticks = process_stat(std::process::id())?.children_ticks;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn process_stat(pid: u32) -> Result<procfs::ProcessStat> {
    let stat =
        fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid} has gone"))?;
    procfs::process_stat(&stat).with_context(|| format!("/proc/{pid}/stat is not understood"))
}

/// A process and all its descendants: nginx's master and worker, or the one process of linerate.
pub(crate) fn process_tree(root: u32) -> Result<Vec<u32>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot read /proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).ok();
        if let Some(stat) = stat.as_deref().and_then(procfs::process_stat) {
            parents.push((pid, stat.parent));
        }
    }
    let mut tree = vec![root];
    let mut next = 0;
    while next < tree.len() {
        let parent = tree[next];
        tree.extend(parents.iter().filter(|(_, its_parent)| *its_parent == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    Ok(tree)
}

/// Resident memory of the processes.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Memory {
    /// Anonymous resident bytes.
    pub(crate) anonymous_bytes: u64,
    /// All resident bytes.
    pub(crate) resident_bytes: u64,
}

/// Adds up the resident memory of `pids`.
pub(crate) fn memory(pids: &[u32]) -> Result<Memory> {
    let mut sum = Memory { anonymous_bytes: 0, resident_bytes: 0 };
    for pid in pids {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))
            .with_context(|| format!("the server process {pid} has gone"))?;
        let bytes = |name| {
            procfs::status_bytes(&status, name).with_context(|| format!("/proc/{pid}/status lacks {name}"))
        };
        sum.anonymous_bytes += bytes("RssAnon")?;
        sum.resident_bytes += bytes("VmRSS")?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(after_ms: u64, threads: &[(u32, u64)], process_ns: u64, ticks: [(u64, u64); 2]) -> Snapshot {
        // A fixed origin is not to be had for `Instant`; differences are all that count.
        thread_local!(static ORIGIN: Instant = Instant::now());
        Snapshot {
            at: ORIGIN.with(|origin| *origin + Duration::from_millis(after_ms)),
            thread_ns: threads.iter().map(|&(thread, ns)| ((1, thread), ns)).collect(),
            process_ns,
            cores: ticks.map(|(idle, steal)| procfs::CoreTicks { idle, steal }),
        }
    }

    #[test]
    fn time_is_summed_over_threads_and_new_ones_count_whole() {
        let before = snapshot(0, &[(1, 1_000), (2, 500)], 0, [(0, 0); 2]);
        let after = snapshot(1_000, &[(1, 3_000), (2, 500), (3, 70)], 0, [(0, 0); 2]);
        assert_eq!(after.server_ns_since(&before), 2_070);
    }

    #[test]
    fn a_thread_that_ended_makes_the_process_total_decide() {
        let before = snapshot(0, &[(1, 1_000), (2, 500)], 10_000_000, [(0, 0); 2]);
        let after = snapshot(1_000, &[(1, 3_000)], 40_000_000, [(0, 0); 2]);
        assert_eq!(after.server_ns_since(&before), 30_000_000);
    }

    #[test]
    fn busy_is_what_is_neither_idle_nor_stolen() {
        let second = rustix::param::clock_ticks_per_second();
        let before = snapshot(0, &[(1, 0)], 0, [(0, 0), (0, 0)]);
        let after = snapshot(2_000, &[(1, 1_000_000_000)], 0, [(second / 2, second / 4), (0, 0)]);
        let usage = after.since(&before);
        assert!((usage.server_core_busy - 0.625).abs() < 0.02, "{usage:?}");
        assert!((usage.client_core_busy - 1.0).abs() < 1e-9, "{usage:?}");
        assert!(usage.disturbed(), "an eighth of the server's core is nobody's");
        let usage = Usage { server_cpu_s: usage.server_core_busy_s, client_cpu_s: 1.5, ..usage };
        assert!(!usage.disturbed());
        assert!(Usage { client_cpu_s: 1.3, ..usage }.disturbed());
        assert!(usage.client_limited());
    }

    #[test]
    fn a_saturated_server_is_not_client_limited() {
        let before = snapshot(0, &[], 0, [(0, 0), (0, 0)]);
        let after = snapshot(1_000, &[], 0, [(0, 0), (0, 0)]);
        assert!(!after.since(&before).client_limited());
    }

    #[test]
    fn this_process_is_in_its_own_tree_and_uses_memory() {
        let pid = std::process::id();
        let tree = process_tree(pid).unwrap();
        assert_eq!(tree[0], pid);
        let memory = memory(&[pid]).unwrap();
        assert!(memory.anonymous_bytes > 0 && memory.resident_bytes >= memory.anonymous_bytes);
    }

    #[test]
    fn own_run_time_is_counted() {
        let cores = Cores { server: 0, client: 0 };
        let pid = std::process::id();
        let before = Snapshot::take(&[pid], cores).unwrap();
        let until = Instant::now() + Duration::from_millis(50);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let used = Snapshot::take(&[pid], cores).unwrap().since(&before);
        assert!(used.server_cpu_s > 0.001 && used.wall_s >= 0.05, "{used:?}");
    }
}
