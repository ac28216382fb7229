//! Parsers for what the accounting reads below /proc: text in, numbers out.
//!
//! A line or field that is not there gives `None` or nothing, never zero.

use std::collections::BTreeMap;

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessStat {
    /// One letter: `Z` for a process that has ended and that nobody has waited for.
    pub(super) state: char,
    pub(super) parent: u32,
    pub(super) group: u32,
    pub(super) session: u32,
    /// Of its children that have ended and were waited for, their children included, in clock ticks.
    pub(super) children_user_ticks: u64,
    pub(super) children_system_ticks: u64,
    /// When it was started, in clock ticks since boot: tells two processes with the same id apart.
    pub(super) started_ticks: u64,
}

/// Parses `/proc/PID/stat`. The second field, the name, may hold spaces and parentheses, so count from its end.
pub(super) fn process_stat(stat: &str) -> Option<ProcessStat> {
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
    // proc(5) counts from 1, and the state is its field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    Some(ProcessStat {
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        children_user_ticks: signed_count(field(16)?)?,
        children_system_ticks: signed_count(field(17)?)?,
        started_ticks: field(22)?.parse().ok()?,
    })
}

/// The kernel prints times of children as signed numbers.
fn signed_count(field: &str) -> Option<u64> {
    field.parse::<i64>().ok().map(|ticks| u64::try_from(ticks).unwrap_or(0))
}

/// Voluntary and involuntary context switches out of `/proc/PID/task/TID/status`.
pub(super) fn context_switches(status: &str) -> Option<(u64, u64)> {
    let field = |name| labelled(status, name)?.parse().ok();
    Some((field("voluntary_ctxt_switches")?, field("nonvoluntary_ctxt_switches")?))
}

/// Resident memory out of `/proc/PID/status` that would be gone with the process: anonymous and shared, in bytes.
/// Not the pages of files that it has mapped: they are page cache, and stay.
pub(super) fn resident_bytes(status: &str) -> Option<u64> {
    let bytes = |name| {
        let kilobytes: u64 = labelled(status, name)?.strip_suffix(" kB")?.trim().parse().ok()?;
        kilobytes.checked_mul(1024)
    };
    bytes("RssAnon")?.checked_add(bytes("RssShmem")?)
}

fn labelled<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(label)?.strip_prefix(':')?.trim()))
}

/// One core's line of `/proc/stat`, in clock ticks since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CoreTicks {
    /// `user` and `nice`; time of guests is a part of them.
    pub(super) user: u64,
    pub(super) system: u64,
    pub(super) interrupt: u64,
    pub(super) softirq: u64,
    pub(super) steal: u64,
    /// `idle` and `iowait`.
    pub(super) idle: u64,
}

/// The cores that are on line, out of `/proc/stat`.
pub(super) fn cores(stat: &str) -> BTreeMap<u32, CoreTicks> {
    stat.lines().filter_map(core).collect()
}

fn core(line: &str) -> Option<(u32, CoreTicks)> {
    let mut fields = line.split_ascii_whitespace();
    // The line of all cores together has no number.
    let number = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let tick = |index: usize| ticks.get(index).copied();
    Some((
        number,
        CoreTicks {
            user: tick(0)?.saturating_add(tick(1)?),
            system: tick(2)?,
            idle: tick(3)?.saturating_add(tick(4)?),
            interrupt: tick(5)?,
            softirq: tick(6)?,
            // Since Linux 2.6.11.
            steal: tick(7)?,
        },
    ))
}

/// One field out of `/proc/net/snmp` or `/proc/net/netstat`, which are pairs of lines: names, then values.
pub(super) fn protocol_counter(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_ascii_whitespace().position(|candidate| candidate == name)?;
    values.split_ascii_whitespace().nth(place)?.parse().ok()
}

/// An interface's line of `/proc/net/dev`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InterfaceCounts {
    pub(super) received_bytes: u64,
    pub(super) received_frames: u64,
    pub(super) sent_bytes: u64,
    pub(super) sent_frames: u64,
}

/// The interfaces of `/proc/net/dev`.
pub(super) fn interfaces(dev: &str) -> BTreeMap<String, InterfaceCounts> {
    dev.lines().filter_map(interface).collect()
}

fn interface(line: &str) -> Option<(String, InterfaceCounts)> {
    // A name may hold a colon; what follows the last one are numbers.
    let (name, counts) = line.rsplit_once(':')?;
    let counts: Vec<u64> = counts.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let count = |index: usize| counts.get(index).copied();
    let counts = InterfaceCounts {
        received_bytes: count(0)?,
        received_frames: count(1)?,
        sent_bytes: count(8)?,
        sent_frames: count(9)?,
    };
    Some((name.trim().to_owned(), counts))
}

/// The counters of `/proc/net/tls_stat` that only grow. `TlsCurr…` are states, not counts, and say nothing of a span.
pub(super) fn tls_counters(text: &str) -> BTreeMap<String, u64> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
        })
        .filter(|(name, _)| !name.starts_with("TlsCurr"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_look_like_fields() {
        let stat = "42 (a) S 7 (b) R 9 8 7 0 -1 4194560 500 0 0 0 120 30 5 6 20 0 1 0 99 1000 200";
        let expected = ProcessStat {
            state: 'R',
            parent: 9,
            group: 8,
            session: 7,
            children_user_ticks: 5,
            children_system_ticks: 6,
            started_ticks: 99,
        };
        assert_eq!(process_stat(stat), Some(expected));
        assert_eq!(process_stat("42 (nginx) S 7 1"), None, "cut off");
        assert_eq!(process_stat("no name"), None);
        assert_eq!(process_stat(""), None);
        let strange = stat.replace(" 5 6 ", " -5 6 ");
        assert_eq!(process_stat(&strange).map(|stat| stat.children_user_ticks), Some(0));
    }

    #[test]
    fn status_gives_what_is_the_process_s_own() {
        let status = "Name:\tnginx\nVmRSS:\t 7168 kB\nRssAnon:\t    1024 kB\nRssFile:\t 4096 kB\nRssShmem:\t 2048 kB\n\
                      voluntary_ctxt_switches:\t15\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(resident_bytes(status), Some(3 << 20));
        assert_eq!(context_switches(status), Some((15, 3)));
        assert_eq!(resident_bytes("RssAnon:\t1024 kB\n"), None);
        assert_eq!(resident_bytes("RssAnon:\t1024 pages\nRssShmem:\t1 kB\n"), None);
        assert_eq!(context_switches("nonvoluntary_ctxt_switches:\t3\n"), None);
    }

    #[test]
    fn cores_are_read_and_their_sum_is_not_taken_for_one() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 40 5 6 7 8 1 0\ncpu10 0 0 0 77 0 0 0 1 0 0\nintr 5 6\n\
                    cpu11 1 2 3\n";
        let expected = CoreTicks { user: 3, system: 3, interrupt: 6, softirq: 7, steal: 8, idle: 45 };
        let cores = cores(stat);
        assert_eq!(cores.get(&1), Some(&expected));
        assert_eq!(cores.keys().copied().collect::<Vec<_>>(), [1, 10], "a line that is cut off is left out");
    }

    #[test]
    fn protocol_counters_are_found_by_name() {
        let snmp = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
                    Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs\nTcp: 1 -1 500 700 9\n";
        assert_eq!(protocol_counter(snmp, "Tcp", "RetransSegs"), Some(9));
        assert_eq!(protocol_counter(snmp, "Tcp", "OutSegs"), Some(700));
        assert_eq!(protocol_counter(snmp, "Tcp", "MaxConn"), None, "-1 is no count");
        assert_eq!(protocol_counter(snmp, "Tcp", "Fancy"), None);
        assert_eq!(protocol_counter(snmp, "Udp", "InSegs"), None);
        assert_eq!(protocol_counter("Tcp: OutSegs\n", "Tcp", "OutSegs"), None, "values are missing");
    }

    #[test]
    fn interfaces_are_read_by_name() {
        let dev = "Inter-|   Receive                |  Transmit\n face |bytes packets errs | bytes packets\n\
                   \u{20}   lo: 111 2 0 0 0 0 0 0 111 2 0 0 0 0 0 0\neth0:1:5 6 0 0 0 0 0 0 70 8 0 0 0 0 0 0\nbad: 1 2 3\n";
        let read = interfaces(dev);
        let alias = InterfaceCounts { received_bytes: 5, received_frames: 6, sent_bytes: 70, sent_frames: 8 };
        assert_eq!(read.get("eth0:1"), Some(&alias));
        assert_eq!(read.keys().collect::<Vec<_>>(), ["eth0:1", "lo"]);
    }

    #[test]
    fn states_of_tls_are_not_counters() {
        let text = "TlsCurrTxSw                     \t3\nTlsTxSw                         \t17\nTlsDecryptError\t0\nodd\n";
        let counters = tls_counters(text);
        assert_eq!(counters.get("TlsTxSw"), Some(&17));
        assert_eq!(counters.len(), 2);
    }
}
