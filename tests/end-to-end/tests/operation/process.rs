//! What the kernel tells of the server's process.

use linerate_end_to_end::Server;
use std::{fs, time::Duration};

/// CPU time used so far, user and system, all threads.
pub(crate) fn cpu_time(server: &Server) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("the server runs");
    // The name in parentheses may hold anything; the fields behind it are numbers.
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    let ticks = |index: usize| fields[index].parse::<u64>().expect("a number of ticks");
    // utime and stime are fields 14 and 15 of proc(5), counted from 1 with two before the ")". USER_HZ is 100.
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

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
