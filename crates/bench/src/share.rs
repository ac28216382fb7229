//! One file of runs to be sent to others: all figures, and nothing that names the machine, its users or its neighbours.
//!
//! Every text of a result goes through [`scrub::Scrubber`], whatever field it is in: what is not known to be harmless by its
//! form is looked at word by word. The ends of servers' logs and the configurations of servers that a user described are left out
//! whole. The file is JSON that a person can read before sending it, and [`crate::load_all`] reads it as it reads a result.

mod scrub;
mod word;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub use scrub::Removed;
pub use word::Secret;

use crate::definition::VARIABLES;
use crate::definition::catalogue::EXPERIMENTS;
use crate::error::{Error, Result};
use crate::result::{ExperimentRun, Reading, Round};
use crate::store::{self, SHARED_SCHEMA, SharedRuns};
use crate::{quantity, servers};
use scrub::Scrubber;

/// Folders are searched for runs so deep.
const DEPTH: u32 = 4;

/// What this machine and its user are called.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Machines.
    pub hosts: Vec<String>,
    /// Accounts.
    pub users: Vec<String>,
}

impl Names {
    /// The names of this machine and of whoever runs this program.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let home =
            set("HOME").and_then(|home| Some(Path::new(&home).file_name()?.to_string_lossy().into_owned()));
        let users = ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(set).chain(home);
        Self { hosts: vec![host], users: users.collect() }
    }
}

/// What was made.
#[derive(Debug)]
pub struct Shared {
    /// How many runs are in the file.
    pub runs: usize,
    /// What was taken out of texts.
    pub removed: Vec<Removed>,
    /// What was left out whole, or could not be taken out: in words.
    pub remarks: Vec<String>,
}

/// Writes the runs in `folders`, or in folders below them, into the new file `path`.
///
/// # Errors
/// Where there is no run, or one that cannot be read; where `path` exists or cannot be written.
pub fn share(folders: &[PathBuf], path: &Path, names: &Names) -> Result<Shared> {
    let mut found = Vec::new();
    for folder in folders {
        let before = found.len();
        results(folder, DEPTH, &mut found)?;
        if found.len() == before {
            let none = format!("{}: there is no {} in it or below", folder.display(), store::RESULT_FILE);
            return Err(Error::Asked(none));
        }
    }
    let runs = found.iter().map(|folder| store::load(folder)).collect::<Result<Vec<_>>>()?;
    let (text, shared) = scrubbed(runs, names)?;
    let mut file = File::create_new(path).map_err(Error::file("cannot create", path))?;
    file.write_all(text.as_bytes()).map_err(Error::file("cannot write", path))?;
    Ok(shared)
}

/// Folders with a result, or result files themselves.
fn results(place: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<()> {
    if place.is_file() || place.join(store::RESULT_FILE).is_file() {
        found.push(place.to_path_buf());
        return Ok(());
    }
    let entries = fs::read_dir(place).map_err(Error::file("cannot read", place))?;
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    for folder in folders.iter().filter(|_| depth > 0) {
        results(folder, depth - 1, found)?;
    }
    Ok(())
}

fn scrubbed(mut runs: Vec<ExperimentRun>, names: &Names) -> Result<(String, Shared)> {
    let mut remarks = Vec::new();
    let mut scrubber = Scrubber::new(vocabulary());
    for host in &names.hosts {
        scrubber.learn_login(host);
    }
    for user in &names.users {
        scrubber.learn_name(Secret::User, user);
    }
    for run in &mut runs {
        for host in &run.setup.client_hosts {
            scrubber.learn_login(host);
        }
        leave_out(run, &mut remarks);
    }
    let count = runs.len();
    let shared = SharedRuns { schema: SHARED_SCHEMA.to_owned(), runs };
    let mut value = serde_json::to_value(&shared).map_err(|error| Error::Machine(error.to_string()))?;
    visit(&mut value, "", &mut |_, text| {
        scrubber.learn(text);
        None
    });
    visit(&mut value, "", &mut |key, text| match key {
        "schema" => None,
        "definition" if EXPERIMENTS.iter().any(|(_, file)| *file == text) => None,
        "command" | "client_command" => Some(scrubber.scrub_argument(text)),
        _ => Some(scrubber.scrub(text)),
    });
    // It has to be what `linerate bench report` reads.
    let shared: SharedRuns = serde_json::from_value(value)
        .map_err(|error| Error::Machine(format!("what is left is no result any more: {error}")))?;
    let text = serde_json::to_string_pretty(&shared).map_err(|error| Error::Machine(error.to_string()))?;
    for name in scrubber.kept() {
        remarks.push(format!(
            "\"{name}\" names a machine or a user here, and is a word of results, too: it stays"
        ));
    }
    Ok((text + "\n", Shared { runs: count, removed: scrubber.removed(), remarks }))
}

/// The words that results are made of, which are no names.
fn vocabulary() -> impl Iterator<Item = &'static str> {
    EXPERIMENTS
        .iter()
        .flat_map(|(name, file)| [*name, *file])
        .chain(servers::BUILT_IN.iter().copied())
        .chain(VARIABLES.iter().flat_map(|variable| [variable.name, variable.meaning]))
        .chain(quantity::keys())
}

/// What only a person can tell to be harmless: logs, and what users wrote to start servers of their own.
fn leave_out(run: &mut ExperimentRun, remarks: &mut Vec<String>) {
    let mut lines = 0;
    for round in run.points.iter_mut().flat_map(|point| &mut point.rounds) {
        if let Round::Failed { log, .. } = round {
            lines += log.len();
            log.clear();
        }
    }
    if lines > 0 {
        remarks.push(format!("{}: {lines} lines of servers' logs were left out", run.name));
    }
    for server in run.servers.iter_mut().filter(|server| !servers::BUILT_IN.contains(&server.name.as_str())) {
        server.command.clear();
        server.configuration.clear();
        remarks.push(format!("{}: how the server \"{}\" was started was left out", run.name, server.name));
    }
    for facts in run.environment.values_mut() {
        for (name, fact) in facts {
            let name = name.to_ascii_lowercase();
            if ["serial", "uuid", "asset", "machine id"].iter().any(|word| name.contains(word)) {
                *fact = Reading::NotAvailable("left out".to_owned());
            }
        }
    }
    if !EXPERIMENTS.iter().any(|(_, file)| *file == run.definition) {
        remarks.push(format!(
            "{}: the experiment's file is one of your own: read it before you send it",
            run.name
        ));
    }
}

/// Shows every text to `change`, with the field that it is in, names of fields that are no fixed words among them. What
/// `change` returns takes its place.
fn visit(value: &mut Value, key: &str, change: &mut impl FnMut(&str, &str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(changed) = change(key, text) {
                *text = changed;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| visit(value, key, change)),
        Value::Object(fields) => {
            let mut changed = Map::new();
            for (name, mut value) in std::mem::take(fields) {
                visit(&mut value, &name, change);
                let mut name = change("", &name).unwrap_or(name);
                // Two facts must not become one.
                while changed.contains_key(&name) {
                    name.push('’');
                }
                changed.insert(name, value);
            }
            *fields = changed;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Shared {
    /// What was removed, for the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let is_below =
            |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let paths = || self.removed.iter().filter(|removed| removed.secret == Secret::Path);
        for Removed { secret, placeholder, text: removed } in &self.removed {
            // Of paths the folders suffice.
            if *secret == Secret::Path && paths().any(|folder| is_below(removed, &folder.text)) {
                continue;
            }
            let below = match paths().filter(|path| is_below(&path.text, removed)).count() {
                count if *secret == Secret::Path && count > 0 => format!(", and {count} below it"),
                _ => String::new(),
            };
            let what = match secret {
                Secret::Host => "name of a machine",
                Secret::User => "name of a user",
                Secret::Address => "address",
                Secret::HardwareAddress => "hardware address",
                Secret::Serial => "serial number or identifier",
                Secret::Path => "path",
            };
            let _ = writeln!(text, "removed: {what}: {removed}{below} (now {placeholder})");
        }
        if self.removed.is_empty() {
            text.push_str("removed: nothing; there was no name in it\n");
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "note: {remark}");
        }
        text
    }
}

#[cfg(test)]
mod tests;
