//! What this process may use: cores, CPU time and memory of its control groups, files, perf events, io_uring.

use std::path::Path;

use linerate_os::{facility, processor};

use crate::{
    Group, Reading,
    facts::{Facts, missing},
    words,
};

pub(crate) fn facts(root: &Path) -> Group {
    let mut facts = Facts::below(root);
    facts.file("kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid");
    facts.file("kernel.io_uring_disabled", "/proc/sys/kernel/io_uring_disabled");
    let limits = facts.text("/proc/self/limits");
    // The soft limit, and the hard one that the server raises it to.
    for (fact, place) in [("open files", 0), ("most open files", 1)] {
        let answer = match &limits {
            Reading::Value(limits) => limits
                .lines()
                .find_map(|line| line.strip_prefix("Max open files"))
                .and_then(|line| line.split_ascii_whitespace().nth(place).map(str::to_owned))
                .map_or_else(|| missing("/proc/self/limits does not tell"), Reading::Value),
            Reading::NotAvailable(reason) => missing(reason.clone()),
        };
        facts.note(fact, answer);
    }
    for (fact, version_2, version_1, none) in [
        ("CPU time", "cpu.max", ("cpu", "cpu.cfs_quota_us"), ["max", "-1"]),
        // Version 1 has no word for "no limit", but the greatest number of whole pages.
        (
            "memory in bytes",
            "memory.max",
            ("memory", "memory.limit_in_bytes"),
            ["max", "9223372036854771712"],
        ),
    ] {
        let answer = control_group(&facts, version_2, version_1, none);
        facts.note(&format!("control group's {fact}"), answer);
    }
    facts.finish()
}

/// The limits that this process's control group and those above it set, by a file of that name.
fn control_group(
    facts: &Facts<'_>,
    version_2: &str,
    (controller, version_1): (&str, &str),
    none: [&str; 2],
) -> Reading<String> {
    let (groups, mounts) = match (facts.text("/proc/self/cgroup"), facts.text("/proc/self/mounts")) {
        (Reading::Value(groups), Reading::Value(mounts)) => (groups, mounts),
        (Reading::NotAvailable(reason), _) | (_, Reading::NotAvailable(reason)) => return missing(reason),
    };
    let mut limits = Vec::new();
    let mut looked_at = false;
    for (mount, group, file) in hierarchies(&groups, &mounts, controller)
        .map(|(mount, group, version)| (mount, group, if version == 2 { version_2 } else { version_1 }))
    {
        // Beneath its own group, and above: the least limit is what holds. A container sees a part of the path only.
        for group in Path::new(group).ancestors() {
            let path = format!("{mount}/{}/{file}", group.display());
            let Reading::Value(limit) = facts.text(&path) else { continue };
            looked_at = true;
            if !none.iter().any(|none| limit.starts_with(none)) {
                limits.push(format!("{} ({file} of /{})", words(&limit), group.display()));
            }
        }
    }
    match (limits.is_empty(), looked_at) {
        (false, _) => Reading::Value(limits.join(", ")),
        (true, true) => Reading::Value("no limit".to_owned()),
        // The root of all groups has no such files, and no limit.
        (true, false) => missing(format!("no control group of this process has {version_2} or {version_1}")),
    }
}

/// Where this process is: mount point, path within, and the version of the hierarchy.
fn hierarchies<'a>(
    groups: &'a str,
    mounts: &'a str,
    controller: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str, u32)> {
    let mounted = move |kind: &'a str, option: Option<&'a str>| {
        mounts.lines().find_map(move |line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let fits = *fields.get(2)? == kind
                && option.is_none_or(|wanted| {
                    fields.get(3).is_some_and(|options| options.split(',').any(|option| option == wanted))
                });
            fits.then(|| fields.get(1).copied()).flatten()
        })
    };
    groups.lines().filter_map(move |line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let group = group.trim_start_matches('/');
        if number == "0" && controllers.is_empty() {
            return Some((mounted("cgroup2", None)?, group, 2));
        }
        let here = controllers.split(',').any(|name| name == controller);
        here.then(|| Some((mounted("cgroup", Some(controller))?, group, 1))).flatten()
    })
}

/// Adds what has to be tried.
pub(crate) fn ask_kernel(group: &mut Group) {
    let cores = match processor::allowed() {
        Ok(cores) => Reading::Value(ranges(&cores)),
        Err(error) => missing(format!("the kernel does not tell: {error}")),
    };
    group.insert("cores that may be used".to_owned(), cores);
    let io_uring = match facility::io_uring() {
        Ok(()) => "permitted".to_owned(),
        Err(error) => format!("not permitted: {error}"),
    };
    group.insert("io_uring".to_owned(), Reading::Value(io_uring));
}

/// Numbers in ascending order as the kernel writes such lists: "0-3,8".
fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let part = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_listed_as_the_kernel_lists_them() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(ranges(&[5]), "5");
        assert_eq!(ranges(&[]), "");
    }
}
