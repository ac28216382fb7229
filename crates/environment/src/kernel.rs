//! The kernel and its distribution, and how it counts CPU time: what the accounting's figures depend on.

use std::{path::Path, process::Command};

use crate::{
    Group, Reading,
    facts::{Facts, missing},
    value,
};

/// The fact that pages are zeroed when they are allocated: then what is copied into a socket is written twice.
pub const ZEROES_PAGES: &str = "allocated pages are zeroed";

pub(crate) fn facts(root: &Path) -> Group {
    let mut facts = Facts::below(root);
    facts.file("release", "/proc/sys/kernel/osrelease");
    facts.file("version", "/proc/sys/kernel/version");
    distribution(&mut facts);
    facts.file("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let configuration = configuration(&facts);
    let zeroed = zeroes_pages(&facts.text("/proc/cmdline"), &configuration);
    facts.note(ZEROES_PAGES, zeroed.map(|zeroed| if zeroed { "yes" } else { "no" }.to_owned()));
    match configuration {
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

/// Whether the kernel zeroes each page that it allocates: its command line decides, else its configuration (Linux
/// `mm/mm_init.c`, `early_init_on_alloc`; the values are those of `kstrtobool`).
fn zeroes_pages(command_line: &Reading<String>, configuration: &Reading<String>) -> Reading<bool> {
    let words = command_line.value().map_or("", String::as_str).split_ascii_whitespace();
    let mut asked = words.filter_map(|word| word.strip_prefix("init_on_alloc=")).filter_map(|value| {
        match value.to_ascii_lowercase().as_bytes() {
            [b'1' | b'y' | b't', ..] | [b'o', b'n', ..] => Some(true),
            [b'0' | b'n' | b'f', ..] | [b'o', b'f', ..] => Some(false),
            _ => None,
        }
    });
    match asked.next_back() {
        Some(zeroed) => Reading::Value(zeroed),
        None => configuration
            .clone()
            .map(|text| value(&text, '=', "CONFIG_INIT_ON_ALLOC_DEFAULT_ON") == Some("y")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zeroed_as_the_command_line_says_or_else_as_configured() {
        let line = |text: &str| Reading::Value(text.to_owned());
        let [on, off] =
            ["CONFIG_INIT_ON_ALLOC_DEFAULT_ON=y\n", "# CONFIG_INIT_ON_ALLOC_DEFAULT_ON is not set\n"]
                .map(line);
        for (command_line, configuration, zeroed) in [
            ("quiet", &on, true),
            ("quiet", &off, false),
            ("init_on_alloc=0 quiet", &on, false),
            ("init_on_alloc=1 init_on_alloc=off", &on, false),
            ("init_on_alloc=on", &off, true),
            ("init_on_alloc=perhaps", &on, true),
            ("xinit_on_alloc=0", &on, true),
        ] {
            let found = zeroes_pages(&line(command_line), configuration);
            assert_eq!(found, Reading::Value(zeroed), "{command_line}");
        }
        let unknown = missing("no configuration");
        assert_eq!(zeroes_pages(&line("init_on_alloc=y"), &unknown), Reading::Value(true));
        assert!(zeroes_pages(&missing("no command line"), &unknown).value().is_none());
    }
}
