//! What a group of processes used: CPU time to the nanosecond, split into user and system, and context switches.
//!
//! A group is the processes that were named, their descendants, and every process in a group or session that one
//! of the named leads: nginx's workers, also after a reload or when its master made itself a daemon.
//!
//! Time of a process is read from its CPU clock, which is exact and keeps the time of threads that have ended. Time of
//! a process that has ended is with the parent that waited for it, in clock ticks (10 ms). How a time divides into
//! user and system only samples tell: the kernel looks at each timer tick what it interrupts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::PathBuf,
    time::Duration,
};

use linerate_os::clock::{self, ProcessClocks};

use super::{
    Error,
    procfs::{self, ProcessStat},
};
use crate::result::Reading;

/// What a group used in a span of time.
#[derive(Clone, Debug)]
pub struct ProcessUse {
    /// CPU seconds in user mode.
    pub user_s: f64,
    /// CPU seconds in the kernel.
    pub system_s: f64,
    /// Times that a thread gave the core up by itself.
    pub voluntary_switches: Reading<u64>,
    /// Times that the core was taken from a thread.
    pub involuntary_switches: Reading<u64>,
    /// Bytes that were fetched from disks on the group's behalf.
    pub disk_read_bytes: Reading<u64>,
}

/// The processes that a group grows from.
#[derive(Clone, Debug, Default)]
pub(super) struct Roots {
    /// Processes that were named. They must be there.
    pub(super) named: Vec<u32>,
    /// Processes that are not followed, with all that is below them: the server, if the client started it.
    pub(super) not: Vec<u32>,
}

/// A group at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    processes: BTreeMap<Identity, Used>,
    /// Voluntary and involuntary switches of each thread.
    switches: BTreeMap<u32, (u64, u64)>,
}

/// Ids are used again; an id with the time of its start is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    pid: u32,
    started_ticks: u64,
}

/// What one process has used since its start.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    parent: u32,
    clocks: ProcessClocks,
    children_user: Duration,
    children_system: Duration,
    /// `None` where it may not be read.
    disk_read_bytes: Option<u64>,
}

/// How often a group is read where its workers keep ending meanwhile.
const READINGS_AT_MOST: u32 = 8;

impl Moment {
    /// Reads what the group of `roots` has used so far.
    pub(super) fn take(roots: &Roots) -> Result<Self, Error> {
        // A worker that ends between the reading of its parent and its own is in neither: then all are read again.
        for _ in 1..READINGS_AT_MOST {
            let (moment, ended) = Self::read(roots)?;
            if !ended {
                return Ok(moment);
            }
        }
        Self::read(roots).map(|(moment, _)| moment)
    }

    /// Reads each once, parents before their children, and tells whether one ended meanwhile.
    fn read(roots: &Roots) -> Result<(Self, bool), Error> {
        let members = members(roots)?;
        let mut moment = Self::default();
        let mut ended = false;
        // Times first, and together: looking at threads takes its time, too.
        for &pid in &members {
            match used(pid)? {
                Some((identity, used)) => drop(moment.processes.insert(identity, used)),
                // A worker may end at any time; a process that was named must be there.
                None if roots.named.contains(&pid) => return Err(Error::Ended { pid }),
                None => ended = true,
            }
        }
        for pid in members {
            moment.switches.extend(thread_switches(pid));
        }
        Ok((moment, ended))
    }

    /// What was used since `before`, of the same roots.
    pub(super) fn since(&self, before: &Self) -> Result<ProcessUse, Error> {
        self.refuse_losses(before)?;
        let run_s = (self.sum(Used::run) - before.sum(Used::run)).max(0.0);
        let user = self.sum(Used::user) - before.sum(Used::user);
        let system = self.sum(Used::system) - before.sum(Used::system);
        let user_share = share(user, system)
            // No sample fell into the span: as it was before, or else as most short runs are.
            .or_else(|| share(self.sum(Used::user), self.sum(Used::system)))
            .unwrap_or(1.0);
        let [voluntary_switches, involuntary_switches] = self.switches_since(before);
        Ok(ProcessUse {
            user_s: run_s * user_share,
            system_s: run_s * (1.0 - user_share),
            voluntary_switches,
            involuntary_switches,
            disk_read_bytes: self.disk_read_since(before),
        })
    }

    fn sum(&self, of: impl Fn(&Used) -> Duration) -> f64 {
        self.processes.values().map(|used| of(used).as_secs_f64()).sum()
    }

    /// A process that ended must have left its time with a parent of the group.
    fn refuse_losses(&self, before: &Self) -> Result<(), Error> {
        let gone = || before.processes.iter().filter(|(identity, _)| !self.processes.contains_key(identity));
        let Some((first, _)) = gone().next() else { return Ok(()) };
        if let Some((orphan, _)) = gone().find(|(_, used)| !self.has_ancestor(before, used.parent)) {
            return Err(Error::Lost { pid: orphan.pid });
        }
        // A parent that ignores SIGCHLD is given nothing. Each time that is handed on is cut to a tick, twice.
        let taken: Duration = gone().map(|(_, used)| used.run().saturating_sub(from_ticks(2))).sum();
        let left: Duration = self
            .processes
            .iter()
            .map(|(identity, now)| {
                let earlier = before.processes.get(identity).map(Used::children).unwrap_or_default();
                now.children().saturating_sub(earlier)
            })
            .sum();
        if left < taken { Err(Error::Lost { pid: first.pid }) } else { Ok(()) }
    }

    /// Whether `pid`, or else one of its parents, was of the group and still is there.
    fn has_ancestor(&self, before: &Self, pid: u32) -> bool {
        let Some((identity, used)) = before.processes.iter().find(|(identity, _)| identity.pid == pid) else {
            return false;
        };
        self.processes.contains_key(identity)
            || (used.parent != pid && self.has_ancestor(before, used.parent))
    }

    fn switches_since(&self, before: &Self) -> [Reading<u64>; 2] {
        let ended = before.switches.keys().filter(|thread| !self.switches.contains_key(thread)).count();
        if ended > 0 {
            let reason = format!("threads ended and took their counts with them: {ended}");
            return [Reading::NotAvailable(reason.clone()), Reading::NotAvailable(reason)];
        }
        if self.switches.is_empty() {
            let reason = "/proc/PID/task/TID/status cannot be read".to_owned();
            return [Reading::NotAvailable(reason.clone()), Reading::NotAvailable(reason)];
        }
        let mut sum = [0_u64; 2];
        for (thread, now) in &self.switches {
            let earlier = before.switches.get(thread).copied().unwrap_or_default();
            sum[0] = sum[0].saturating_add(now.0.saturating_sub(earlier.0));
            sum[1] = sum[1].saturating_add(now.1.saturating_sub(earlier.1));
        }
        sum.map(Reading::Value)
    }

    fn disk_read_since(&self, before: &Self) -> Reading<u64> {
        // A process that ended leaves its bytes with the parent that waited for it, as it does its time.
        let sum =
            |moment: &Self| moment.processes.values().map(|used| used.disk_read_bytes).sum::<Option<u64>>();
        match (sum(self), sum(before)) {
            (Some(now), Some(earlier)) => Reading::Value(now.saturating_sub(earlier)),
            _ => Reading::NotAvailable(
                "/proc/PID/io cannot be read: that takes the server's user, or root".to_owned(),
            ),
        }
    }
}

impl Used {
    fn run(&self) -> Duration {
        self.clocks.run + self.children()
    }

    fn user(&self) -> Duration {
        self.clocks.sampled_user + self.children_user
    }

    fn system(&self) -> Duration {
        self.clocks.sampled.saturating_sub(self.clocks.sampled_user) + self.children_system
    }

    fn children(&self) -> Duration {
        self.children_user + self.children_system
    }
}

/// The part of `user` in both; nothing where neither has anything.
fn share(user: f64, system: f64) -> Option<f64> {
    let (user, system) = (user.max(0.0), system.max(0.0));
    (user + system > 0.0).then(|| user / (user + system))
}

/// The ids of a group, the named ones first.
pub(super) fn members(roots: &Roots) -> Result<Vec<u32>, Error> {
    let path = PathBuf::from("/proc");
    let entries = fs::read_dir(&path).map_err(|source| Error::Unreadable { path, source })?;
    let all: Vec<(u32, ProcessStat)> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        // One that ends meanwhile is none.
        .filter_map(|pid| Some((pid, stat(pid).ok()??)))
        .collect();
    Ok(group(roots, &all))
}

fn group(roots: &Roots, all: &[(u32, ProcessStat)]) -> Vec<u32> {
    let named = &roots.named;
    let mut members = named.clone();
    let mut known: BTreeSet<u32> = named.iter().chain(&roots.not).copied().collect();
    let mut next = 0;
    while let Some(&member) = members.get(next) {
        next += 1;
        let belongs = |stat: &ProcessStat| {
            stat.parent == member || (named.contains(&member) && [stat.group, stat.session].contains(&member))
        };
        for (pid, stat) in all {
            if belongs(stat) && known.insert(*pid) {
                members.push(*pid);
            }
        }
    }
    members
}

/// What the process has used; `None` if there is no such process, or only its remains.
fn used(pid: u32) -> Result<Option<(Identity, Used)>, Error> {
    let clocks = match clock::process_clocks(pid) {
        Ok(clocks) => clocks,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(Error::Unreadable { path: format!("/proc/{pid} (its CPU clock)").into(), source });
        }
    };
    let Some(stat) = stat(pid)?.filter(|stat| !matches!(stat.state, 'Z' | 'X')) else { return Ok(None) };
    let used = Used {
        parent: stat.parent,
        clocks,
        children_user: from_ticks(stat.children_user_ticks),
        children_system: from_ticks(stat.children_system_ticks),
        disk_read_bytes: disk_read_bytes(pid),
    };
    Ok(Some((Identity { pid, started_ticks: stat.started_ticks }, used)))
}

fn stat(pid: u32) -> Result<Option<ProcessStat>, Error> {
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    // A process that is not there any more has no file, or one that answers "no such process".
    let Ok(text) = fs::read(&path) else { return Ok(None) };
    // A name is whatever bytes the process chose.
    procfs::process_stat(&String::from_utf8_lossy(&text)).map(Some).ok_or(Error::NotUnderstood { path })
}

fn disk_read_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes:")?.trim().parse().ok())
}

fn thread_switches(pid: u32) -> Vec<(u32, (u64, u64))> {
    threads(pid)
        .into_iter()
        .filter_map(|thread| {
            let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()?;
            Some((thread, procfs::context_switches(&status)?))
        })
        .collect()
}

/// The threads of a process; none if it is gone.
pub(super) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Resident memory of the processes, without pages of files that they have mapped.
pub(super) fn resident_bytes(pids: &[u32]) -> Reading<u64> {
    let of = |&pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/status")).ok().and_then(|text| procfs::resident_bytes(&text))
    };
    match pids.iter().map(of).sum() {
        Some(bytes) => Reading::Value(bytes),
        None => Reading::NotAvailable("/proc/PID/status does not tell RssAnon and RssShmem".to_owned()),
    }
}

/// A time in clock ticks.
pub(super) fn from_ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests;
