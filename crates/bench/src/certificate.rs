//! The certificates of the servers under test: self-signed, made for each run, trusted by its load clients alone.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};

use crate::definition::CertificateKind;
use crate::error::{Error, Result};

/// Where a certificate and its key lie, both as PEM.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    /// The certificate.
    pub(crate) chain: PathBuf,
    /// The private key.
    pub(crate) key: PathBuf,
}

impl Certificate {
    /// Makes one for `address` and localhost in `folder`.
    pub(crate) fn make(folder: &Path, kind: CertificateKind, address: IpAddr) -> Result<Self> {
        let (name, key) = match kind {
            CertificateKind::Ecdsa => ("ecdsa", KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)),
            CertificateKind::Rsa => ("rsa", KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)),
        };
        let impossible = |error: rcgen::Error| Error::Machine(format!("cannot make a certificate: {error}"));
        let key = key.map_err(impossible)?;
        let certificate = CertificateParams::new(vec!["localhost".to_owned(), address.to_string()])
            .and_then(|parameters| parameters.self_signed(&key))
            .map_err(impossible)?;
        let made =
            Self { chain: folder.join(format!("{name}.pem")), key: folder.join(format!("{name}.key")) };
        for (path, text) in [(&made.key, key.serialize_pem()), (&made.chain, certificate.pem())] {
            fs::write(path, text).map_err(Error::file("cannot write", path))?;
        }
        Ok(made)
    }
}
