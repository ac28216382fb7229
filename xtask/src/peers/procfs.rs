//! Parsers for the few lines of /proc that the accounting needs: text in, numbers out.

/// Seconds that a core has spent since boot, by what it did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CoreTicks {
    /// Idle and waiting for disks.
    pub(crate) idle: u64,
    /// Taken by the hypervisor.
    pub(crate) steal: u64,
}

/// Run time in nanoseconds, the first number of /proc/PID/task/TID/schedstat.
pub(crate) fn run_time_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

/// What /proc/PID/stat says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// The parent's id.
    pub(crate) parent: u32,
    /// User and system time in clock ticks, threads that have ended included.
    pub(crate) cpu_ticks: u64,
    /// The same of its children that have ended and were waited for.
    pub(crate) children_ticks: u64,
}

/// Parses /proc/PID/stat. The second field, the name, may hold spaces and parentheses, so count from its end.
pub(crate) fn process_stat(stat: &str) -> Option<ProcessStat> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let user: u64 = fields.nth(9)?.parse().ok()?;
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (system, children_user, children_system) = (next()?, next()?, next()?);
    Some(ProcessStat { parent, cpu_ticks: user + system, children_ticks: children_user + children_system })
}

/// The line of `core` in /proc/stat.
pub(crate) fn core_ticks(stat: &str, core: usize) -> Option<CoreTicks> {
    let label = format!("cpu{core}");
    let line = stat.lines().find(|line| line.split_ascii_whitespace().next() == Some(label.as_str()))?;
    let fields: Vec<u64> =
        line.split_ascii_whitespace().skip(1).map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(CoreTicks { idle: fields.get(3)? + fields.get(4)?, steal: fields.get(7).copied().unwrap_or(0) })
}

/// A figure in kB out of /proc/PID/status (`RssAnon`, `VmRSS`), in bytes.
pub(crate) fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Whether /proc/PID/net/tcp shows a listening socket on `port` (state 0A is TCP_LISTEN).
pub(crate) fn listens_on(tcp: &str, port: u16) -> bool {
    let suffix = format!(":{port:04X}");
    tcp.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace();
        let local = fields.nth(1);
        local.is_some_and(|local| local.ends_with(&suffix)) && fields.nth(1) == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_starts_with_the_run_time() {
        assert_eq!(run_time_ns("237097 0 2\n"), Some(237_097));
        assert_eq!(run_time_ns(""), None);
        assert_eq!(run_time_ns("x 0 2"), None);
    }

    #[test]
    fn a_process_name_may_look_like_fields() {
        let stat = "42 (a) S 7 (b) R 9 1 1 0 -1 4194560 500 0 0 0 120 30 5 6 20 0 1 0 99 1000 200";
        assert_eq!(process_stat(stat), Some(ProcessStat { parent: 9, cpu_ticks: 150, children_ticks: 11 }));
        assert_eq!(process_stat("42 (nginx) S 7 1"), None);
        assert_eq!(process_stat("no name"), None);
    }

    #[test]
    fn a_core_is_found_by_its_whole_name() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 40 5 6 7 8 0 0\ncpu10 0 0 0 77 0 0 0 1 0 0\n";
        assert_eq!(core_ticks(stat, 1), Some(CoreTicks { idle: 45, steal: 8 }));
        assert_eq!(core_ticks(stat, 10), Some(CoreTicks { idle: 77, steal: 1 }));
        assert_eq!(core_ticks(stat, 0), None);
    }

    #[test]
    fn status_gives_bytes_of_exactly_the_named_line() {
        let status = "Name:\tnginx\nVmRSS:\t    5120 kB\nRssAnon:\t    1024 kB\nRssFile:\t 4 kB\n";
        assert_eq!(status_bytes(status, "RssAnon"), Some(1 << 20));
        assert_eq!(status_bytes(status, "VmRSS"), Some(5 << 20));
        assert_eq!(status_bytes(status, "Rss"), None);
    }

    #[test]
    fn only_a_listening_socket_counts() {
        let tcp = "  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A 0:0\n   \
                   1: 0100007F:20FB 0100007F:D431 01 0:0\n";
        assert!(listens_on(tcp, 8080));
        assert!(!listens_on(tcp, 8443));
        assert!(!listens_on(tcp, 54321));
    }
}
