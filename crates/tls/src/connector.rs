//! What a client offers and whom it trusts, as one value that all its connections share.

use crate::{
    Certificate, CertificateFiles, TlsError, TlsPolicy, pem,
    policy::versions,
    sessions::Sessions,
    trust::{AnyCertificate, system_roots},
};
use linerate_record::Version;
use rustls::{
    ClientConfig, RootCertStore,
    client::{Resumption, WebPkiServerVerifier, danger::ServerCertVerifier},
    sign::SingleCertAndKey,
};
use std::{fmt, path::PathBuf, sync::Arc};

/// The protocols that clients offer by ALPN: HTTP's, and that of RPC-with-TLS (RFC 9289 section 8.1).
const HTTP_PROTOCOL: &str = "http/1.1";
const RPC_PROTOCOL: &str = "sunrpc";

/// Which certificates a client takes from servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those that the system's authorities vouch for.
    System,
    /// Those that the authorities in this PEM file vouch for.
    File(PathBuf),
    /// Any. The server still has to prove that it holds the certificate's key.
    Anyone,
}

/// A client's side of TLS: versions, suites, groups, trust, and the sessions it can resume.
#[derive(Clone, Debug)]
pub struct Connector {
    config: Arc<ClientConfig>,
    resumes: bool,
    protocol: &'static str,
}

impl Connector {
    /// A client of HTTP that offers what `policy` says, in that order, and resumes sessions if the policy has tickets.
    ///
    /// # Errors
    /// The policy leaves nothing to offer, or the authorities cannot be read.
    pub fn new(policy: &TlsPolicy, trust: &Trust) -> Result<Self, TlsError> {
        Self::speaking(HTTP_PROTOCOL, policy, trust)
    }

    /// The same of RPC-with-TLS, which has no version before 1.3 (RFC 9289 section 5).
    ///
    /// # Errors
    /// The same.
    pub fn for_rpc(policy: &TlsPolicy, trust: &Trust) -> Result<Self, TlsError> {
        Self::speaking(RPC_PROTOCOL, &TlsPolicy { minimum_version: Version::Tls13, ..policy.clone() }, trust)
    }

    fn speaking(protocol: &'static str, policy: &TlsPolicy, trust: &Trust) -> Result<Self, TlsError> {
        let suites = policy.usable_suites()?;
        let provider = Arc::new(policy.provider(&suites));
        let crypto = |error: rustls::Error| TlsError::Crypto(error.to_string());
        let verifier: Arc<dyn ServerCertVerifier> = match trust {
            Trust::Anyone => Arc::new(AnyCertificate::new(&provider)),
            Trust::System => verifier(system_roots()?, &provider)?,
            Trust::File(file) => {
                let mut roots = RootCertStore::empty();
                for certificate in pem::read_chain(file)? {
                    roots.add(certificate).map_err(|error| TlsError::CertificateUnusable {
                        file: file.clone(),
                        reason: error.to_string(),
                    })?;
                }
                verifier(roots, &provider)?
            }
        };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(&suites))
            .map_err(crypto)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        config.enable_secret_extraction = true;
        config.resumption = match policy.session_tickets {
            true => Resumption::store(Arc::new(Sessions::default())),
            false => Resumption::disabled(),
        };
        Ok(Self { config: Arc::new(config), resumes: policy.session_tickets, protocol })
    }

    /// The same client, which shows this certificate, if there is one, to servers that ask.
    ///
    /// # Errors
    /// The files cannot be read, or do not belong together.
    pub fn showing(mut self, files: Option<&CertificateFiles>) -> Result<Self, TlsError> {
        let Some(files) = files else { return Ok(self) };
        let config = Arc::make_mut(&mut self.config);
        let certificate = Certificate::load(files, config.crypto_provider())?;
        let certified = SingleCertAndKey::from(Arc::clone(certificate.certified()));
        config.client_auth_cert_resolver = Arc::new(certified);
        Ok(self)
    }

    pub(crate) fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    pub(crate) fn resumes(&self) -> bool {
        self.resumes
    }

    pub(crate) fn protocol(&self) -> &'static str {
        self.protocol
    }
}

fn verifier(
    roots: RootCertStore,
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    Ok(built.map_err(|error| TlsError::Crypto(error.to_string()))?)
}

/// A client's handshake that failed: a word for counting, a sentence for people.
#[derive(Clone, Debug)]
pub struct ConnectFailure {
    kind: &'static str,
    detail: String,
}

impl ConnectFailure {
    pub(crate) fn new(kind: &'static str, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// What went wrong, out of a few words: "certificate", "alert", "malformed", …
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Whether it is the server's certificate that was refused.
    #[must_use]
    pub fn is_about_trust(&self) -> bool {
        self.kind == CERTIFICATE
    }
}

const CERTIFICATE: &str = "certificate";

impl From<rustls::Error> for ConnectFailure {
    fn from(error: rustls::Error) -> Self {
        use rustls::Error;
        let kind = match &error {
            Error::InvalidCertificate(_) | Error::NoCertificatesPresented => CERTIFICATE,
            Error::AlertReceived(_) => "alert",
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => "incompatible",
            Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => "malformed",
            Error::PeerMisbehaved(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::DecryptError => "misbehaved",
            _ => "internal",
        };
        Self::new(kind, error.to_string())
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.detail)
    }
}

impl std::error::Error for ConnectFailure {}
