//! From the text of an experiment's file to a [`Definition`], with the place of what is wrong.

use std::collections::BTreeSet;

use linerate_faults::nearest;

use super::written::{File, OF_STREAMS};
use super::{Definition, Time, Workload};
use crate::error::{Error, Result};
use crate::floor::FLOOR;
use crate::servers;

const MOST_POINTS: usize = 10_000;

impl Definition {
    /// Reads the text of the file `file`, for a quick run if `quick`.
    ///
    /// # Errors
    /// What is wrong, with its place where it is known.
    pub fn parse(file: &str, text: &str, quick: bool) -> Result<Self> {
        let wrong = |reason: String| Error::Definition(format!("{file}: {reason}"));
        let definition = Self::of(File::read(file, text, quick)?, text).map_err(wrong)?;
        definition.check().map_err(wrong)?;
        Ok(definition)
    }

    fn of(written: File<Time>, text: &str) -> std::result::Result<Self, String> {
        if let Some(kind) = written.kind {
            return Err(format!(
                "kind: \"{kind}\": there are experiments of \"{OF_STREAMS}\", and of servers without a kind"
            ));
        }
        written.into_definition(text)
    }

    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        is_file_name(&self.name)?;
        let quantities: Vec<&str> = crate::quantity::keys().collect();
        known("quantity", self.quantities.iter(), &quantities)?;
        known("quantity", self.published.iter().map(|series| &series.quantity), &quantities)?;
        if self.quantities.is_empty() {
            return Err("quantities: at least one is needed".to_owned());
        }
        self.check_servers()?;
        self.check_variables()?;
        self.check_targets(&quantities)?;
        self.check_time()
    }

    fn check_targets(&self, quantities: &[&str]) -> std::result::Result<(), String> {
        let own = self.own_servers.iter().map(|own| own.name.as_str());
        let servers: Vec<&str> = servers::BUILT_IN.iter().copied().chain(own).collect();
        let variables: Vec<&str> = self.sweep.keys().chain(self.fixed.keys()).map(String::as_str).collect();
        for target in &self.targets {
            let wrong = |reason| format!("[[target]] {reason}");
            let beside = target.beside.iter().filter(|beside| *beside != FLOOR);
            known("server", std::iter::once(&target.server).chain(beside), &servers).map_err(wrong)?;
            if target.beside.as_deref() == Some(FLOOR)
                && !(target.beside_at.is_empty() && target.beside_version.is_none())
            {
                return Err(
                    "[[target]] beside = \"floor\": it is that of the same point, and has no version"
                        .to_owned(),
                );
            }
            known("quantity", &target.quantity, quantities).map_err(wrong)?;
            known("variable", target.at.keys().chain(target.beside_at.keys()), &variables).map_err(wrong)?;
            if !(target.most > 0.0 && target.most.is_finite()) {
                return Err("[[target]] most: a number above 0 is needed".to_owned());
            }
        }
        Ok(())
    }

    fn check_servers(&self) -> std::result::Result<(), String> {
        let mut names: Vec<&str> = servers::BUILT_IN.to_vec();
        for own in &self.own_servers {
            if own.name.is_empty() || own.name == FLOOR || servers::BUILT_IN.contains(&own.name.as_str()) {
                return Err(format!("[[server]]: \"{}\" is not a name of its own", own.name));
            }
            match (&own.like, own.command.is_empty()) {
                (Some(like), true) => {
                    known("server", [like], servers::BUILT_IN)?;
                    if own.configuration.is_some() && !servers::takes_configuration(like) {
                        return Err(format!(
                            "[[server]] \"{}\": nothing can be added to the configuration of {like}",
                            own.name
                        ));
                    }
                }
                (None, false) => {}
                _ => {
                    return Err(format!("[[server]] \"{}\": either `like` or `command` is needed", own.name));
                }
            }
            names.push(&own.name);
        }
        known("server", self.servers.iter(), &names)?;
        if self.servers.is_empty() {
            return Err("servers: at least one is needed".to_owned());
        }
        let different: BTreeSet<&String> = self.servers.iter().collect();
        if different.len() < self.servers.len() {
            return Err("servers: one of them is named twice".to_owned());
        }
        Ok(())
    }

    fn check_variables(&self) -> std::result::Result<(), String> {
        let mut workload = Workload::default();
        for (name, value) in &self.fixed {
            workload.set(name, value).map_err(|reason| format!("[load] {reason}"))?;
        }
        for (name, values) in &self.sweep {
            if values.is_empty() {
                return Err(format!("[sweep] {name}: at least one value is needed"));
            }
            for value in values {
                workload.set(name, value).map_err(|reason| format!("[sweep] {reason}"))?;
            }
        }
        known(
            "swept variable as axis",
            [&self.axis],
            &self.sweep.keys().map(String::as_str).collect::<Vec<_>>(),
        )?;
        let points = self.sweep.values().map(Vec::len).product::<usize>().saturating_mul(self.servers.len());
        if points > MOST_POINTS {
            return Err(format!("[sweep]: {points} points are too many, {MOST_POINTS} at most"));
        }
        Ok(())
    }

    fn check_time(&self) -> std::result::Result<(), String> {
        let Time { warmup_s, measured_s, rounds, most_rounds } = self.time;
        let is_length = |seconds: f64| (0.0..=86_400.0).contains(&seconds);
        if !is_length(warmup_s) || !is_length(measured_s) || measured_s < 0.1 {
            return Err(
                "[time]: measured_s is at least 0.1, and neither it nor warmup_s above a day".to_owned()
            );
        }
        if !(1..=1000).contains(&rounds) {
            return Err("[time]: rounds is a number from 1 to 1000".to_owned());
        }
        if most_rounds.is_some_and(|most| !(rounds..=1000).contains(&most)) {
            return Err("[time]: most_rounds is a number from rounds to 1000".to_owned());
        }
        Ok(())
    }
}

/// A name becomes part of a folder's.
fn is_file_name(name: &str) -> std::result::Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
        return Err(format!("name: \"{name}\" is to be made of letters, digits, - and _"));
    }
    Ok(())
}

fn known<'a>(
    what: &str,
    names: impl IntoIterator<Item = &'a String>,
    allowed: &[&str],
) -> std::result::Result<(), String> {
    for name in names {
        if !allowed.contains(&name.as_str()) {
            let hint =
                nearest(name, allowed.iter().copied()).map(|near| format!("; did you mean \"{near}\"?"));
            return Err(format!(
                "unknown {what} \"{name}\"{} (there are: {})",
                hint.unwrap_or_default(),
                allowed.join(", ")
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Variable;

    const SMALL: &str = r#"
name = "small"
title = "Small files"
axis = "connections"
quantities = ["server_s_per_gb"]
servers = ["linerate user", "mine"]

[load]
file_bytes = 1000
close = true

[sweep]
connections = [1, 2]
tls = ["1.2", "1.3"]

[time]
warmup_s = 0.5
measured_s = 2
rounds = 3

[quick]
sweep.connections = [1]
load.file_bytes = 500
time = { warmup_s = 0, measured_s = 0.5, rounds = 2 }

[[server]]
name = "mine"
command = ["serve-it", "{port}"]

[[published]]
name = "They"
source = "Their paper, figure 1"
quantity = "application_gbit_s"
values = [[10, 3.5], ["disk", 6, 12]]

[[target]]
server = "linerate user"
at.tls = "1.3"
beside = "nginx plaintext"
most = 0.9
"#;

    fn parse(text: &str) -> std::result::Result<Definition, String> {
        Definition::parse("small.toml", text, false).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_says_everything() {
        let small = parse(SMALL).unwrap();
        assert_eq!(small.fixed["close"], Variable::Word("true".to_owned()));
        assert_eq!(small.sweep["connections"], [Variable::Number(1.0), Variable::Number(2.0)]);
        assert_eq!(small.time, Time { warmup_s: 0.5, measured_s: 2.0, rounds: 3, most_rounds: None });
        assert_eq!(small.own_servers[0].command, ["serve-it", "{port}"]);
        let values = &small.published[0].values;
        assert_eq!((values[0].low, values[0].high), (3.5, 3.5));
        assert_eq!((&values[1].at, values[1].high), (&Variable::Word("disk".to_owned()), 12.0));
        let target = &small.targets[0];
        assert_eq!(
            (target.server.as_str(), target.beside.as_deref()),
            ("linerate user", Some("nginx plaintext"))
        );
        assert_eq!((&target.at["tls"], target.most), (&Variable::Word("1.3".to_owned()), 0.9));
    }

    #[test]
    fn quick_replaces_only_what_it_names() {
        let quick = Definition::parse("small.toml", SMALL, true).unwrap();
        assert_eq!(quick.sweep["connections"], [Variable::Number(1.0)]);
        assert_eq!(quick.sweep["tls"].len(), 2);
        assert_eq!(quick.fixed["file_bytes"], Variable::Number(500.0));
        assert_eq!(quick.time.rounds, 2);
        assert_eq!(quick.text, SMALL);
    }

    #[test]
    fn an_unknown_key_has_its_place_and_the_nearest() {
        let error = parse(&SMALL.replace("measured_s = 2", "mesured_s = 2")).unwrap_err();
        assert!(error.starts_with("small.toml:18:1: unknown field `mesured_s`"), "{error}");
        assert!(error.ends_with("did you mean \"measured_s\"?"), "{error}");
        let error = parse(&SMALL.replace("file_bytes = 1000", "file_byte = 1000")).unwrap_err();
        assert_eq!(error, "small.toml: [load] unknown variable \"file_byte\"; did you mean \"file_bytes\"?");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (old, new, wanted) in [
            ("\"linerate user\"", "\"linerate usr\"", "did you mean \"linerate user\"?"),
            ("axis = \"connections\"", "axis = \"files\"", "unknown swept variable as axis \"files\""),
            ("[\"server_s_per_gb\"]", "[\"server_s_per_tb\"]", "did you mean \"server_s_per_gb\"?"),
            ("name = \"small\"", "name = \"../small\"", "letters, digits, - and _"),
            ("rounds = 3", "rounds = 0", "rounds is a number from 1 to 1000"),
            ("rounds = 3", "rounds = 3\nmost_rounds = 2", "most_rounds is a number from rounds to 1000"),
            ("connections = [1, 2]", "connections = []", "at least one value is needed"),
            ("command = [\"serve-it\", \"{port}\"]", "", "either `like` or `command` is needed"),
            (
                "command = [\"serve-it\", \"{port}\"]",
                "like = \"caddy tls\"\nconfiguration = \"x\"",
                "nothing can be added to the configuration of caddy tls",
            ),
            ("\"mine\"]", "\"mine\", \"mine\"]", "named twice"),
            ("name = \"mine\"", "name = \"nginx tls\"", "is not a name of its own"),
            ("name = \"mine\"", "name = \"floor\"", "is not a name of its own"),
            (
                "beside = \"nginx plaintext\"",
                "beside = \"floor\"\nbeside_at.tls = \"1.2\"",
                "it is that of the same point",
            ),
            ("most = 0.9", "most = 0", "[[target]] most: a number above 0 is needed"),
            (
                "beside = \"nginx plaintext\"",
                "beside = \"nginx plain\"",
                "[[target]] unknown server \"nginx plain\"",
            ),
            (
                "at.tls = \"1.3\"",
                "at.tsl = \"1.3\"",
                "[[target]] unknown variable \"tsl\"; did you mean \"tls\"?",
            ),
        ] {
            let error = parse(&SMALL.replacen(old, new, 1)).unwrap_err();
            assert!(error.contains(wanted), "{new}: {error}");
        }
    }
}
