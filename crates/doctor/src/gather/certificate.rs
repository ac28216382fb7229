//! A certificate file that was asked about.

use std::{path::Path, time::SystemTime};

use linerate_tls::Chain;

use crate::facts::CertificateFile;

/// Reads it.
pub(super) fn inspect(file: &Path) -> CertificateFile {
    let now = SystemTime::now();
    let inspection = Chain::read(file)
        .map_err(|error| error.to_string())
        .and_then(|chain| chain.inspect(now).map_err(|reason| format!("{}: {reason}", file.display())));
    let left = inspection.as_ref().ok().and_then(|inspection| inspection.not_after.duration_since(now).ok());
    CertificateFile { file: file.display().to_string(), inspection, left }
}
