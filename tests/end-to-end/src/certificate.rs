//! Certificates on disk, made for a test.

use crate::site::replace_file;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256, RsaKeySize};
use rustls_pki_types::CertificateDer;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The kinds of key that the server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA on P-256.
    Ecdsa,
    /// RSA of 2048 bits.
    Rsa,
    /// Ed25519.
    Ed25519,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ecdsa, Self::Rsa, Self::Ed25519];

    fn new_key(self) -> KeyPair {
        match self {
            Self::Ecdsa => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            Self::Rsa => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
            Self::Ed25519 => KeyPair::generate_for(&PKCS_ED25519),
        }
        .expect("a key of an algorithm that the library knows")
    }
}

/// A self-signed certificate and its key, as PEM files.
#[derive(Clone, Debug)]
pub struct CertificatePair {
    /// The certificate's file; clients take it as their trust anchor.
    pub certificate: PathBuf,
    /// The key's file.
    pub key: PathBuf,
    /// The certificate itself.
    pub der: CertificateDer<'static>,
}

impl CertificatePair {
    /// Writes `FOLDER/STEM.pem` and `FOLDER/STEM.key`, for these DNS names or IP addresses. Existing files are
    /// replaced by renaming new ones over them, the certificate first.
    ///
    /// # Panics
    /// Where the files cannot be written.
    #[must_use]
    pub fn create(folder: &Path, stem: &str, algorithm: Algorithm, names: &[&str]) -> Self {
        let key = algorithm.new_key();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut parameters = CertificateParams::new(names).expect("names that a certificate can hold");
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, format!("{stem} of a test"));
        let made = parameters.self_signed(&key).expect("a certificate that is signed by its own key");
        fs::create_dir_all(folder).expect("the folder of certificates");
        let pair = Self {
            certificate: folder.join(format!("{stem}.pem")),
            key: folder.join(format!("{stem}.key")),
            der: made.der().clone(),
        };
        replace_file(&pair.certificate, made.pem().as_bytes());
        replace_file(&pair.key, key.serialize_pem().as_bytes());
        pair
    }

    /// An ECDSA certificate for `localhost` and 127.0.0.1: what most tests want.
    #[must_use]
    pub fn for_localhost(folder: &Path) -> Self {
        Self::create(folder, "localhost", Algorithm::Ecdsa, &["localhost", "127.0.0.1"])
    }
}
