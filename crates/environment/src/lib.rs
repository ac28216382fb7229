//! What this machine is, as measurements keep it and `linerate doctor` judges it: kernel, processor, memory, network, limits, and the versions of what was measured.
//!
//! [`capture`] reads it all, group by group. What cannot be read has its reason in its place ([`Reading`]). Only facts that bear on
//! the price of a byte or explain why an engine did not run are kept, and nothing that names the machine or its owner.

#![forbid(unsafe_code)]

mod adapter;
mod cpu;
mod facts;
mod files;
mod interfaces;
mod kernel;
mod limits;
mod memory;
mod network;
mod reading;
mod software;

use std::{collections::BTreeMap, path::Path};

use linerate_os::facts::Fact;

pub use files::{Files, value, words};
pub use interfaces::{FOLDER as INTERFACES_FOLDER, Interfaces};
pub use kernel::ZEROES_PAGES;
pub use reading::Reading;

/// A group of facts: what is asked, and the answer.
pub type Group = BTreeMap<String, Reading<String>>;

/// Kernel and processor by name, as a calibration keeps them to know its machine again: `Linux 6.12.41`, and what
/// `/proc/cpuinfo` calls the model. `unknown` where they cannot be told.
#[must_use]
pub fn kernel_and_processor() -> (String, String) {
    let root = Path::new("/");
    let named = |group: &Group, fact: &str| {
        group.get(fact).and_then(Reading::value).map_or("unknown", String::as_str).to_owned()
    };
    let mut cpu = BTreeMap::from([("cpu".to_owned(), cpu::facts(root))]);
    ask_system(&mut cpu);
    let model = cpu.get("cpu").map_or_else(|| "unknown".to_owned(), |cpu| named(cpu, "model"));
    (words(&linerate_os::facts::system()), model)
}

/// Reads the environment of this process.
#[must_use]
pub fn capture() -> BTreeMap<String, Group> {
    let root = Path::new("/");
    let mut environment = of_files(root, &Interfaces::own(&Files::below(root)));
    if let Some(cpu) = environment.get_mut("cpu") {
        cpu::ask_processor(cpu);
    }
    for (name, group) in &mut environment {
        if let Some(interface) = name.strip_prefix(adapter::PREFIX) {
            adapter::ask_driver(interface, group);
        }
    }
    let limits = environment.entry("limits".to_owned()).or_default();
    limits::ask_kernel(limits);
    ask_system(&mut environment);
    environment.insert("linerate".to_owned(), software::own());
    environment.insert("software".to_owned(), software::installed());
    environment
}

/// What the system tells in no file takes the place of what no file told.
fn ask_system(environment: &mut BTreeMap<String, Group>) {
    for Fact { group, name, value } in linerate_os::facts::told() {
        let group = environment.entry(group.to_owned()).or_default();
        let is_told = matches!(group.get(name), Some(Reading::Value(_)));
        if !is_told {
            group.insert(name.to_owned(), value.map_or_else(Reading::NotAvailable, Reading::Value));
        }
    }
}

/// What the files below `root` tell: of this machine, or of another whose files were recorded.
fn of_files(root: &Path, interfaces: &Interfaces) -> BTreeMap<String, Group> {
    let mut environment: BTreeMap<String, Group> = [
        ("kernel", kernel::facts(root)),
        ("cpu", cpu::facts(root)),
        ("memory", memory::facts(root)),
        ("network", network::facts(root)),
        ("limits", limits::facts(root)),
    ]
    .map(|(name, group)| (name.to_owned(), group))
    .into();
    for (interface, group) in adapter::facts(root, interfaces) {
        environment.insert(format!("{}{interface}", adapter::PREFIX), group);
    }
    environment
}

#[cfg(test)]
mod tests;
