//! The experiments that the program brings, and how one is found by its name.

use std::path::Path;

use linerate_faults::nearest;

use super::Definition;
use crate::error::{Error, Result};
use crate::streams;

/// Every built-in experiment: its name, and its file.
pub const EXPERIMENTS: &[(&str, &str)] = &[
    ("t7-connections", include_str!("../../experiments/t7-connections.toml")),
    ("file-size", include_str!("../../experiments/file-size.toml")),
    ("in-step", include_str!("../../experiments/in-step.toml")),
    ("keep-alive", include_str!("../../experiments/keep-alive.toml")),
    ("full-handshakes", include_str!("../../experiments/full-handshakes.toml")),
    ("idle", include_str!("../../experiments/idle.toml")),
    ("memory", include_str!("../../experiments/memory.toml")),
    ("disk", include_str!("../../experiments/disk.toml")),
    ("slow", include_str!("../../experiments/slow.toml")),
    ("engines", include_str!("../../experiments/engines.toml")),
    ("long-lived", include_str!("../../experiments/long-lived.toml")),
    ("handshakes", include_str!("../../experiments/handshakes.toml")),
    ("ciphers", include_str!("../../experiments/ciphers.toml")),
    ("never-lose", include_str!("../../experiments/never-lose.toml")),
    ("nfs", include_str!("../../experiments/nfs.toml")),
];

/// The largest file that is taken for an experiment's.
const MOST_BYTES: u64 = 1 << 20;

/// The file of the built-in experiment `name`.
///
/// # Errors
/// Where there is none, with the nearest name.
pub fn text(name: &str) -> Result<&'static str> {
    let all = || EXPERIMENTS.iter().chain(streams::EXPERIMENTS);
    let found = all().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let names = || all().map(|(name, _)| *name);
        let hint = nearest(name, names()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let all = names().collect::<Vec<_>>().join(", ");
        Error::Asked(format!(
            "there is no experiment \"{name}\"{hint} (there are: {all}; a file of your own ends in .toml)"
        ))
    })
}

/// The experiment `asked`: a built-in one by its name, or a file whose name ends in `.toml`.
///
/// # Errors
/// Where there is none such, or the file is wrong.
pub fn find(asked: &str, quick: bool) -> Result<Definition> {
    let path = Path::new(asked);
    if path.extension().is_none_or(|extension| extension != "toml") {
        return Definition::parse(asked, text(asked)?, quick);
    }
    let length = std::fs::metadata(path).map_err(Error::file("cannot read the experiment", path))?.len();
    if length > MOST_BYTES {
        return Err(Error::Asked(format!("{asked}: {length} bytes are too many for an experiment's file")));
    }
    let text = std::fs::read_to_string(path).map_err(Error::file("cannot read the experiment", path))?;
    Definition::parse(asked, &text, quick)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::{FLOOR, OWN_PLAINTEXT};

    #[test]
    fn every_built_in_experiment_is_right_and_bears_its_name() {
        for (name, text) in EXPERIMENTS {
            for quick in [false, true] {
                let definition = Definition::parse(name, text, quick).unwrap();
                assert_eq!(definition.name, *name);
                assert!(!definition.source.is_empty(), "{name}");
            }
        }
    }

    /// A target whose point is never measured would be met by silence.
    #[test]
    fn every_target_is_for_a_point_that_is_measured() {
        for (name, text) in EXPERIMENTS {
            let definition = Definition::parse(name, text, false).unwrap();
            for target in &definition.targets {
                let beside = target.beside.iter().map(|beside| match beside.as_str() {
                    FLOOR => OWN_PLAINTEXT,
                    server => server,
                });
                let mut servers = std::iter::once(target.server.as_str()).chain(beside);
                let is_measured = |wanted: &str| definition.servers.iter().any(|server| server == wanted);
                assert!(servers.all(is_measured), "{name}");
                for (variable, value) in target.at.iter().chain(&target.beside_at) {
                    assert!(definition.sweep[variable].contains(value), "{name}: {variable} = {value}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_experiment_is_answered_with_the_nearest() {
        let error = find("engine", false).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no experiment \"engine\"; did you mean engines? (there are: t7-"),
            "{error}"
        );
        let error = find("nowhere/mine.toml", false).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the experiment nowhere/mine.toml: "), "{error}");
    }
}
