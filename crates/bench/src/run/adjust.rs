//! What the command line changes of an experiment, and the result that its run begins with.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use linerate_faults::nearest;

use super::Options;
use crate::definition::{Definition, ExperimentFile};
use crate::error::{Error, Result};
use crate::result::{ExperimentRun, Reading, SCHEMA, ServerUsed, Setup, Variable};

impl<T> ExperimentFile<T> {
    /// Keeps the servers that the command line asks for.
    ///
    /// # Errors
    /// One of them is not among the experiment's.
    pub(crate) fn choose_servers(&mut self, options: &Options) -> Result<()> {
        let names = || self.servers.iter().map(String::as_str);
        if let Some(name) = options.servers.iter().find(|name| !self.servers.contains(name)) {
            let hint = nearest(name, names()).map(|near| format!("; did you mean \"{near}\"?"));
            return Err(Error::Asked(format!(
                "the experiment {} has no server \"{name}\"{} (it has: {})",
                self.name,
                hint.unwrap_or_default(),
                names().collect::<Vec<_>>().join(", ")
            )));
        }
        let is_asked_for = |name: &String| options.servers.is_empty() || options.servers.contains(name);
        self.servers.retain(|name| is_asked_for(name) && !options.without.contains(name));
        Ok(())
    }

    /// Gives a variable another value for all points, or several that are swept.
    pub(crate) fn vary(&mut self, name: &str, values: &[Variable]) {
        self.fixed.remove(name);
        self.sweep.remove(name);
        match values {
            [one] if name != self.axis => {
                self.fixed.insert(name.to_owned(), one.clone());
            }
            several => {
                self.sweep.insert(name.to_owned(), several.to_vec());
            }
        }
    }

    /// The result of a run that begins now, without any point.
    pub(crate) fn begin_run(
        &self,
        rounds: u32,
        options: &Options,
        setup: Setup,
        servers: Vec<ServerUsed>,
    ) -> ExperimentRun {
        ExperimentRun {
            schema: SCHEMA.to_owned(),
            name: self.name.clone(),
            definition: self.text.clone(),
            title: self.title.clone(),
            source: self.source.clone(),
            axis: self.axis.clone(),
            axis_is_logarithmic: self.axis_is_logarithmic,
            quantities: self.quantities.clone(),
            rounds_planned: rounds,
            setup,
            started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            quick: options.quick,
            command: options.command.clone(),
            environment: BTreeMap::new(),
            servers,
            points: Vec::new(),
            skipped: Vec::new(),
            published: self.published.clone(),
            targets: self.targets.clone(),
            changed: options.changed.clone(),
            floor: Reading::default(),
            warnings: Vec::new(),
            incomplete: true,
        }
    }
}

/// What the command line changes of an experiment.
pub(super) fn adjust(definition: &mut Definition, options: &Options) -> Result<()> {
    definition.choose_servers(options)?;
    if let Some(rounds) = options.rounds {
        definition.time.rounds = rounds;
        definition.time.most_rounds = None;
    }
    for (name, values) in &options.changed {
        change(definition, name, values).map_err(Error::Asked)?;
    }
    definition.check().map_err(|reason| Error::Asked(format!("{}: {reason}", definition.name)))
}

/// Gives a variable another value, or several that are swept; or a time of `[time]`.
fn change(definition: &mut Definition, name: &str, values: &[Variable]) -> std::result::Result<(), String> {
    let time = &mut definition.time;
    let as_rounds = |value: f64| if value.fract() == 0.0 { Some(value as u32) } else { None };
    match (name, values) {
        ("warmup_s", [Variable::Number(seconds)]) => time.warmup_s = *seconds,
        ("measured_s", [Variable::Number(seconds)]) => time.measured_s = *seconds,
        ("most_rounds", [Variable::Number(rounds)]) => {
            time.most_rounds = Some(as_rounds(*rounds).ok_or("most_rounds: a whole number is needed")?);
        }
        ("warmup_s" | "measured_s" | "most_rounds", _) => {
            return Err(format!("{name}: one number is needed"));
        }
        _ => definition.vary(name, values),
    }
    Ok(())
}
