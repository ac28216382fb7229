//! What a certificate chain is good for, told without its key: of a file, or of a server that showed it.

use crate::{
    KeyAlgorithm, TlsError,
    certificate::{certificate_fault, sha256_fingerprint, validity},
    der, pem,
    trust::system_roots,
};
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::{path::Path, time::SystemTime};
use webpki::EndEntityCert;

/// A chain of certificates as a server shows it: its own first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain(Vec<CertificateDer<'static>>);

/// What there is to say of a [`Chain`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The kind of its key, and the key's length in bits; `None` for a kind that linerate does not serve.
    pub key: Option<(KeyAlgorithm, usize)>,
    /// The hosts and addresses that it covers, wildcards among them.
    pub names: Vec<String>,
    /// From when it is valid.
    pub not_before: SystemTime,
    /// Until when.
    pub not_after: SystemTime,
    /// What its issuer calls itself, if it does.
    pub issuer: Option<String>,
    /// How many certificates the chain has.
    pub certificates: usize,
    /// Where the chain leads.
    pub trust: ChainTrust,
    /// SHA-256 over the first certificate, as colon-separated upper-case hexadecimal.
    pub sha256_fingerprint: String,
}

/// Where a chain leads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainTrust {
    /// To an authority that this system trusts.
    Trusted,
    /// The certificate was issued by itself: only clients that were told trust it.
    SelfSigned,
    /// The certificate of this number, counted from 1, was not issued by the one behind it.
    Broken {
        /// Which.
        position: usize,
    },
    /// The chain ends at a certificate whose issuer this system does not know: a certificate is missing, or the
    /// authority is private.
    EndsAt {
        /// What the unknown issuer calls itself, if it does.
        issuer: Option<String>,
    },
    /// It leads to an authority of its own file that this system does not trust: a private one.
    PrivateAuthority {
        /// What the authority calls itself, if it does.
        name: Option<String>,
    },
    /// It would be trusted but for this.
    Refused(String),
    /// This system has no authorities to ask: why.
    NotKnown(String),
}

impl Chain {
    /// The certificates in a PEM file.
    ///
    /// # Errors
    /// The file cannot be read, or holds none.
    pub fn read(file: &Path) -> Result<Self, TlsError> {
        pem::read_chain(file).map(Self)
    }

    pub(crate) fn shown(certificates: &[CertificateDer<'_>]) -> Self {
        Self(certificates.iter().map(|certificate| certificate.clone().into_owned()).collect())
    }

    /// Whether there is no certificate in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// SHA-256 over the first certificate, as colon-separated upper-case hexadecimal; `None` if there is none.
    #[must_use]
    pub fn sha256_fingerprint(&self) -> Option<String> {
        self.0.first().map(sha256_fingerprint)
    }

    /// Says what it is good for at the time `now`, on this system.
    ///
    /// # Errors
    /// The first certificate is none: why, in words.
    pub fn inspect(&self, now: SystemTime) -> Result<Inspection, String> {
        self.inspect_with(now, system_roots().map_err(|error| error.to_string()))
    }

    fn inspect_with(
        &self,
        now: SystemTime,
        roots: Result<RootCertStore, String>,
    ) -> Result<Inspection, String> {
        let own = self.0.first().ok_or("the chain is empty")?;
        let parsed = EndEntityCert::try_from(own).map_err(|error| certificate_fault(&error))?;
        let (not_before, not_after) = validity(&parsed);
        Ok(Inspection {
            key: der::key_kind(parsed.subject_public_key_info().as_ref()),
            names: names(&parsed),
            not_before,
            not_after,
            issuer: der::common_name(parsed.issuer()),
            certificates: self.0.len(),
            // A certificate that has expired leads to the same place: when that is, is told apart.
            trust: self.trust(&parsed, now.clamp(not_before, not_after), roots),
            sha256_fingerprint: sha256_fingerprint(own),
        })
    }

    fn trust(
        &self,
        own: &EndEntityCert<'_>,
        now: SystemTime,
        roots: Result<RootCertStore, String>,
    ) -> ChainTrust {
        let roots = match roots {
            Ok(roots) => roots,
            Err(reason) => return ChainTrust::NotKnown(reason),
        };
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let algorithms = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.all;
        let verified = own.verify_for_usage(
            algorithms,
            &roots.roots,
            &self.0[1..],
            UnixTime::since_unix_epoch(since),
            webpki::KeyUsage::server_auth(),
            None,
            None,
        );
        match verified {
            Ok(_) => ChainTrust::Trusted,
            Err(webpki::Error::UnknownIssuer | webpki::Error::CaUsedAsEndEntity) => self.unknown(own),
            Err(error) => ChainTrust::Refused(error.to_string()),
        }
    }

    /// Why a chain leads to no authority that is known here.
    fn unknown(&self, own: &EndEntityCert<'_>) -> ChainTrust {
        if own.issuer() == own.subject() {
            return ChainTrust::SelfSigned;
        }
        let mut issuer = own.issuer().to_vec();
        for (index, certificate) in self.0.iter().enumerate().skip(1) {
            let Ok(parsed) = EndEntityCert::try_from(certificate) else {
                return ChainTrust::Broken { position: index };
            };
            if parsed.subject() != issuer {
                return ChainTrust::Broken { position: index };
            }
            if parsed.issuer() == parsed.subject() {
                return ChainTrust::PrivateAuthority { name: der::common_name(parsed.subject()) };
            }
            issuer = parsed.issuer().to_vec();
        }
        ChainTrust::EndsAt { issuer: der::common_name(&issuer) }
    }
}

/// webpki lists the names of a certificate when it is asked about one that it cannot have.
pub(crate) fn names(certificate: &EndEntityCert<'_>) -> Vec<String> {
    let Ok(nobody) = ServerName::try_from("nobody.invalid") else { return Vec::new() };
    let presented = match certificate.verify_is_valid_for_subject_name(&nobody) {
        Err(webpki::Error::CertNotValidForName(context)) => context.presented,
        _ => Vec::new(),
    };
    presented
        .iter()
        .filter_map(|name| {
            let (kind, rest) = name.split_once('(')?;
            let name = rest.strip_suffix(')')?.trim_matches('"');
            ["DnsName", "IpAddress"].contains(&kind).then(|| name.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
    use std::time::Duration;

    fn authority(name: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    /// A root, an intermediate, and a certificate of that: as a server would show them.
    fn chain() -> [CertificateDer<'static>; 3] {
        let key = || KeyPair::generate().unwrap();
        let root = CertifiedIssuer::self_signed(authority("The Root"), key()).unwrap();
        let middle = CertifiedIssuer::signed_by(authority("The Middle"), key(), &root).unwrap();
        let names = ["a.example", "*.b.example", "192.0.2.1"].map(str::to_owned);
        let own = CertificateParams::new(names.to_vec()).unwrap().signed_by(&key(), &middle).unwrap();
        [own.der().clone(), middle.der().clone(), root.der().clone()]
    }

    fn trust(certificates: &[CertificateDer<'static>], root: Option<&CertificateDer<'static>>) -> ChainTrust {
        let mut roots = RootCertStore::empty();
        if let Some(root) = root {
            roots.add(root.clone()).unwrap();
        }
        Chain::shown(certificates).inspect_with(SystemTime::now(), Ok(roots)).unwrap().trust
    }

    #[test]
    fn a_chain_leads_somewhere_or_it_is_said_where_it_ends() {
        let [own, middle, root] = chain();
        let named = |name: &str| Some(name.to_owned());
        let whole = [own.clone(), middle.clone()];
        assert_eq!(trust(&whole, Some(&root)), ChainTrust::Trusted);
        assert_eq!(trust(&whole, None), ChainTrust::EndsAt { issuer: named("The Root") });
        let alone = [own.clone()];
        assert_eq!(trust(&alone, Some(&root)), ChainTrust::EndsAt { issuer: named("The Middle") });
        let with_root = [own.clone(), middle.clone(), root.clone()];
        assert_eq!(trust(&with_root, None), ChainTrust::PrivateAuthority { name: named("The Root") });
        let disordered = [own, root.clone(), middle];
        assert_eq!(trust(&disordered, None), ChainTrust::Broken { position: 1 });
        assert_eq!(trust(std::slice::from_ref(&root), None), ChainTrust::SelfSigned);
        let no_roots = Chain::shown(&whole).inspect_with(SystemTime::now(), Err("none".to_owned())).unwrap();
        assert_eq!(no_roots.trust, ChainTrust::NotKnown("none".to_owned()));
    }

    #[test]
    fn names_key_and_time_are_told() {
        let [own, ..] = chain();
        let inspection = Chain::shown(&[own]).inspect(SystemTime::now()).unwrap();
        assert_eq!(inspection.key, Some((KeyAlgorithm::EcdsaP256, 256)));
        assert_eq!(inspection.names, ["a.example", "*.b.example", "192.0.2.1"]);
        assert_eq!(inspection.issuer.as_deref(), Some("The Middle"));
        assert_eq!(inspection.certificates, 1);
        assert!(inspection.not_before < SystemTime::now());
        assert!(inspection.not_after > SystemTime::now() + Duration::from_secs(86_400));
    }

    #[test]
    fn every_kind_of_key_is_told() {
        for (algorithm, expected) in [
            (&rcgen::PKCS_ECDSA_P384_SHA384, (KeyAlgorithm::EcdsaP384, 384)),
            (&rcgen::PKCS_ED25519, (KeyAlgorithm::Ed25519, 256)),
            (&rcgen::PKCS_RSA_SHA256, (KeyAlgorithm::Rsa, 2048)),
        ] {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let own = CertificateParams::new(["a.example".to_owned()]).unwrap().self_signed(&key).unwrap();
            let inspection = Chain::shown(&[own.der().clone()]).inspect(SystemTime::now()).unwrap();
            assert_eq!(inspection.key, Some(expected));
        }
    }

    #[test]
    fn what_is_no_certificate_says_so() {
        let damaged = Chain(vec![CertificateDer::from(vec![0x30, 0x03, 1, 2, 3])]);
        assert!(damaged.inspect(SystemTime::now()).unwrap_err().contains("DER"));
        assert!(Chain(Vec::new()).inspect(SystemTime::now()).is_err());
    }
}
