//! One certificate with its key: read, checked, and asked which hosts it covers.

use crate::{TlsError, der, pem};
use rustls::{NamedGroup, SignatureScheme, crypto::CryptoProvider, sign::CertifiedKey};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use webpki::EndEntityCert;

/// Where a certificate and its key are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertificateFiles {
    /// PEM: the server's own certificate, then those that lead to the root.
    pub certificate: PathBuf,
    /// PEM: the private key, as PKCS#8, SEC 1 or PKCS#1.
    pub key: PathBuf,
}

/// The kind of a certificate's key; in the order of what a signature costs us, the cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyAlgorithm {
    /// ECDSA on P-256.
    EcdsaP256,
    /// Ed25519; few browsers verify it.
    Ed25519,
    /// ECDSA on P-384.
    EcdsaP384,
    /// ECDSA on P-521.
    EcdsaP521,
    /// RSA of any length.
    Rsa,
}

impl KeyAlgorithm {
    /// As people write it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ECDSA P-256",
            Self::Ed25519 => "Ed25519",
            Self::EcdsaP384 => "ECDSA P-384",
            Self::EcdsaP521 => "ECDSA P-521",
            Self::Rsa => "RSA",
        }
    }

    /// The curve of an ECDSA key, by its name among the groups of a ClientHello.
    pub(crate) fn curve(self) -> Option<NamedGroup> {
        match self {
            Self::EcdsaP256 => Some(NamedGroup::secp256r1),
            Self::EcdsaP384 => Some(NamedGroup::secp384r1),
            Self::EcdsaP521 => Some(NamedGroup::secp521r1),
            Self::Ed25519 | Self::Rsa => None,
        }
    }
}

/// Something about a certificate that doesn't keep it from being served, but that clients will not like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateWarning {
    /// It is no longer valid.
    Expired {
        /// Since when.
        not_after: SystemTime,
    },
    /// It is not yet valid: is the clock right?
    NotYetValid {
        /// From when on it is.
        not_before: SystemTime,
    },
    /// It has no subjectAltName, and clients look nowhere else (RFC 9525 6).
    NoNames,
}

impl fmt::Display for CertificateWarning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = |later: SystemTime, earlier: SystemTime| {
            later.duration_since(earlier).unwrap_or_default().as_secs() / 86_400
        };
        let now = SystemTime::now();
        match self {
            Self::Expired { not_after } => {
                write!(formatter, "it expired {} days ago: renew it", days(now, *not_after))
            }
            Self::NotYetValid { not_before } => {
                let ahead = days(*not_before, now);
                write!(formatter, "it becomes valid in {ahead} days: is this machine's clock right?")
            }
            Self::NoNames => {
                formatter.write_str("it has no subjectAltName, so clients accept it for no host")
            }
        }
    }
}

/// A certificate chain with its key, checked to belong together.
pub struct Certificate {
    files: CertificateFiles,
    certified: Arc<CertifiedKey>,
    algorithm: KeyAlgorithm,
    not_before: SystemTime,
    not_after: SystemTime,
    has_names: bool,
}

impl Certificate {
    /// Reads both files and checks that they can be served.
    ///
    /// # Errors
    /// A [`TlsError`] that names the file, what is wrong with it and what to do.
    pub(crate) fn load(files: &CertificateFiles, provider: &CryptoProvider) -> Result<Self, TlsError> {
        let unusable =
            |reason: String| TlsError::CertificateUnusable { file: files.certificate.clone(), reason };
        let chain = pem::read_chain(&files.certificate)?;
        let key = pem::read_key(&files.key)?;
        let bits = der::rsa_private_key_bits(key.secret_der());
        let key = provider
            .key_provider
            .load_private_key(key)
            .map_err(|error| key_fault(&files.key, bits, &error))?;
        let algorithm = algorithm_of(&*key).ok_or_else(|| TlsError::KeyUnusable {
            file: files.key.clone(),
            reason: "no signature algorithm is known for it".to_owned(),
        })?;
        let certified = CertifiedKey::new(chain, key);
        let own = certified.cert.first().ok_or_else(|| unusable("the chain is empty".to_owned()))?;
        let parsed = EndEntityCert::try_from(own).map_err(|error| unusable(certificate_fault(&error)))?;
        match certified.keys_match() {
            Ok(()) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                return Err(TlsError::KeyMismatch {
                    certificate: files.certificate.clone(),
                    key: files.key.clone(),
                });
            }
            Err(error) => return Err(unusable(in_words(&error))),
        }
        let (not_before, not_after) = validity(&parsed);
        let has_names = has_names(&parsed);
        Ok(Self {
            files: files.clone(),
            certified: Arc::new(certified),
            algorithm,
            not_before,
            not_after,
            has_names,
        })
    }

    /// Where it came from.
    #[must_use]
    pub fn files(&self) -> &CertificateFiles {
        &self.files
    }

    /// The kind of its key.
    #[must_use]
    pub fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// The end of its validity.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// What clients will not like about it at the time `now`.
    #[must_use]
    pub fn warnings(&self, now: SystemTime) -> Vec<CertificateWarning> {
        let mut warnings = Vec::new();
        if now > self.not_after {
            warnings.push(CertificateWarning::Expired { not_after: self.not_after });
        }
        if now < self.not_before {
            warnings.push(CertificateWarning::NotYetValid { not_before: self.not_before });
        }
        if !self.has_names {
            warnings.push(CertificateWarning::NoNames);
        }
        warnings
    }

    /// Whether it is valid for `host`, a name or an address without a port (an IPv6 address with or without
    /// brackets). A request for another host is answered with 421 (RFC 9110 7.4).
    ///
    /// A certificate without any subjectAltName is taken to cover every host: a client that accepted it did not look.
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        if !self.has_names {
            return true;
        }
        let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let host = host.strip_suffix('.').unwrap_or(host);
        let Ok(name) = ServerName::try_from(host) else { return false };
        self.certified
            .cert
            .first()
            .and_then(|own| EndEntityCert::try_from(own).ok())
            .is_some_and(|own| own.verify_is_valid_for_subject_name(&name).is_ok())
    }

    /// SHA-256 over its DER form, as colon-separated upper-case hexadecimal.
    #[must_use]
    pub fn sha256_fingerprint(&self) -> String {
        self.certified.cert.first().map(sha256_fingerprint).unwrap_or_default()
    }

    pub(crate) fn certified(&self) -> &Arc<CertifiedKey> {
        &self.certified
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Certificate")
            .field("files", &self.files)
            .field("algorithm", &self.algorithm)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

/// SHA-256 over `certificate`, as colon-separated upper-case hexadecimal.
pub(crate) fn sha256_fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .map_or_else(Vec::new, |suite| suite.common.hash_provider.hash(certificate).as_ref().to_vec());
    digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

/// The shortest RSA key that the cryptographic library signs with.
const RSA_MINIMUM_BITS: usize = 2048;

/// Why a key cannot be used: the library says no more than that it cannot read it. `rsa_bits` is its length if it is an RSA
/// key.
fn key_fault(file: &Path, rsa_bits: Option<usize>, error: &rustls::Error) -> TlsError {
    let file = file.to_owned();
    match rsa_bits {
        Some(bits) if bits < RSA_MINIMUM_BITS => {
            TlsError::KeyTooShort { file, bits, minimum_bits: RSA_MINIMUM_BITS }
        }
        _ => TlsError::KeyUnusable {
            file,
            reason: format!(
                "{}; RSA keys of 2048 to 8192 bits, ECDSA keys on P-256, P-384 and P-521 and Ed25519 keys are taken",
                in_words(error)
            ),
        },
    }
}

/// rustls tells the algorithm family only; the curve shows in what the key can sign.
fn algorithm_of(key: &dyn rustls::sign::SigningKey) -> Option<KeyAlgorithm> {
    [
        (SignatureScheme::ECDSA_NISTP256_SHA256, KeyAlgorithm::EcdsaP256),
        (SignatureScheme::ED25519, KeyAlgorithm::Ed25519),
        (SignatureScheme::ECDSA_NISTP384_SHA384, KeyAlgorithm::EcdsaP384),
        (SignatureScheme::ECDSA_NISTP521_SHA512, KeyAlgorithm::EcdsaP521),
        (SignatureScheme::RSA_PSS_SHA256, KeyAlgorithm::Rsa),
    ]
    .into_iter()
    .find(|(scheme, _)| key.choose_scheme(&[*scheme]).is_some())
    .map(|(_, algorithm)| algorithm)
}

/// webpki does not show the validity, but says it when it refuses a certificate because of it: ask for the first and
/// the last moment there is.
pub(crate) fn validity(certificate: &EndEntityCert<'_>) -> (SystemTime, SystemTime) {
    let judge = |seconds| {
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let algorithms = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.all;
        let usage = webpki::KeyUsage::server_auth();
        certificate.verify_for_usage(algorithms, &[], &[], time, usage, None, None).err()
    };
    let at = |time: UnixTime| UNIX_EPOCH + Duration::from_secs(time.as_secs());
    let not_before = match judge(0) {
        Some(webpki::Error::CertNotValidYet { not_before, .. }) => at(not_before),
        _ => UNIX_EPOCH,
    };
    // A certificate that is valid for ever is one that webpki refuses for another reason.
    const END_OF_TIME_S: u64 = i64::MAX as u64;
    let not_after = match judge(END_OF_TIME_S) {
        Some(webpki::Error::CertExpired { not_after, .. }) => at(not_after),
        _ => UNIX_EPOCH + Duration::from_secs(u64::from(u32::MAX) * 64),
    };
    (not_before, not_after)
}

/// Whether it has any subjectAltName: asked about a name that no certificate may have, webpki lists those it has.
fn has_names(certificate: &EndEntityCert<'_>) -> bool {
    let Ok(nobody) = ServerName::try_from("nobody.invalid") else { return true };
    match certificate.verify_is_valid_for_subject_name(&nobody) {
        Err(webpki::Error::CertNotValidForName(context)) => !context.presented.is_empty(),
        _ => true,
    }
}

pub(crate) fn certificate_fault(error: &webpki::Error) -> String {
    match error {
        webpki::Error::UnsupportedCertVersion => {
            "it is of X.509 version 1 or 2, and clients want version 3: make it \
            anew, with a subjectAltName (openssl req -x509 -addext subjectAltName=DNS:...)"
                .to_owned()
        }
        webpki::Error::BadDer => "it is not valid DER: the file is damaged".to_owned(),
        other => other.to_string(),
    }
}

fn in_words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::General(reason) => reason.clone(),
        other => other.to_string(),
    }
}
