//! Whether a run can be gone on with: its servers have to be what they were.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::result::ExperimentRun;

/// Compares the servers of an earlier run with those that there are now.
///
/// # Errors
/// Which one is another now.
pub(crate) fn check_servers(earlier: &ExperimentRun, present: &ExperimentRun) -> Result<()> {
    let versions = |run: &ExperimentRun| -> BTreeMap<String, String> {
        run.servers.iter().map(|server| (server.name.clone(), server.version.clone())).collect()
    };
    let (before, now) = (versions(earlier), versions(present));
    if before == now {
        return Ok(());
    }
    let differing = before.iter().find(|(name, version)| now.get(*name) != Some(version));
    let (name, version) = differing.map_or(("a server", "none"), |(name, version)| (name, version));
    let found = now.get(name).map_or("cannot be run here any more", String::as_str);
    Err(Error::Asked(format!(
        "cannot go on: {name} was \"{version}\" and now is \"{found}\"; begin anew, and compare the two"
    )))
}
