//! The certificate that all servers share, self-signed and made once for each kind.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};

use super::network;
use super::options::CertificateKind;

/// Where a certificate and its key lie, both as PEM.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    /// The certificate.
    pub(crate) chain: PathBuf,
    /// The private key.
    pub(crate) key: PathBuf,
}

/// Makes the certificate in `folder` when it is not there, and returns where it is.
pub(crate) fn prepare(folder: &Path, kind: CertificateKind) -> Result<Certificate> {
    let folder = folder.join("certificates");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (name, algorithm) = match kind {
        CertificateKind::Ecdsa => ("ecdsa-p256", &PKCS_ECDSA_P256_SHA256),
        CertificateKind::Rsa => ("rsa-2048", &PKCS_RSA_SHA256),
    };
    let made =
        Certificate { chain: folder.join(format!("{name}.pem")), key: folder.join(format!("{name}.key")) };
    if made.chain.exists() && made.key.exists() {
        return Ok(made);
    }
    let key = match kind {
        CertificateKind::Ecdsa => KeyPair::generate_for(algorithm),
        CertificateKind::Rsa => KeyPair::generate_rsa_for(algorithm, RsaKeySize::_2048),
    }
    .context("cannot make a key")?;
    let names = ["localhost".to_string(), "127.0.0.1".to_string(), network::VETH_SERVER.to_string()];
    let certificate = CertificateParams::new(names)
        .and_then(|parameters| parameters.self_signed(&key))
        .context("cannot make a certificate")?;
    fs::write(&made.key, key.serialize_pem())
        .with_context(|| format!("cannot write {}", made.key.display()))?;
    fs::write(&made.chain, certificate.pem())
        .with_context(|| format!("cannot write {}", made.chain.display()))?;
    Ok(made)
}
