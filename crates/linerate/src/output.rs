//! Standard output.

use std::error::Error;
use std::io::{self, Write};

/// Writes to standard output; the reader may stop early, as `head` does.
pub(crate) fn print(text: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut output = io::stdout().lock();
    match output.write_all(text).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
