//! Bytes that went over the memory bus, by the counters of the memory controllers.
//!
//! Intel's server processors show them as `uncore_imc_N` with the events `cas_count_read` and `cas_count_write`, AMD's
//! (Zen 4 and later) as `amd_umc_N`; each event is the transfer of a cache line of 64 bytes. They count
//! for the whole machine, for every process.

use std::{
    fs,
    path::{Path, PathBuf},
};

use linerate_os::perf::{Counter, Event, Of};

use super::hardware;
use crate::result::Reading;

/// Where the kernel shows sources of events.
pub(super) const EVENT_SOURCES: &str = "/sys/bus/event_source/devices";

/// Bytes for each event.
const CACHE_LINE_BYTES: u64 = 64;

/// AMD's encoding of "column address strobes for reads and writes" (the kernel's
/// tools/perf/pmu-events/arch/x86/amdzen4/memory-controller.json: `umc_cas_cmd.all`).
const AMD_ALL_TRANSFERS: u64 = 0x0a;

/// Counters that are running.
#[derive(Debug)]
pub(super) struct Running(Reading<Vec<Counter>>);

impl Running {
    /// Begins to count what is found below `event_sources`.
    pub(super) fn start(event_sources: &Path) -> Self {
        let found = match find(event_sources) {
            Ok(found) => found,
            Err(reason) => return Self(Reading::NotAvailable(reason)),
        };
        let mut counters = Vec::with_capacity(found.len());
        for (event, core) in found {
            match Counter::start(event, Of::Core(core)) {
                Ok(counter) => counters.push(counter),
                Err(error) => return Self(Reading::NotAvailable(hardware::meaning(&error))),
            }
        }
        Self(Reading::Value(counters))
    }

    /// Bytes moved so far.
    pub(super) fn bytes(&self) -> Reading<u64> {
        hardware::sum(&self.0).map(|lines| lines.saturating_mul(CACHE_LINE_BYTES))
    }
}

/// The events to count, and the core that stands for each one's socket.
fn find(event_sources: &Path) -> Result<Vec<(Event, u32)>, String> {
    let entries = fs::read_dir(event_sources).map_err(|error| {
        format!("cannot list {}: {error}: this kernel shows no sources of events", event_sources.display())
    })?;
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let folder = entry.path();
        // `uncore_imc_free_running_N`, of client processors, count the same bytes again.
        let controller =
            |prefix| name.strip_prefix(prefix).is_some_and(|rest: &str| rest.parse::<u32>().is_ok());
        let configs = if controller("uncore_imc_") {
            ["cas_count_read", "cas_count_write"]
                .into_iter()
                .map(|event| config(&folder, event))
                .collect::<Result<Vec<u64>, String>>()?
        } else if controller("amd_umc_") {
            vec![AMD_ALL_TRANSFERS]
        } else {
            continue;
        };
        let source = text(&folder.join("type"))?
            .parse()
            .map_err(|_| format!("{} does not say its type", folder.display()))?;
        for core in listed(&text(&folder.join("cpumask"))?) {
            found.extend(configs.iter().map(|&config| (Event { source, config }, core)));
        }
    }
    if found.is_empty() {
        return Err(
            "no counters of the memory controller (uncore_imc, amd_umc): virtual machines and small \
                    processors show none"
                .to_owned(),
        );
    }
    Ok(found)
}

/// An event's number: its terms ("event=0x04,umask=0x03"), each put where `format/` says ("config:8-15").
fn config(folder: &Path, event: &str) -> Result<u64, String> {
    let path = folder.join("events").join(event);
    let not_understood = |path: &PathBuf| format!("{} is of a form that is not known", path.display());
    let mut config = 0;
    for term in text(&path)?.split(',') {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = value
            .strip_prefix("0x")
            .map_or_else(|| value.parse(), |digits| u64::from_str_radix(digits, 16))
            .map_err(|_| not_understood(&path))?;
        let format = folder.join("format").join(name);
        let shift = text(&format)?
            .strip_prefix("config:")
            .and_then(|bits| bits.split('-').next()?.parse::<u32>().ok())
            .filter(|&shift| shift < u64::BITS)
            .ok_or_else(|| not_understood(&format))?;
        config |= value << shift;
    }
    Ok(config)
}

fn text(path: &Path) -> Result<String, String> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(text.trim().to_owned())
}

/// Numbers out of a list as the kernel writes it: "0,24" or "0-1".
fn listed(list: &str) -> Vec<u32> {
    list.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            // No machine has as many sockets as a damaged list could name.
            Some((first.trim().parse().ok()?..=last.trim().parse().ok()?).take(4096))
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, content).expect("written");
        }
    }

    #[test]
    fn the_controllers_of_two_sockets_are_found() {
        // As two sockets of Ice Lake show it.
        let root = tempfile::tempdir().expect("a directory");
        write(
            root.path(),
            &[
                ("uncore_imc_3/type", "18\n"),
                ("uncore_imc_3/cpumask", "0,32\n"),
                ("uncore_imc_3/format/event", "config:0-7\n"),
                ("uncore_imc_3/format/umask", "config:8-15\n"),
                ("uncore_imc_3/events/cas_count_read", "event=0x04,umask=0x0f\n"),
                ("uncore_imc_3/events/cas_count_write", "event=0x04,umask=0x30\n"),
                ("uncore_imc_free_running_0/type", "40\n"),
                ("uncore_cha_0/type", "22\n"),
            ],
        );
        let mut found = find(root.path()).expect("found");
        found.sort_by_key(|(event, core)| (*core, event.config));
        let expected = [(0x0f04, 0), (0x3004, 0), (0x0f04, 32), (0x3004, 32)];
        assert_eq!(found, expected.map(|(config, core)| (Event { source: 18, config }, core)));
    }

    #[test]
    fn amd_s_controllers_are_found() {
        let root = tempfile::tempdir().expect("a directory");
        write(root.path(), &[("amd_umc_0/type", "31\n"), ("amd_umc_0/cpumask", "0\n")]);
        let all = Event { source: 31, config: AMD_ALL_TRANSFERS };
        assert_eq!(find(root.path()), Ok(vec![(all, 0)]));
    }

    #[test]
    fn what_is_damaged_or_missing_has_a_reason() {
        let root = tempfile::tempdir().expect("a directory");
        assert!(find(root.path()).expect_err("none").contains("memory controller"));
        assert!(find(&root.path().join("nowhere")).expect_err("none").contains("cannot list"));
        write(
            root.path(),
            &[
                ("uncore_imc_0/format/event", "config1:0-7\n"),
                ("uncore_imc_0/events/cas_count_read", "event=0x04\n"),
            ],
        );
        assert!(find(root.path()).expect_err("another word").contains("format/event"));
        write(root.path(), &[("uncore_imc_0/format/event", "config:90\n")]);
        assert!(find(root.path()).expect_err("no such bit").contains("format/event"));
    }

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(listed("0,24"), [0, 24]);
        assert_eq!(listed("0-2,7"), [0, 1, 2, 7]);
        assert!(listed("").is_empty());
        assert_eq!(listed("0-4294967295").len(), 4096);
    }
}
