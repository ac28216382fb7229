//! The servers in a guest: those of `linerate bench`, on the one core.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use linerate_bench::Certificate;
use linerate_bench::definition::{CertificateKind, OwnServer, Workload};
use linerate_bench::network::Network;
use linerate_bench::servers::process::{Broken, RunningServer, pick_address};
use linerate_bench::servers::{Candidate, Place, Programs};

/// Where servers of a guest run, and what they serve.
#[derive(Debug)]
pub(super) struct Setting {
    /// Between them and the client.
    pub(super) network: Network,
    /// Below it each has a folder of its own.
    pub(super) folder: PathBuf,
    /// The document root.
    pub(super) root: PathBuf,
    /// Theirs.
    pub(super) certificate: Certificate,
    /// The server's binary.
    pub(super) linerate: PathBuf,
}

impl Setting {
    /// An empty document root in `folder`, and a certificate.
    pub(super) fn make(network: Network, folder: PathBuf, linerate: PathBuf) -> Result<Self> {
        let root = folder.join("files");
        fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
        let certificate = Certificate::make(&folder, CertificateKind::Ecdsa, &[network.server_address()])?;
        Ok(Self { network, folder, root, certificate, linerate })
    }

    /// Starts a server of `linerate bench`: a built-in one by its name, or the one that `own` describes.
    pub(super) fn start(&self, name: &str, own: Option<OwnServer>) -> Result<RunningServer> {
        let programs = Programs { linerate: self.linerate.clone(), debian13: PathBuf::new() };
        let own: Vec<OwnServer> = own.into_iter().collect();
        let candidate = Candidate::new(name, &own, &programs)
            .with_context(|| format!("linerate bench has no server \"{name}\""))?;
        if let Err(reason) = candidate.probe() {
            bail!("{reason}");
        }
        let folder = self.folder.join(name.replace(' ', "-"));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let (launched, address) = self.launch(&candidate, &folder).map_err(anyhow::Error::msg)?;
        RunningServer::start(&launched, address, &[0], &folder).map_err(|broken| said(&broken))
    }

    fn launch(
        &self,
        candidate: &Candidate,
        folder: &Path,
    ) -> Result<(linerate_bench::servers::Launch, std::net::SocketAddr), String> {
        let address = pick_address(candidate, &self.network)?;
        let workload = Workload::default();
        let place = Place {
            address,
            root: &self.root,
            certificate: &self.certificate,
            cores: &[0],
            folder,
            workload: &workload,
        };
        let mut launch = candidate.launch(&place)?;
        launch.command = self.network.at_server(launch.command);
        Ok((launch, address))
    }
}

/// Why a server does not run, with the end of what it wrote.
pub(super) fn said(broken: &Broken) -> anyhow::Error {
    anyhow::anyhow!("{}; it says:\n{}", broken.reason, broken.log.join("\n"))
}
