//! Fetches a file, and compares it with the one on disk, byte for byte.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::channel::Dialer;
use super::response;

/// Fetches `path` and compares it with `file`; returns the bytes that came on the socket.
pub(in crate::guest) fn verify(dialer: &Dialer, path: &str, file: &Path) -> Result<u64> {
    let file = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let length = file.metadata()?.len();
    let mut channel = dialer.connect()?;
    channel.send(response::request(&dialer.host(), path, true).as_bytes())?;
    let mut scratch = vec![0; 256 * 1024];
    let mut expected = vec![0; scratch.len()];
    let head = response::receive(&mut channel, &mut scratch, |offset, bytes| {
        let expected = &mut expected[..bytes.len()];
        file.read_exact_at(expected, offset).context("the file is shorter than the body")?;
        if expected != bytes {
            bail!("{path}: the body differs from the file near byte {offset}");
        }
        Ok(())
    })?;
    if head.status != 200 || head.content_length != length {
        bail!("{path}: status {} and {} bytes instead of {length}", head.status, head.content_length);
    }
    response::expect_end(&mut channel, &mut scratch).with_context(|| path.to_owned())?;
    Ok(channel.stream.received)
}
