//! Fetches a file, or a part of it, and compares it with the one on disk, byte for byte.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::channel::Dialer;
use super::response::{self, Span};

/// The order to verify.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Verify {
    /// Request target.
    pub(crate) path: String,
    /// The same file on disk.
    pub(crate) file: PathBuf,
    /// The part to fetch; everything without it.
    pub(crate) span: Option<Span>,
}

impl Verify {
    /// Fetches and compares.
    pub(crate) fn run(&self, dialer: &Dialer) -> Result<Outcome> {
        let file = File::open(&self.file).with_context(|| format!("cannot open {}", self.file.display()))?;
        let (status, span) = match self.span {
            Some(span) => (206, span),
            None => (200, Span { start: 0, length: file.metadata()?.len() }),
        };
        let mut channel = dialer.connect()?;
        let agreed = channel.agreed();
        channel.send(response::request(&dialer.host(), &self.path, self.span, true).as_bytes())?;
        let mut scratch = vec![0; 256 * 1024];
        let mut expected = vec![0; scratch.len()];
        let head = response::receive(&mut channel, &mut scratch, |offset, bytes| {
            let expected = &mut expected[..bytes.len()];
            file.read_exact_at(expected, span.start + offset).context("the file is shorter than the body")?;
            if expected != bytes {
                bail!("{}: the body differs from the file near byte {}", self.path, span.start + offset);
            }
            Ok(())
        })?;
        if head.status != status || head.content_length != span.length {
            bail!(
                "{}: status {} and {} bytes instead of {status} and {} bytes",
                self.path,
                head.status,
                head.content_length,
                span.length
            );
        }
        response::expect_end(&mut channel, &mut scratch).with_context(|| self.path.clone())?;
        Ok(Outcome {
            requests: 1,
            body_bytes: head.content_length,
            wire_bytes: channel.stream.received,
            fruitful_reads: None,
            agreed: Some(agreed),
            spent: None,
        })
    }
}
