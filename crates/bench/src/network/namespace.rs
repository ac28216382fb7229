//! One network namespace, by the `ip` program: made, entered by commands, and removed.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};

/// What the names of all our namespaces begin with; the id of the process that made one follows.
const PREFIX: &str = "linerate-bench-";

/// Tells the namespaces of one process apart.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A namespace. Dropped, it is removed as soon as its last process has ended.
#[derive(Debug)]
pub(super) struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one. Its loopback is down.
    pub(super) fn make(label: &str) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Machine("network namespaces are needed, which only root may make".to_owned()));
        }
        remove_leftovers();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{label}-{number}", std::process::id());
        run_ip(&["netns", "add", &name])?;
        Ok(Self { name })
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` in it.
    pub(super) fn ip(&self, arguments: &[&str]) -> Result<()> {
        run_ip(&[&["-n", self.name.as_str()], arguments].concat())
    }

    /// Gives `interface` an address, and switches it and the loopback on.
    pub(super) fn bring_up(&self, interface: &str, address: Ipv4Addr) -> Result<()> {
        self.ip(&["address", "add", &format!("{address}/30"), "dev", interface])?;
        self.ip(&["link", "set", "lo", "up"])?;
        self.ip(&["link", "set", interface, "up"])
    }

    /// `command`, run in it. `ip netns exec` replaces itself by the program: the process id is the program's.
    pub(super) fn around(&self, command: Vec<String>) -> Vec<String> {
        let entering = ["ip", "netns", "exec", &self.name].map(str::to_owned);
        entering.into_iter().chain(command).collect()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // There is nobody left to tell; the next run removes what is left.
        let _ = run_ip(&["netns", "delete", &self.name]);
    }
}

/// Removes the namespaces of runs that were killed.
fn remove_leftovers() {
    let Ok(listed) = Command::new("ip").args(["netns", "list"]).output() else { return };
    let is_alive = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    for name in leftovers(&String::from_utf8_lossy(&listed.stdout), is_alive) {
        let _ = run_ip(&["netns", "delete", name]);
    }
}

/// Of what `ip netns list` says, our namespaces whose process has ended.
fn leftovers(listed: &str, is_alive: impl Fn(u32) -> bool) -> Vec<&str> {
    let pid = |name: &str| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok();
    let names = listed.lines().filter_map(|line| line.split_ascii_whitespace().next());
    names.filter(|name| pid(name).is_some_and(|pid| !is_alive(pid))).collect()
}

/// Runs `ip`.
pub(super) fn run_ip(arguments: &[&str]) -> Result<()> {
    run("ip", arguments)
}

/// Runs a program of iproute2's.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let failed = |said: &str| Error::Machine(format!("`{program} {}` failed: {said}", arguments.join(" ")));
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| failed(&format!("{error} (is iproute2 installed?)")))?;
    if output.status.success() { Ok(()) } else { Err(failed(String::from_utf8_lossy(&output.stderr).trim())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_killed_runs_left_is_removed() {
        let listed =
            "linerate-bench-7-server-0 (id: 3)\nother\nlinerate-bench-8-client-1\nlinerate-bench-x\n";
        assert_eq!(leftovers(listed, |pid| pid == 7), ["linerate-bench-8-client-1"]);
    }
}
