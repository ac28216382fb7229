//! What the kernel tells of the server's process.

use linerate_end_to_end::Server;
use std::fs;

/// Anonymous memory that is resident, in bytes.
pub(crate) fn anonymous_bytes(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux tells RssAnon");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Descriptors that are open.
pub(crate) fn open_descriptors(server: &Server) -> u64 {
    fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("the server runs").count() as u64
}
