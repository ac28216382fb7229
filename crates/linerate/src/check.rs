//! `linerate check`: what would run, or why nothing would.

use std::error::Error;
use std::fmt::Write;

use linerate_config::{EngineChoice, Source};

use crate::summary::Summary;

/// Validates what `source` says, opens the folders and loads the certificates and the calibration that it names, and
/// describes what would run.
///
/// # Errors
/// Every fault, one a line, with its place.
pub(crate) fn check(source: &Source) -> Result<String, Box<dyn Error>> {
    let settings = source.load()?;
    settings.verify_files()?;
    let warnings = linerate_server::check(&settings)?;
    let mut said = Summary(&settings).to_string();
    if settings.engine == EngineChoice::Auto && settings.https_port().is_some() {
        // The first is what the others follow from.
        for (index, line) in linerate_server::break_evens(&settings)?.iter().enumerate() {
            writeln!(said, "{:<14} {line}", if index == 0 { "costs" } else { "placement" })?;
        }
    }
    for warning in warnings {
        writeln!(said, "{:<14} {warning}", "warning")?;
    }
    Ok(said)
}
