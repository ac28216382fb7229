//! What the figures depend on: machine, kernel, versions. Printed first and kept with the results.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::accounting::{Cores, Snapshot};

/// Share of a second in which a core may be busy before the machine is called so.
const QUIET: f64 = 0.05;

/// The machine and the programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Environment {
    /// Label and value, in the order they are printed.
    pub(crate) facts: Vec<(String, String)>,
    /// What a reader of the figures must know.
    pub(crate) warnings: Vec<String>,
}

impl Environment {
    /// Looks around; takes a second, to see whether the machine is busy.
    pub(crate) fn capture(workspace: &Path, cores: Cores) -> Result<Self> {
        let facts = [
            ("command", std::env::args().skip(1).collect::<Vec<_>>().join(" ")),
            ("commit", commit(workspace)),
            ("CPU", cpu_model(&read("/proc/cpuinfo"))),
            (
                "cores",
                format!(
                    "server {}, client {}, of {}",
                    cores.server,
                    cores.client,
                    core_count(&read("/proc/stat"))
                ),
            ),
            ("virtual machine", virtual_machine(&read("/proc/cpuinfo"))),
            ("governor", read_or("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "not to be seen")),
            (
                "kernel",
                format!("{} {}", read("/proc/sys/kernel/osrelease"), read("/proc/sys/kernel/version")),
            ),
            ("congestion control", read("/proc/sys/net/ipv4/tcp_congestion_control")),
            ("tcp_wmem / tcp_rmem", buffers()),
            ("transparent huge pages", read("/sys/kernel/mm/transparent_hugepage/enabled")),
            ("soft interrupts charged to", soft_interrupts().to_string()),
        ];
        let facts = facts.map(|(label, value)| (label.to_string(), value)).to_vec();
        Ok(Self { facts, warnings: busy_cores(cores)? })
    }

    /// Prints everything.
    pub(crate) fn print(&self) {
        for (label, value) in &self.facts {
            println!("{label:>27}: {value}");
        }
        for warning in &self.warnings {
            println!("{:>27}: {warning}", "WARNING");
        }
    }
}

fn busy_cores(cores: Cores) -> Result<Vec<String>> {
    let before = Snapshot::take(&[], cores)?;
    std::thread::sleep(Duration::from_secs(1));
    let usage = Snapshot::take(&[], cores)?.since(&before);
    let busy = [(cores.server, usage.server_core_busy), (cores.client, usage.client_core_busy)];
    Ok(busy
        .into_iter()
        .filter(|&(_, share)| share > QUIET)
        .map(|(core, share)| {
            let percent = share * 100.0;
            format!("core {core} is {percent:.0} % busy with something else: do not trust these figures")
        })
        .collect())
}

fn commit(workspace: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(workspace).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_string() };
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit} with changes"),
    }
}

fn cpu_model(cpuinfo: &str) -> String {
    // x86 names the model; aarch64 only numbers implementer and part.
    let field = |key: &str| {
        cpuinfo.lines().find(|line| line.starts_with(key))?.split_once(':').map(|(_, value)| value.trim())
    };
    let numbers = || Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    field("model name").map(str::to_string).or_else(numbers).unwrap_or_else(|| "unknown".to_string())
}

fn virtual_machine(cpuinfo: &str) -> String {
    let flagged = cpuinfo.lines().any(|line| {
        line.starts_with("flags") && line.split_ascii_whitespace().any(|flag| flag == "hypervisor")
    });
    if flagged { "yes".to_string() } else { "not to be seen".to_string() }
}

/// Counted in /proc/stat: this process is pinned and would only see its own core.
fn core_count(stat: &str) -> usize {
    stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count()
}

fn buffers() -> String {
    let kept = ["tcp_wmem", "tcp_rmem"].map(|name| read(&format!("/proc/sys/net/ipv4/{name}")));
    kept.map(|limits| limits.split_ascii_whitespace().collect::<Vec<_>>().join(" ")).join(" / ")
}

/// By the kernel's configuration, where it can be read.
fn soft_interrupts() -> &'static str {
    let release = read("/proc/sys/kernel/osrelease");
    let compressed = Command::new("zcat").arg("/proc/config.gz").output();
    let configuration = match compressed {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => fs::read_to_string(format!("/boot/config-{release}")).unwrap_or_default(),
    };
    if configuration.is_empty() {
        "unknown (the kernel's configuration cannot be read)"
    } else if configuration.lines().any(|line| line == "CONFIG_IRQ_TIME_ACCOUNTING=y") {
        "nobody (CONFIG_IRQ_TIME_ACCOUNTING): look at the ratios by core as well"
    } else {
        "the interrupted process, nearly always the sender"
    }
}

fn read(path: &str) -> String {
    read_or(path, "unknown")
}

fn read_or(path: &str, otherwise: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| otherwise.to_string(), |text| text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_named_on_both_architectures() {
        assert_eq!(cpu_model("processor : 0\nmodel name\t: AMD EPYC\nflags : x\n"), "AMD EPYC");
        let arm = "processor : 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu_model(arm), "implementer 0x41 part 0xd0c");
        assert_eq!(cpu_model(""), "unknown");
        assert_eq!(core_count("cpu  1 2\ncpu0 1 2\ncpu1 0 0\nintr 5\n"), 2);
        assert_eq!(virtual_machine("flags\t\t: fpu hypervisor\n"), "yes");
    }
}
