//! What can go wrong with certificates, keys and the policy: which file, what is wrong with it, what to do.

use std::{fmt, io, path::PathBuf};

/// A fault in what the operator gave us, or of the system beneath. None of them comes from a peer: those are
/// [`HandshakeFailure`](crate::HandshakeFailure)s.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// System: a file cannot be read.
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// System: the development certificate cannot be kept in the state directory.
    StateUnwritable {
        /// The file, or the directory itself.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not PEM, or is cut off.
    NotPem {
        /// The file.
        file: PathBuf,
        /// Where the reader stumbled.
        reason: String,
    },
    /// The certificate file has no certificate.
    NoCertificate {
        /// The file.
        file: PathBuf,
        /// What it holds instead, in words.
        holds: String,
    },
    /// The key file has no private key.
    NoKey {
        /// The file.
        file: PathBuf,
        /// What it holds instead, in words.
        holds: String,
    },
    /// The key file is encrypted with a pass phrase.
    KeyEncrypted {
        /// The file.
        file: PathBuf,
    },
    /// The certificate cannot be used.
    CertificateUnusable {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// The key is an RSA key of a length that is not used.
    KeyTooShort {
        /// The file.
        file: PathBuf,
        /// Its length in bits.
        bits: usize,
        /// The least.
        minimum_bits: usize,
    },
    /// The key cannot be used.
    KeyUnusable {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// The key is not the certificate's.
    KeyMismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// There is no site at all.
    NoSites,
    /// A site has no certificate.
    NoCertificateForSite {
        /// The site's first name, or `the default site`.
        site: String,
    },
    /// Two sites have the same name.
    NameTwice {
        /// The name.
        name: String,
    },
    /// The policy leaves nothing to speak.
    PolicyUnusable(String),
    /// No state directory: neither `XDG_STATE_HOME` nor `HOME` says where it is.
    NoStateDirectory,
    /// System: no certificate authority is installed; why, as far as the system says.
    NoSystemRoots(String),
    /// Ours or the system's: the cryptographic library refused to work.
    Crypto(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { file, source } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    write!(formatter, "{}: cannot be read by this user ({source})", file.display())
                }
                _ => write!(formatter, "{}: cannot be read: {source}", file.display()),
            },
            Self::StateUnwritable { file, source } => write!(
                formatter,
                "{}: cannot be written ({source}): no certificate was named, so one for development is made, and kept in \
                 the state directory; set XDG_STATE_HOME to a directory that this user can write, or name a certificate \
                 and its key",
                file.display()
            ),
            Self::NotPem { file, reason } => write!(formatter, "{}: cannot be read as PEM: {reason}", file.display()),
            Self::NoCertificate { file, holds } => {
                write!(formatter, "{}: no certificate found; {holds}", file.display())
            }
            Self::NoKey { file, holds } => {
                write!(formatter, "{}: no private key found; {holds}", file.display())
            }
            Self::KeyEncrypted { file } => write!(
                formatter,
                "{0}: the key is encrypted; remove the pass phrase with `openssl pkey -in {0} -out key.pem`",
                file.display()
            ),
            Self::CertificateUnusable { file, reason } => {
                write!(formatter, "{}: the certificate cannot be used: {reason}", file.display())
            }
            Self::KeyTooShort { file, bits, minimum_bits } => write!(
                formatter,
                "{}: the key is too short: RSA with {bits} bits, and {minimum_bits} is the least that is taken; make a \
                 new key, and have its certificate issued anew",
                file.display()
            ),
            Self::KeyUnusable { file, reason } => {
                write!(formatter, "{}: the key cannot be used: {reason}", file.display())
            }
            Self::KeyMismatch { certificate, key } => write!(
                formatter,
                "{}: this key does not belong to the certificate in {} (the chain's first certificate must be the \
                 server's own)",
                key.display(),
                certificate.display()
            ),
            Self::NoSites => formatter.write_str("no site: give at least one with a certificate and its key"),
            Self::NoCertificateForSite { site } => {
                write!(formatter, "{site} has no certificate: give it one and its key")
            }
            Self::NameTwice { name } => write!(formatter, "two sites have the name {name}: give it to one"),
            Self::PolicyUnusable(reason) => formatter.write_str(reason),
            Self::NoStateDirectory => formatter.write_str(
                "no place to keep the development certificate: neither XDG_STATE_HOME nor HOME is set; set one, or \
                 give a certificate and its key",
            ),
            Self::NoSystemRoots(reason) => write!(
                formatter,
                "no certificate authority is known to the system ({reason}): install them (on Debian: apt install \
                 ca-certificates), or name the server's own"
            ),
            Self::Crypto(reason) => write!(formatter, "the cryptographic library failed: {reason}"),
        }
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } | Self::StateUnwritable { source, .. } => Some(source),
            _ => None,
        }
    }
}
