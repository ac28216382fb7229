//! Secrets of a run: of no meaning, and of nobody else's.

use std::fs::File;
use std::io::{self, Read};

/// So many random bytes of the system's, each as two hexadecimal digits.
///
/// # Errors
/// The system's.
pub(crate) fn hexadecimal(bytes: usize) -> io::Result<String> {
    let mut secret = vec![0; bytes];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    Ok(secret.iter().map(|byte| format!("{byte:02x}")).collect())
}
