//! Files of which some keys are changed.

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// What `text` describes, with some of its keys changed. `file` is its name, for errors.
///
/// # Errors
/// `FILE: REASON`, where a key or a value cannot be.
pub(crate) fn changed<T: DeserializeOwned>(file: &str, text: &str, changes: &toml::Table) -> Result<T> {
    let fault = |error: toml::de::Error| Error::new(format!("{file}: {}", error.message()));
    let mut table: toml::Table = toml::from_str(text).map_err(fault)?;
    table.extend(changes.iter().map(|(key, value)| (key.clone(), value.clone())));
    table.try_into().map_err(fault)
}
