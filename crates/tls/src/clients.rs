//! Certificates that clients show: asked for in the handshake, judged behind it.
//!
//! The handshake takes any certificate whose key the client proves to hold, and none. A client that TLS itself refuses
//! has often finished its own side by then, and waits: Linux' NFS client hangs for half a minute. So the judgement is a
//! value, and the protocol above TLS refuses (RFC 9289 5.2.1 leaves the place of the refusal to the server).

use crate::{TlsError, certificate::certificate_fault, der, inspection::names, pem};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use std::{path::Path, sync::Arc, time::SystemTime};
use webpki::EndEntityCert;

/// Who a client is by its certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientIdentity {
    /// It showed no certificate, or was not asked for one.
    #[default]
    Unknown,
    /// Its certificate leads to an authority that is trusted with clients.
    Certified {
        /// The names and addresses in its subjectAltName; its subject's common name if it has none.
        names: Vec<String>,
    },
    /// It showed a certificate that counts for nothing.
    Refused {
        /// Why, in words.
        reason: String,
    },
}

/// The authorities whose word about clients is taken.
#[derive(Debug)]
pub(crate) struct ClientAuthorities {
    roots: RootCertStore,
    subjects: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientAuthorities {
    /// Reads the authorities' certificates, a PEM file.
    pub(crate) fn load(file: &Path, provider: &CryptoProvider) -> Result<Arc<Self>, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in pem::read_chain(file)? {
            roots.add(certificate).map_err(|error| TlsError::CertificateUnusable {
                file: file.to_owned(),
                reason: format!("as an authority for clients: {error}"),
            })?;
        }
        Ok(Arc::new(Self {
            subjects: roots.subjects(),
            roots,
            algorithms: provider.signature_verification_algorithms,
        }))
    }

    /// Who the client is that showed `chain`, its own certificate first.
    pub(crate) fn judge(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> ClientIdentity {
        let Some((own, intermediates)) = chain.split_first() else { return ClientIdentity::Unknown };
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let judged = EndEntityCert::try_from(own).and_then(|parsed| {
            let time = UnixTime::since_unix_epoch(since);
            let usage = webpki::KeyUsage::client_auth();
            let algorithms = self.algorithms.all;
            parsed.verify_for_usage(algorithms, &self.roots.roots, intermediates, time, usage, None, None)?;
            let mut names = names(&parsed);
            if names.is_empty() {
                names.extend(der::common_name(parsed.subject()));
            }
            Ok(names)
        });
        match judged {
            Ok(names) => ClientIdentity::Certified { names },
            Err(error) => ClientIdentity::Refused { reason: certificate_fault(&error) },
        }
    }
}

impl ClientCertVerifier for ClientAuthorities {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // `judge` does, when the handshake is over.
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
