//! The files that servers in a guest hand out.

use std::fs::{File, FileTimes};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;

/// Writes a file that has been at rest for a while: linerate maps no others. Its first bytes, so many, have no pattern; what
/// follows them is a hole, which costs no memory to keep, and to serve what other bytes cost.
pub(super) fn write(path: &Path, bytes: u64, patternless_bytes: u64) -> Result<()> {
    let mut file = File::create(path)?;
    std::io::copy(&mut File::open("/dev/urandom")?.take(bytes.min(patternless_bytes)), &mut file)?;
    file.set_len(bytes)?;
    file.set_times(FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(3600)))?;
    Ok(file.sync_all()?)
}
