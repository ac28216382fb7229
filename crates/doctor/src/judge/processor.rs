//! The processor: clocks, ciphers, where the workers would run.

use linerate_environment::Reading;

use crate::{Facts, Finding, Group, Use};

const GROUP: Group = Group::Processor;

/// Drivers under which "powersave" follows the load, as others' "schedutil" does.
const FOLLOWING_DRIVERS: [&str; 2] = ["intel_pstate", "amd-pstate-epp"];

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    findings.push(ciphers(facts));
    findings.push(governor(facts));
    findings.extend(boost(facts));
    findings.extend(hypervisor(facts));
    findings.push(cores(facts));
    findings.extend(build(facts));
}

fn ciphers(facts: &Facts) -> Finding {
    const NAME: &str = "cpu.ciphers";
    let model = facts.told("cpu", "model").unwrap_or("a processor without a name");
    let flags = match facts.told("cpu", "flags that matter") {
        Ok(flags) => flags,
        Err(reason) => {
            return Finding::note(GROUP, NAME, format!("{model}: its flags are not known: {reason}"));
        }
    };
    let has = |flag: &str| flags.split(' ').any(|one| one == flag);
    match (has("aes"), has("vaes")) {
        (false, _) => Finding::note(
            GROUP,
            NAME,
            format!(
                "{model}: no instructions for AES; ChaCha20-Poly1305 is the cheaper cipher, and is preferred"
            ),
        ),
        (true, true) => {
            Finding::ok(GROUP, NAME, format!("{model}: AES instructions on whole vectors (vaes)"))
        }
        (true, false) => Finding::ok(GROUP, NAME, format!("{model}: AES instructions")),
    }
}

fn governor(facts: &Facts) -> Finding {
    const NAME: &str = "cpu.governor";
    const COMMANDS: &str =
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    let governor = match facts.told("cpu", "governor") {
        Ok(governor) => governor,
        Err(reason) => {
            let text = format!(
                "no governor is to be seen ({reason}): clocks are the hypervisor's or the firmware's"
            );
            return Finding::note(GROUP, NAME, text);
        }
    };
    let driver = facts.told("cpu", "frequency driver").unwrap_or("a driver that is not known");
    if !governor.split(", ").any(|one| one == "powersave") {
        return Finding::ok(GROUP, NAME, format!("governor {governor} ({driver})"));
    }
    if driver.split(", ").all(|one| FOLLOWING_DRIVERS.contains(&one)) {
        let text = format!(
            "governor {governor} ({driver}): clocks follow the load, some time behind it; performance spares bursts of \
             requests the wait, and measurements the doubt"
        );
        return Finding::change(GROUP, NAME, Use::Tuning, text).command(COMMANDS);
    }
    let text =
        format!("governor {governor} ({driver}): cores stay at their lowest frequency, whatever the load");
    Finding::change(GROUP, NAME, Use::Clock, text).command(COMMANDS)
}

fn boost(facts: &Facts) -> Option<Finding> {
    let boost = facts.told("cpu", "boost").ok()?;
    Some(match boost {
        "off" => Finding::note(GROUP, "cpu.boost", "boost is off: steady clocks, below the greatest"),
        on => Finding::ok(GROUP, "cpu.boost", format!("boost is {on}")),
    })
}

fn hypervisor(facts: &Facts) -> Option<Finding> {
    let name = facts.told("cpu", "hypervisor").ok().filter(|name| *name != "none")?;
    let text =
        format!("a virtual machine ({name}): other machines share the processor, and figures vary with them");
    Some(Finding::note(GROUP, "cpu.hypervisor", text))
}

fn cores(facts: &Facts) -> Finding {
    const NAME: &str = "cpu.cores";
    match &facts.cores.usable {
        Reading::Value(cores) => {
            let mut nodes: Vec<usize> = cores.iter().filter_map(|(_, node)| *node).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let spread = match nodes.len() {
                0 | 1 => String::new(),
                count => format!(", on {count} NUMA nodes"),
            };
            let count = cores.len();
            Finding::ok(GROUP, NAME, format!("{count} CPUs may be used, a worker on each{spread}"))
        }
        Reading::NotAvailable(reason) => {
            Finding::note(GROUP, NAME, format!("which CPUs may be used is not known: {reason}"))
        }
    }
}

fn build(facts: &Facts) -> Option<Finding> {
    let profile = facts.told("linerate", "profile").ok().filter(|profile| *profile != "release")?;
    let text =
        format!("this linerate was built for development ({profile}): it costs more than a released one");
    Some(Finding::note(GROUP, "build", text))
}
