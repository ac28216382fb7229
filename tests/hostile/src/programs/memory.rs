//! Load in little memory.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use anyhow::Result;

use super::holds_within;
use crate::{
    Arena, Findings, Row, Wishes,
    arena::PROBE,
    cleanup::{self, Guard, Leftover},
    load::{self, Load},
    probe,
    visitor::PATIENCE,
};

const LARGE: (&str, usize) = ("memory.bin", 33_554_467);
const LIMIT_BYTES: u64 = 64 * 1024 * 1024;
/// Address space holds mappings of files and threads' stacks, which take no memory.
const ADDRESS_SPACE_BYTES: u64 = 1024 * 1024 * 1024;

/// A control group with a limit of memory.
struct ControlGroup {
    path: PathBuf,
    _guard: Guard,
}

impl ControlGroup {
    /// Version 2 if it is there with its memory controller, else version 1.
    fn new() -> Result<Self, String> {
        let name = format!("linerate-hostile-{}", process::id());
        let mut reasons = Vec::new();
        for (parent, file, what) in [
            ("/sys/fs/cgroup", "memory.max", "control groups version 2"),
            ("/sys/fs/cgroup/unified", "memory.max", "control groups version 2, unified"),
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "control groups version 1"),
        ] {
            match Self::make(Path::new(parent), &name, file) {
                Ok(group) => return Ok(group),
                Err(why) => reasons.push(format!("{what}: {why}")),
            }
        }
        Err(reasons.join("; "))
    }

    fn make(parent: &Path, name: &str, file: &str) -> Result<Self, String> {
        if !parent.join("cgroup.procs").exists() {
            return Err("not mounted".to_owned());
        }
        let path = parent.join(name);
        fs::create_dir(&path).map_err(|error| error.to_string())?;
        let guard = cleanup::enter(Leftover::ControlGroup(path.clone()));
        let limit = path.join(file);
        if !limit.exists() {
            return Err("no memory controller".to_owned());
        }
        fs::write(limit, LIMIT_BYTES.to_string()).map_err(|error| error.to_string())?;
        Ok(Self { path, _guard: guard })
    }

    /// Processes that the kernel has killed for want of memory.
    fn killed(&self) -> u64 {
        ["memory.events", "memory.oom_control"]
            .iter()
            .filter_map(|file| fs::read_to_string(self.path.join(file)).ok())
            .flat_map(|text| {
                let count = text.lines().find_map(|line| line.strip_prefix("oom_kill ").map(str::to_owned));
                count.and_then(|count| count.trim().parse::<u64>().ok())
            })
            .sum()
    }
}

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    let mut findings = Findings::default();
    if let Some(why) = arena.why_not_started() {
        findings.skip("all of it", why);
        return Ok(findings);
    }
    arena.content.add(LARGE.0, LARGE.1)?;
    forget(&arena.content.folder.join(LARGE.0))?;
    match ControlGroup::new() {
        Ok(group) => {
            let wishes = Wishes { control_group: Some(group.path.clone()), ..Wishes::default() };
            loaded(&mut findings, arena, &wishes, "64 MiB of memory, page cache included", || {
                group.killed()
            })?;
        }
        Err(why) => {
            findings.skip("a control group", why);
            let wishes = Wishes { address_space_bytes: Some(ADDRESS_SPACE_BYTES), ..Wishes::default() };
            loaded(&mut findings, arena, &wishes, "1 GiB of address space", || 0)?;
        }
    }
    Ok(findings)
}

/// Pages that this program has written are charged to its own group: the server has to read the file itself.
fn forget(path: &Path) -> Result<()> {
    let file = fs::File::open(path)?;
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}

fn loaded(
    findings: &mut Findings,
    arena: &Arena,
    wishes: &Wishes,
    what: &str,
    killed: impl Fn() -> u64,
) -> Result<()> {
    let mut server = arena.start(wishes)?;
    let connections = arena.form.pick(32, 256);
    let names = [LARGE.0, PROBE.0];
    let load = Load::start(&server.visitor(), &names, arena.content.root.clone(), connections, false);
    std::thread::sleep(arena.form.pick(Duration::from_secs(3), Duration::from_secs(30)));
    let report = load.finish()?;
    let killed = killed();
    let serves = server.is_running() && holds_within(PATIENCE, || probe::serves(&server.visitor()));
    let did = format!(
        "{}; {:.1} GB came; {}, {killed} processes killed for want of memory",
        load::say(&report),
        report.totals.body_bytes as f64 / 1e9,
        if serves { "serves after it" } else { "does not serve after it" },
    );
    findings.row(
        Row::new(format!("{what}, {connections} connections"), did)
            .expects(
                "no request fails, no wrong bytes, nothing is killed",
                load::failures(&report) == 0 && report.totals.responses > 0 && serves && killed == 0,
            )
            .figure("requests", report.totals.requests)
            .figure("failures", load::failures(&report)),
    );
    Ok(())
}
