//! The file of an experiment as it is written: what those of servers and those of streams have alike.

use std::collections::BTreeMap;

use linerate_faults::toml_fault;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ExperimentFile, OwnServer};
use crate::error::{Error, Result};
use crate::result::{PublishedSeries, PublishedValue, Target, Variable};

/// What every experiment of streams has in its `kind`.
pub(crate) const OF_STREAMS: &str = "streams";

/// The file; `T` is its `[time]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct File<T> {
    /// What it is an experiment of; nothing of servers.
    pub(crate) kind: Option<String>,
    pub(crate) name: String,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) source: String,
    pub(crate) axis: String,
    #[serde(default)]
    pub(crate) axis_is_logarithmic: bool,
    pub(crate) quantities: Vec<String>,
    pub(crate) servers: Vec<String>,
    #[serde(default)]
    pub(crate) load: BTreeMap<String, Variable>,
    pub(crate) sweep: BTreeMap<String, Vec<Variable>>,
    pub(crate) time: T,
    #[serde(default)]
    quick: Quick<T>,
    #[serde(default, rename = "server")]
    pub(crate) own_servers: Vec<OwnServer>,
    #[serde(default)]
    published: Vec<Published>,
    #[serde(default, rename = "target")]
    targets: Vec<WrittenTarget>,
}

/// What `--quick` changes. Tables replace only what they name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "T: Deserialize<'de>"))]
struct Quick<T> {
    servers: Option<Vec<String>>,
    #[serde(default)]
    load: BTreeMap<String, Variable>,
    #[serde(default)]
    sweep: BTreeMap<String, Vec<Variable>>,
    time: Option<T>,
}

impl<T> Default for Quick<T> {
    fn default() -> Self {
        Self { servers: None, load: BTreeMap::new(), sweep: BTreeMap::new(), time: None }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    name: String,
    source: String,
    quantity: String,
    /// `[at, value]` or `[at, low, high]`.
    values: Vec<Vec<Variable>>,
}

/// A [`Target`] as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTarget {
    server: String,
    #[serde(default)]
    at: BTreeMap<String, Variable>,
    quantity: Option<String>,
    beside: Option<String>,
    #[serde(default)]
    beside_at: BTreeMap<String, Variable>,
    beside_version: Option<String>,
    most: f64,
}

impl<T: DeserializeOwned> File<T> {
    /// Reads the text of the file `file`; where it is `quick`, what that changes is changed.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub(crate) fn read(file: &str, text: &str, quick: bool) -> Result<Self> {
        let mut written: Self =
            toml::from_str(text).map_err(|error| Error::Definition(toml_fault(file, text, &error)))?;
        let changed = std::mem::take(&mut written.quick);
        if quick {
            written.servers = changed.servers.unwrap_or(written.servers);
            written.load.extend(changed.load);
            written.sweep.extend(changed.sweep);
            written.time = changed.time.unwrap_or(written.time);
        }
        Ok(written)
    }

    /// The experiment that this is the text of.
    ///
    /// # Errors
    /// The first value of the paper that is none, in words.
    pub(crate) fn into_definition(self, text: &str) -> std::result::Result<ExperimentFile<T>, String> {
        Ok(ExperimentFile {
            text: text.to_owned(),
            name: self.name,
            title: self.title,
            source: self.source,
            axis: self.axis,
            axis_is_logarithmic: self.axis_is_logarithmic,
            quantities: self.quantities,
            servers: self.servers,
            fixed: self.load,
            sweep: self.sweep,
            time: self.time,
            own_servers: self.own_servers,
            published: self
                .published
                .into_iter()
                .map(Published::series)
                .collect::<std::result::Result<_, _>>()?,
            targets: self.targets.into_iter().map(Target::from).collect(),
        })
    }
}

impl Published {
    fn series(self) -> std::result::Result<PublishedSeries, String> {
        let Self { name, source, quantity, values } = self;
        let value = |value: Vec<Variable>| match value.as_slice() {
            [at, Variable::Number(low)] => Ok(PublishedValue { at: at.clone(), low: *low, high: *low }),
            [at, Variable::Number(low), Variable::Number(high)] => {
                Ok(PublishedValue { at: at.clone(), low: *low, high: *high })
            }
            _ => Err(format!("[[published]] {name}: [at, value] or [at, low, high] is needed")),
        };
        let values = values.into_iter().map(value).collect::<std::result::Result<_, _>>()?;
        Ok(PublishedSeries { name, source, quantity, values })
    }
}

impl From<WrittenTarget> for Target {
    fn from(written: WrittenTarget) -> Self {
        let WrittenTarget { server, at, quantity, beside, beside_at, beside_version, most } = written;
        Self { server, at, quantity, beside, beside_at, beside_version, most }
    }
}
