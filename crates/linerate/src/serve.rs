//! The seam between the command line and the server.

use std::error::Error;

use linerate_config::Source;

/// Serves until told to stop. `source` is where the settings are read, at the start and at each reload.
///
/// # Errors
/// Whatever keeps the server from starting, or ends it.
pub(crate) fn serve(source: Source) -> Result<(), Box<dyn Error>> {
    Ok(linerate_server::run(source)?)
}
