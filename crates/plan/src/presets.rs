//! The machines and workloads that the program brings, and how one is found by its name.

use linerate_faults::nearest;

use crate::error::{Error, Result};
use crate::{Machine, Workload};

macro_rules! presets {
    ($folder:literal, $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../presets/", $folder, "/", $name, ".toml")))),+]
    };
}

/// Every machine: its name, and its file.
pub const MACHINES: &[(&str, &str)] = presets!(
    "machines",
    "homelab",
    "media-server",
    "netflix-rome-2021",
    "netflix-6122-2020",
    "netflix-2015",
    "xeon-8380-one-core",
    "connectx6-thread",
    "chelsio-t5",
    "chelsio-t6",
    "chelsio-t7",
);

/// Every workload: its name, and its file.
pub const WORKLOADS: &[(&str, &str)] =
    presets!("workloads", "web", "mirror", "bulk", "netflix", "thread-10kb", "thread-100kb");

/// The machine of that name.
///
/// # Errors
/// Where there is none, with the nearest name.
pub fn machine(name: &str) -> Result<Machine> {
    Machine::parse(name, machine_text(name)?)
}

/// The workload of that name.
///
/// # Errors
/// Where there is none, with the nearest name.
pub fn workload(name: &str) -> Result<Workload> {
    Workload::parse(name, workload_text(name)?)
}

/// The file of the machine of that name.
///
/// # Errors
/// Where there is none, with the nearest name.
pub fn machine_text(name: &str) -> Result<&'static str> {
    find("machine", MACHINES, name)
}

/// The file of the workload of that name.
///
/// # Errors
/// Where there is none, with the nearest name.
pub fn workload_text(name: &str) -> Result<&'static str> {
    find("workload", WORKLOADS, name)
}

fn find(what: &str, presets: &[(&str, &'static str)], name: &str) -> Result<&'static str> {
    let found = presets.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let names = || presets.iter().map(|(name, _)| *name);
        let hint = nearest(name, names()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let all = names().collect::<Vec<_>>().join(", ");
        Error::new(format!(
            "there is no {what} \"{name}\"{hint} (there are: {all}; a file of your own ends in .toml)"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_right_and_says_where_it_is_from() {
        for (name, _) in MACHINES {
            assert!(!machine(name).unwrap().source.is_empty(), "{name}");
        }
        for (name, _) in WORKLOADS {
            assert!(!workload(name).unwrap().source.is_empty(), "{name}");
        }
    }

    #[test]
    fn an_unknown_preset_is_answered_with_the_nearest() {
        let error = machine("homelb").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no machine \"homelb\"; did you mean homelab? (there are: "),
            "{error}"
        );
        assert!(workload("webb").unwrap_err().to_string().contains("did you mean web?"));
    }
}
