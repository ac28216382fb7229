//! The client of `cost`, a step at a time. It is in the guest, or on the host and the guest tells it by a line each.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::channel::{Channel, Dialer};
use super::discard::discard_all;
use super::nfs::NfsFetcher;
use super::verify::verify;
use super::{TlsOrder, Version, response};
use crate::guest::wire::esp::Association;
use crate::guest::wire::esp_peer::EspPeer;

/// What the client is to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::guest) enum Step {
    /// One transfer from this server, which also warms whatever can be warmed; every byte is compared. The steps that
    /// follow ask the same server.
    Verify(Served),
    /// The same of a server of NFS.
    VerifyNfs(ServedByNfs),
    /// Packets of the protected address are sealed and opened by these keys from now on.
    Protect(Association),
    /// A connection for the next transfer, with its handshake.
    Connect,
    /// Nothing. This is how the cost of telling the client is counted.
    Nothing,
    /// A transfer on that connection; its bytes are thrown away unread.
    Fetch,
}

/// A file and its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::guest) struct Served {
    /// The server.
    pub(in crate::guest) address: SocketAddr,
    /// Its certificate; without one it is asked in the clear.
    pub(in crate::guest) certificate: Option<PathBuf>,
    /// The file as the client can read it. The server has it by the same name in its document root.
    pub(in crate::guest) file: PathBuf,
}

/// A file and its server of NFS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::guest) struct ServedByNfs {
    /// Where the server has the file.
    pub(in crate::guest) url: String,
    /// Its certificate; without one it is asked in the clear.
    pub(in crate::guest) certificate: Option<PathBuf>,
    /// The cipher suite to offer, if it is not.
    pub(in crate::guest) suite: String,
    /// The file as the client can read it.
    pub(in crate::guest) file: PathBuf,
    /// Length of a transfer.
    pub(in crate::guest) body_bytes: u64,
}

/// Carries steps out.
#[derive(Debug)]
pub(in crate::guest) struct Fetcher {
    /// From the first step on that wants it.
    esp: Option<EspPeer>,
    nfs: Option<NfsFetcher>,
    verified: Option<Verified>,
    /// Kept until the next step that is not counted: closing it takes instructions, too.
    channel: Option<Channel>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Verified {
    dialer: Dialer,
    path: String,
    wire_bytes: u64,
}

impl Fetcher {
    /// One that knows no server.
    pub(in crate::guest) fn new() -> Self {
        Self { esp: None, nfs: None, verified: None, channel: None, scratch: vec![0; 1 << 20] }
    }

    /// Carries one out. The first has to be [`Step::Verify`].
    pub(in crate::guest) fn carry_out(&mut self, step: &Step) -> Result<()> {
        match (step, &mut self.nfs) {
            (Step::Protect(association), _) => {
                let esp = match self.esp.take() {
                    Some(esp) => esp,
                    None => EspPeer::start()?,
                };
                return self.esp.insert(esp).take(association);
            }
            (Step::VerifyNfs(served), _) => {
                self.nfs = Some(NfsFetcher::verify(served)?);
                return Ok(());
            }
            (Step::Connect, Some(nfs)) => return nfs.connect(),
            (Step::Fetch, Some(nfs)) => return nfs.fetch(),
            _ => {}
        }
        match step {
            Step::VerifyNfs(_) | Step::Protect(_) => {}
            Step::Verify(served) => {
                self.nfs = None;
                self.channel = None;
                self.verified = Some(Verified::verify(served)?);
            }
            Step::Connect => self.channel = Some(self.verified()?.dialer.connect()?),
            Step::Nothing => {}
            Step::Fetch => self.fetch()?,
        }
        Ok(())
    }

    fn fetch(&mut self) -> Result<()> {
        let mut channel = self.channel.take().context("there is no connection")?;
        let Verified { dialer, path, wire_bytes } = self.verified()?;
        let expected_bytes = *wire_bytes;
        channel.send(response::request(&dialer.host(), path, true).as_bytes())?;
        let received = discard_all(&channel.stream.socket, &mut self.scratch)? + channel.stream.received;
        self.channel = Some(channel);
        if received.abs_diff(expected_bytes) > 4096 + expected_bytes / 1000 {
            bail!("a transfer took {received} bytes, the verified one {expected_bytes}");
        }
        Ok(())
    }

    fn verified(&self) -> Result<&Verified> {
        self.verified.as_ref().context("no server was verified")
    }
}

impl Verified {
    fn verify(served: &Served) -> Result<Self> {
        let tls = served.certificate.clone();
        let tls = tls.map(|certificate| TlsOrder { certificate, version: Version::Tls13 });
        let dialer = Dialer::new(served.address, tls.as_ref())?;
        let path = target(&served.file)?;
        let wire_bytes = verify(&dialer, &path, &served.file)?;
        Ok(Self { dialer, path, wire_bytes })
    }
}

/// `/name` for the file of that name.
fn target(file: &Path) -> Result<String> {
    let name = file.file_name().and_then(|name| name.to_str());
    Ok(format!("/{}", name.with_context(|| format!("{} has no name", file.display()))?))
}
