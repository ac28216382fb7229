//! The certificates of the servers under test: self-signed, made for each run, trusted by its load clients alone.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};

use crate::definition::CertificateKind;
use crate::error::{Error, Result};

/// Where a certificate and its key lie, both as PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub chain: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl Certificate {
    /// Where that of a kind lies in `folder`.
    #[must_use]
    pub fn of(folder: &Path, kind: CertificateKind) -> Self {
        let name = match kind {
            CertificateKind::Ecdsa => "ecdsa",
            CertificateKind::Rsa => "rsa",
        };
        Self { chain: folder.join(format!("{name}.pem")), key: folder.join(format!("{name}.key")) }
    }

    /// Makes one for these addresses and localhost in `folder`.
    ///
    /// # Errors
    /// [`Error::Machine`] if no key can be made, and of writing the files.
    pub fn make(folder: &Path, kind: CertificateKind, addresses: &[IpAddr]) -> Result<Self> {
        let key = match kind {
            CertificateKind::Ecdsa => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            CertificateKind::Rsa => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        };
        let impossible = |error: rcgen::Error| Error::Machine(format!("cannot make a certificate: {error}"));
        let key = key.map_err(impossible)?;
        let mut names = vec!["localhost".to_owned()];
        names.extend(addresses.iter().map(ToString::to_string));
        let certificate = CertificateParams::new(names)
            .and_then(|parameters| parameters.self_signed(&key))
            .map_err(impossible)?;
        let made = Self::of(folder, kind);
        for (path, text) in [(&made.key, key.serialize_pem()), (&made.chain, certificate.pem())] {
            fs::write(path, text).map_err(Error::file("cannot write", path))?;
        }
        Ok(made)
    }
}
