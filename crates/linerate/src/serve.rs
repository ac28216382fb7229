//! The seam between the command line and the server.

use std::error::Error;

use linerate_config::{Settings, Source};

/// Serves until told to stop. `source` is where a reload reads the settings anew.
///
/// # Errors
/// Whatever keeps the server from starting, or ends it.
pub(crate) fn serve(source: Source, settings: Settings) -> Result<(), Box<dyn Error>> {
    Ok(linerate_server::run(source, settings)?)
}
