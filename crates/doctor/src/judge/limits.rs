//! What a process may use: files, CPU time, memory.

use crate::{Facts, Finding, Group, Use};

const GROUP: Group = Group::Limits;

/// The default of `limits.connections`, and some for files that are kept open.
const CONNECTIONS: u64 = 65_536;
const FILES: u64 = CONNECTIONS + 8192;
/// What the unit in deploy/ has.
const ENOUGH: u64 = 524_288;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    findings.push(open_files(facts));
    for (name, fact, what) in [
        ("limits.cpu_time", "control group's CPU time", "CPU time"),
        ("limits.memory", "control group's memory in bytes", "memory"),
    ] {
        findings.push(match facts.told("limits", fact) {
            Ok("no limit") => Finding::ok(GROUP, name, format!("no limit on {what}")),
            Ok(limit) => Finding::note(GROUP, name, format!("a control group limits {what}: {limit}")),
            Err(reason) => {
                Finding::note(GROUP, name, format!("whether {what} is limited is not known: {reason}"))
            }
        });
    }
}

fn open_files(facts: &Facts) -> Finding {
    const NAME: &str = "limits.open_files";
    let most = match facts.told("limits", "most open files") {
        Ok("unlimited") => return Finding::ok(GROUP, NAME, "open files are not limited"),
        Ok(text) => text.parse::<u64>().map_err(|_| format!("\"{text}\" is no number")),
        Err(reason) => Err(reason),
    };
    match most {
        Ok(most) if most < FILES => Finding::change(
            GROUP,
            NAME,
            Use::Limits,
            format!(
                "a process started from here may open {most} files, each connection and each file served being one; by \
                 default up to {CONNECTIONS} connections are taken (limits.connections)"
            ),
        )
        .command(format!("sudo prlimit --pid $$ --nofile={ENOUGH}:{ENOUGH}    # for what this shell starts"))
        .command(format!("LimitNOFILE={ENOUGH}    # in the [Service] section of a unit; deploy/linerate.service has it")),
        Ok(most) => Finding::ok(GROUP, NAME, format!("a process may open {most} files")),
        Err(reason) => Finding::note(GROUP, NAME, format!("the limit of open files is not known: {reason}")),
    }
}
