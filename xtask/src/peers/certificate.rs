//! The certificate that all servers share, self-signed and made once for each kind.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result};
pub(crate) use linerate_bench::Certificate;
use linerate_bench::definition::CertificateKind as Kind;

use super::network;
use super::options::CertificateKind;

/// Makes the certificate in `folder` when it is not there, and returns where it is.
pub(crate) fn prepare(folder: &Path, kind: CertificateKind) -> Result<Certificate> {
    let folder = folder.join("certificates");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let kind = match kind {
        CertificateKind::Ecdsa => Kind::Ecdsa,
        CertificateKind::Rsa => Kind::Rsa,
    };
    let made = Certificate::of(&folder, kind);
    if made.chain.exists() && made.key.exists() {
        return Ok(made);
    }
    let addresses = [Ipv4Addr::LOCALHOST.into(), network::VETH_SERVER.into()];
    Certificate::make(&folder, kind, &addresses).context("no certificate for the servers")
}
