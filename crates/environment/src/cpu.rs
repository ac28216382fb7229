//! The processor: model, what it has for ciphers, clocks, threads, mitigations, and the hypervisor.

use std::{collections::BTreeSet, path::Path};

use linerate_os::facility;

use crate::{
    Group, Reading,
    facts::{Facts, missing},
    value,
};

/// Of x86: what AES-GCM, SHA-256 and copies are made of.
const X86_FLAGS: [&str; 14] = [
    "aes",
    "pclmulqdq",
    "vaes",
    "vpclmulqdq",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "sha_ni",
    "gfni",
    "adx",
    "bmi2",
    "erms",
    "fsrm",
];

/// The same of aarch64.
const ARM_FLAGS: [&str; 10] =
    ["aes", "pmull", "sha1", "sha2", "sha3", "sha512", "asimd", "atomics", "sve", "sve2"];

/// Cores of aarch64 by implementer and part, which is all that they tell (Arm's and Ampere's lists of MIDR values).
const ARM_CORES: [(&str, &str, &str); 11] = [
    ("0x41", "0xd08", "Arm Cortex-A72"),
    ("0x41", "0xd0b", "Arm Cortex-A76"),
    ("0x41", "0xd0c", "Arm Neoverse N1"),
    ("0x41", "0xd40", "Arm Neoverse V1"),
    ("0x41", "0xd49", "Arm Neoverse N2"),
    ("0x41", "0xd4f", "Arm Neoverse V2"),
    ("0x41", "0xd84", "Arm Neoverse V3"),
    ("0x41", "0xd8e", "Arm Neoverse N3"),
    ("0x46", "0x001", "Fujitsu A64FX"),
    ("0xc0", "0xac3", "Ampere-1"),
    ("0xc0", "0xac4", "Ampere-1A"),
];

pub(crate) fn facts(root: &Path) -> Group {
    let mut facts = Facts::below(root);
    match facts.text("/proc/cpuinfo") {
        Reading::Value(cpuinfo) => described(&mut facts, &cpuinfo),
        Reading::NotAvailable(reason) => facts.note("model", missing(reason)),
    }
    topology(&mut facts);
    clocks(&mut facts);
    for name in facts.names("/sys/devices/system/cpu/vulnerabilities") {
        let path = format!("/sys/devices/system/cpu/vulnerabilities/{name}");
        facts.file(&format!("mitigation of {name}"), &path);
    }
    facts.finish()
}

fn described(facts: &mut Facts<'_>, cpuinfo: &str) {
    let place = "/proc/cpuinfo";
    facts.found("model", place, model(cpuinfo));
    facts.found("microcode", place, value(cpuinfo, ':', "microcode"));
    // x86 calls them flags, aarch64 Features.
    let known: Option<(&str, &[&str])> = value(cpuinfo, ':', "flags")
        .map(|flags| (flags, &X86_FLAGS[..]))
        .or_else(|| value(cpuinfo, ':', "Features").map(|flags| (flags, &ARM_FLAGS[..])));
    let Some((flags, wanted)) = known else {
        facts.found("flags that matter", place, None::<String>);
        return;
    };
    let flags: BTreeSet<&str> = flags.split_ascii_whitespace().collect();
    let (has, lacks): (Vec<&str>, Vec<&str>) = wanted.iter().partition(|flag| flags.contains(**flag));
    let list =
        |flags: Vec<&str>| Reading::Value(if flags.is_empty() { "none".to_owned() } else { flags.join(" ") });
    facts.note("flags that matter", list(has));
    facts.note("flags that are missing", list(lacks));
}

fn model(cpuinfo: &str) -> Option<String> {
    // x86 names the model; aarch64 has numbers for the maker and the model of its cores.
    if let Some(name) = value(cpuinfo, ':', "model name") {
        return Some(name.to_owned());
    }
    let (implementer, part) = (value(cpuinfo, ':', "CPU implementer")?, value(cpuinfo, ':', "CPU part")?);
    let known = ARM_CORES.iter().find(|(by, number, _)| (*by, *number) == (implementer, part));
    let numbers = format!("implementer {implementer}, part {part}");
    Some(known.map_or(numbers.clone(), |(_, _, name)| format!("{name} ({numbers})")))
}

fn topology(facts: &mut Facts<'_>) {
    facts.file("cores on line", "/sys/devices/system/cpu/online");
    let smt = match facts.text("/sys/devices/system/cpu/smt/active") {
        Reading::Value(active) if active == "1" => Reading::Value("on".to_owned()),
        Reading::Value(_) => Reading::Value("off".to_owned()),
        not_available => not_available,
    };
    facts.note("SMT", smt);
    let packages = each_core(facts, "topology/physical_package_id");
    let count = packages.map(|packages| packages.len().to_string());
    facts.note("sockets", count);
    facts.file("NUMA nodes", "/sys/devices/system/node/online");
    for (index, name) in [("index2", "level 2 cache"), ("index3", "level 3 cache")] {
        facts.file(name, &format!("/sys/devices/system/cpu/cpu0/cache/{index}/size"));
    }
}

fn clocks(facts: &mut Facts<'_>) {
    for (fact, file) in [("governor", "scaling_governor"), ("frequency driver", "scaling_driver")] {
        let all = each_core(facts, &format!("cpufreq/{file}"));
        facts.note(fact, all.map(|all| all.into_iter().collect::<Vec<_>>().join(", ")));
    }
    facts.file("greatest frequency in kHz", "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    let boost = match facts.text("/sys/devices/system/cpu/cpufreq/boost") {
        Reading::Value(on) => Reading::Value(on == "1"),
        Reading::NotAvailable(reason) => match facts.text("/sys/devices/system/cpu/intel_pstate/no_turbo") {
            Reading::Value(off) => Reading::Value(off == "0"),
            Reading::NotAvailable(other) => missing(format!("{reason}, and {other}")),
        },
    };
    facts.note("boost", boost.map(|on| if on { "on" } else { "off" }.to_owned()));
}

/// What the cores' files of that name say: usually the same.
fn each_core(facts: &Facts<'_>, file: &str) -> Reading<BTreeSet<String>> {
    let is_core =
        |name: &String| name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok());
    let values: BTreeSet<String> = facts
        .names("/sys/devices/system/cpu")
        .into_iter()
        .filter(is_core)
        .filter_map(|core| match facts.text(&format!("/sys/devices/system/cpu/{core}/{file}")) {
            Reading::Value(value) => Some(value),
            Reading::NotAvailable(_) => None,
        })
        .collect();
    if values.is_empty() {
        return missing(format!("there is no /sys/devices/system/cpu/cpu*/{file}"));
    }
    Reading::Value(values)
}

/// Adds what only the processor itself can tell.
pub(crate) fn ask_processor(group: &mut Group) {
    let hypervisor = if cfg!(target_arch = "x86_64") {
        Reading::Value(facility::hypervisor().unwrap_or_else(|| "none".to_owned()))
    } else {
        missing("only processors of x86-64 name their hypervisor")
    };
    group.insert("hypervisor".to_owned(), hypervisor);
}
