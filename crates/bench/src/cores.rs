//! Which cores the server gets and which the client, and pinning processes to them.

use std::process::{Child, Command};

use linerate_config::CpuList;
use rustix::thread::CpuSet;

use crate::error::{Error, Result};

/// A machine divided between server and client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    /// Of the servers under test.
    pub(crate) server: Vec<usize>,
    /// Of the load client; empty where it runs on other machines.
    pub(crate) client: Vec<usize>,
}

impl Cores {
    /// As asked for, where both may be the only core that there is; otherwise the lower half of the cores that this process may use for servers, and the upper for the
    /// client, or all for servers where the client is elsewhere.
    pub(crate) fn divide(
        server: Option<&CpuList>,
        client: Option<&CpuList>,
        client_is_here: bool,
    ) -> Result<Self> {
        let usable = usable()?;
        Self::divide_of(&usable, server.map(CpuList::as_slice), client.map(CpuList::as_slice), client_is_here)
    }

    fn divide_of(
        usable: &[usize],
        server: Option<&[usize]>,
        client: Option<&[usize]>,
        client_is_here: bool,
    ) -> Result<Self> {
        for core in server.into_iter().chain(client).flatten() {
            if !usable.contains(core) {
                return Err(Error::Asked(format!(
                    "this process may not use core {core}; it may use {usable:?}"
                )));
            }
        }
        let rest = |taken: &[usize]| usable.iter().copied().filter(|core| !taken.contains(core)).collect();
        let (server, client) = match (server, client) {
            (Some(server), Some(client)) => (server.to_vec(), client.to_vec()),
            (Some(server), None) => (server.to_vec(), rest(server)),
            (None, Some(client)) => (rest(client), client.to_vec()),
            (None, None) if client_is_here => {
                let (server, client) = usable.split_at(usable.len() / 2);
                (server.to_vec(), client.to_vec())
            }
            (None, None) => (usable.to_vec(), Vec::new()),
        };
        let client = if client_is_here { client } else { Vec::new() };
        if server.is_empty() || (client_is_here && client.is_empty()) {
            return Err(Error::Machine(
                "server and client need a core each, and this process has only one; let the load come from another \
                 machine (--clients), or have both share it (--server-cpus and --client-cpus): CPU times stand then, \
                 throughput and latency do not"
                    .to_owned(),
            ));
        }
        let is_only_one = usable.len() == 1;
        if let Some(core) = server.iter().find(|core| !is_only_one && client.contains(core)) {
            return Err(Error::Asked(format!("core {core} cannot be both the server's and the client's")));
        }
        Ok(Self { server, client })
    }
}

fn usable() -> Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)
        .map_err(|error| Error::Machine(format!("cannot read which cores this process may use: {error}")))?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

/// `0-3,8`, as taskset and configurations write it.
pub(crate) fn list_text(cores: &[usize]) -> String {
    let list = cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    list.parse::<CpuList>().map_or(list, |list| list.to_string())
}

/// Starts `command` on `cores`; anywhere where there are none. A child process inherits the affinity of the thread that
/// starts it, which has its own back afterwards.
pub(crate) fn spawn_on(cores: &[usize], command: &mut Command) -> std::io::Result<Child> {
    if cores.is_empty() {
        return command.spawn();
    }
    let before = rustix::thread::sched_getaffinity(None)?;
    rustix::thread::sched_setaffinity(None, &set_of(cores))?;
    let child = command.spawn();
    rustix::thread::sched_setaffinity(None, &before)?;
    child
}

/// Has a thread that runs already go on on `cores`; anywhere where there are none.
pub(crate) fn put_on(cores: &[usize], thread: u32) -> std::io::Result<()> {
    if cores.is_empty() {
        return Ok(());
    }
    let thread = i32::try_from(thread).ok().and_then(rustix::process::Pid::from_raw);
    Ok(rustix::thread::sched_setaffinity(thread, &set_of(cores))?)
}

fn set_of(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divide(
        usable: &[usize],
        server: Option<&[usize]>,
        client: Option<&[usize]>,
    ) -> Option<(Vec<usize>, Vec<usize>)> {
        Cores::divide_of(usable, server, client, true).ok().map(|cores| (cores.server, cores.client))
    }

    #[test]
    fn a_machine_is_split_in_halves() {
        assert_eq!(divide(&[0, 1], None, None), Some((vec![0], vec![1])));
        assert_eq!(divide(&[0, 1, 2, 3, 8], None, None), Some((vec![0, 1], vec![2, 3, 8])));
        assert_eq!(divide(&[3], None, None), None);
    }

    #[test]
    fn what_one_side_asks_for_leaves_the_rest_to_the_other() {
        assert_eq!(divide(&[0, 1, 2], Some(&[1]), None), Some((vec![1], vec![0, 2])));
        assert_eq!(divide(&[0, 1, 2], None, Some(&[0])), Some((vec![1, 2], vec![0])));
        assert_eq!(divide(&[0, 1], Some(&[0]), Some(&[0])), None);
        assert_eq!(divide(&[0, 1], Some(&[2]), None), None);
        // Both have the only core where that was said.
        assert_eq!(divide(&[3], Some(&[3]), Some(&[3])), Some((vec![3], vec![3])));
        assert_eq!(divide(&[3], Some(&[3]), None), None);
    }

    #[test]
    fn a_client_elsewhere_leaves_all_to_the_server() {
        let cores = Cores::divide_of(&[0, 1], None, None, false).unwrap();
        assert_eq!((cores.server, cores.client), (vec![0, 1], vec![]));
    }

    #[test]
    fn a_child_is_where_it_was_started_and_its_parent_where_it_was() {
        let before = usable().unwrap();
        let core = *before.last().unwrap();
        let mut command = Command::new("cat");
        command.arg("/proc/self/status").stdout(std::process::Stdio::piped());
        let said = spawn_on(&[core], &mut command).unwrap().wait_with_output().unwrap();
        let status = String::from_utf8(said.stdout).unwrap();
        assert!(status.contains(&format!("Cpus_allowed_list:\t{core}\n")), "{status}");
        assert_eq!(usable().unwrap(), before);
    }

    #[test]
    fn lists_are_written_as_taskset_has_them() {
        assert_eq!(list_text(&[0, 1, 2, 8]), "0-2,8");
    }
}
