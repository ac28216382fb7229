//! The kernel and its distribution, and how it counts CPU time: what the accounting's figures depend on.

use std::{path::Path, process::Command};

use crate::{
    Group, Reading,
    facts::{Facts, missing},
    value,
};

pub(crate) fn facts(root: &Path) -> Group {
    let mut facts = Facts::below(root);
    facts.file("release", "/proc/sys/kernel/osrelease");
    facts.file("version", "/proc/sys/kernel/version");
    distribution(&mut facts);
    facts.file("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match configuration(&facts) {
        Reading::Value(configuration) => configured(&mut facts, &configuration),
        Reading::NotAvailable(reason) => {
            for fact in ["soft interrupts charged to", "user and system time", "ticks a second"] {
                facts.note(fact, missing(reason.clone()));
            }
        }
    }
    facts.finish()
}

fn distribution(facts: &mut Facts<'_>) {
    let answer = match facts.text("/etc/os-release") {
        Reading::Value(text) => {
            facts.found("distribution", "/etc/os-release", value(&text, '=', "PRETTY_NAME"));
            return;
        }
        not_available => not_available,
    };
    facts.note("distribution", answer);
}

/// The kernel's build configuration: beside the kernel, or in it.
fn configuration(facts: &Facts<'_>) -> Reading<String> {
    if let Reading::Value(release) = facts.text("/proc/sys/kernel/osrelease") {
        let beside = facts.text(&format!("/boot/config-{release}"));
        if beside.value().is_some() {
            return beside;
        }
    }
    let compressed = Command::new("zcat").arg(facts.path("/proc/config.gz")).output();
    match compressed {
        Ok(output) if output.status.success() => {
            Reading::Value(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        _ => missing("the kernel's configuration is neither in /boot nor in /proc/config.gz"),
    }
}

fn configured(facts: &mut Facts<'_>, configuration: &str) {
    let has = |option: &str| value(configuration, '=', option) == Some("y");
    let soft_interrupts = if has("CONFIG_IRQ_TIME_ACCOUNTING") {
        "nobody (CONFIG_IRQ_TIME_ACCOUNTING): look at the machine's figures as well"
    } else if has("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE") {
        "nobody (CONFIG_VIRT_CPU_ACCOUNTING_NATIVE): look at the machine's figures as well"
    } else {
        "the thread that they interrupt: on loopback and veth nearly always the sender"
    };
    facts.note("soft interrupts charged to", Reading::Value(soft_interrupts.to_owned()));
    let division = if has("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE") {
        "measured at each entry and exit"
    } else if has("CONFIG_VIRT_CPU_ACCOUNTING_GEN") {
        "measured at each entry and exit on cores of nohz_full=, sampled at the tick elsewhere"
    } else {
        "sampled at the tick"
    };
    facts.note("user and system time", Reading::Value(division.to_owned()));
    facts.found("ticks a second", "the kernel's configuration", value(configuration, '=', "CONFIG_HZ"));
}
