//! Memory: how much, in which pages, and whether some of it may be elsewhere.

use std::path::Path;

use crate::{
    Group, Reading,
    facts::{Facts, missing},
    value,
};

pub(crate) fn facts(root: &Path) -> Group {
    let mut facts = Facts::below(root);
    let meminfo = facts.text("/proc/meminfo");
    for (fact, name) in [("total", "MemTotal"), ("swap", "SwapTotal")] {
        match &meminfo {
            Reading::Value(text) => facts.found(fact, "/proc/meminfo", value(text, ':', name)),
            Reading::NotAvailable(reason) => facts.note(fact, missing(reason.clone())),
        }
    }
    let huge = match facts.text("/sys/kernel/mm/transparent_hugepage/enabled") {
        // "always [madvise] never": what is chosen is in brackets.
        Reading::Value(choices) => {
            let chosen = choices.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
            Reading::Value(chosen.map_or(choices.clone(), |(chosen, _)| chosen.to_owned()))
        }
        not_available => not_available,
    };
    facts.note("transparent huge pages", huge);
    facts.file("automatic NUMA balancing", "/proc/sys/kernel/numa_balancing");
    facts.finish()
}
