//! `linerate check`: what would run, or why nothing would.

use std::error::Error;

use linerate_config::Source;

use crate::summary::Summary;

/// Validates what `source` says, and the files it names, and describes what would run.
///
/// # Errors
/// Every fault, one a line, with its place.
pub(crate) fn check(source: &Source) -> Result<String, Box<dyn Error>> {
    let settings = source.load()?;
    settings.verify_files()?;
    Ok(Summary(&settings).to_string())
}
