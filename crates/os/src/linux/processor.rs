//! To which NUMA node a CPU belongs.

/// The NUMA node of a CPU, if the kernel tells (Linux: `/sys/devices/system/cpu/cpuN/nodeM`).
#[must_use]
pub fn node_of(cpu: usize) -> Option<usize> {
    let entries = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}")).ok()?;
    entries.flatten().find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
}
