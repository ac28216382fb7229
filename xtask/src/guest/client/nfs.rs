//! The client of `cost` for NFS: that of `linerate load`, one connection that waits.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use linerate_load::nfs::{NfsPlan, Reader, Setting};
use linerate_load::plan::{CipherSuite, Group, Trust, Until};

use super::steps::ServedByNfs;

/// READs under way. Linux' client has several, too, as soon as it reads ahead.
const DEPTH: u32 = 4;

/// knfsd reads no file in its first ten seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was verified, and the connection for the next transfer.
#[derive(Debug)]
pub(super) struct NfsFetcher {
    setting: Arc<Setting>,
    is_secured: bool,
    body_bytes: u64,
    connections: u32,
    /// Kept until the next step that is not counted: closing it takes instructions, too.
    reader: Option<Reader>,
}

impl NfsFetcher {
    /// Reads the file once, and compares every byte.
    pub(super) fn verify(served: &ServedByNfs) -> Result<Self> {
        let mut plan =
            NfsPlan::new(vec![served.url.parse().map_err(anyhow::Error::msg)?], Until::Requests(1));
        (plan.depth, plan.timeout) = (DEPTH, PATIENCE);
        match &served.certificate {
            Some(certificate) => {
                plan.trust = Trust::File(certificate.clone());
                plan.cipher_suites = CipherSuite::named(&served.suite).into_iter().collect();
                plan.groups = vec![Group::X25519];
            }
            None => plan.tls = false,
        }
        let verifying = NfsPlan { verify: Some(served.file.clone()), ..plan.clone() };
        let verifying = Arc::new(Setting::new(&verifying)?);
        let (setting, is_secured) = (Arc::new(Setting::new(&plan)?), served.certificate.is_some());
        let mut fetcher =
            Self { setting, is_secured, body_bytes: served.body_bytes, connections: 0, reader: None };
        fetcher.reader = Some(Reader::connect(&verifying, 0).map_err(|said| anyhow!(said))?);
        fetcher.fetch()?;
        Ok(fetcher)
    }

    pub(super) fn connect(&mut self) -> Result<()> {
        self.connections += 1;
        self.reader = None;
        self.reader = Some(Reader::connect(&self.setting, self.connections).map_err(|said| anyhow!(said))?);
        Ok(())
    }

    pub(super) fn fetch(&mut self) -> Result<()> {
        let Some(reader) = &mut self.reader else { bail!("there is no connection") };
        let totals = reader.read(self.body_bytes).map_err(|said| anyhow!(said))?;
        if totals.body_bytes != self.body_bytes || (totals.full_handshakes == 1) != self.is_secured {
            bail!("a transfer brought {} bytes by {} handshakes", totals.body_bytes, totals.full_handshakes);
        }
        Ok(())
    }
}
