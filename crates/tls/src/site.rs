//! Which certificate a client is shown: by the name it asks for, then by what it can verify.

use crate::{Certificate, CertificateFiles, TlsError};
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use std::{cell::Cell, collections::HashMap, sync::Arc};

/// A site: the names it answers to and the certificates it has, of different algorithms if it has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteCertificates {
    /// Host names in lower case; `*.example.org` stands for one more label. Without names it is the default site.
    pub names: Vec<String>,
    /// At least one.
    pub certificates: Vec<CertificateFiles>,
}

impl SiteCertificates {
    /// How messages name it.
    pub(crate) fn label(&self) -> String {
        self.names.first().map_or_else(|| "the default site".to_owned(), |name| format!("site {name}"))
    }
}

/// The sites with their certificates loaded.
#[derive(Debug)]
pub(crate) struct Sites {
    /// In the order in which they were given; each with its certificates in the order of preference.
    certificates: Vec<Vec<Arc<Certificate>>>,
    exact: HashMap<String, usize>,
    /// By what follows the `*.`.
    wildcard: HashMap<String, usize>,
    default: usize,
}

impl Sites {
    /// `certificates` are those of `sites`, in the same order.
    ///
    /// # Errors
    /// If there is no site, one without a certificate, or a name that two have.
    pub(crate) fn new(
        sites: &[SiteCertificates],
        mut certificates: Vec<Vec<Arc<Certificate>>>,
    ) -> Result<Self, TlsError> {
        if sites.is_empty() {
            return Err(TlsError::NoSites);
        }
        let (mut exact, mut wildcard) = (HashMap::new(), HashMap::new());
        for (index, site) in sites.iter().enumerate() {
            if certificates.get(index).is_none_or(Vec::is_empty) {
                return Err(TlsError::NoCertificateForSite { site: site.label() });
            }
            for name in &site.names {
                let name = name.to_ascii_lowercase();
                let earlier = match name.strip_prefix("*.") {
                    Some(parent) => wildcard.insert(parent.to_owned(), index),
                    None => exact.insert(name.clone(), index),
                };
                if earlier.is_some_and(|earlier| earlier != index) {
                    return Err(TlsError::NameTwice { name });
                }
            }
        }
        for certificates in &mut certificates {
            certificates.sort_by_key(|certificate| certificate.algorithm());
        }
        let default = sites.iter().position(|site| site.names.is_empty()).unwrap_or(0);
        Ok(Self { certificates, exact, wildcard, default })
    }

    /// The site that answers to `name`: the one that has it, else the one with its wildcard, else the default.
    pub(crate) fn find(&self, name: Option<&str>) -> usize {
        let Some(name) = name else { return self.default };
        let under_wildcard = || self.wildcard.get(name.split_once('.')?.1);
        self.exact.get(name).or_else(under_wildcard).copied().unwrap_or(self.default)
    }

    pub(crate) fn certificates(&self) -> impl Iterator<Item = &Arc<Certificate>> {
        self.certificates.iter().flatten()
    }

    /// The first of the site's certificates that suits the client, and whether the client says that it can verify it.
    ///
    /// In TLS 1.2 (`groups_name_curves`) a client's groups tell which curves it takes in certificates, too (RFC 8422
    /// 5.1.1): a certificate with a curve of the list goes before one without. If the client can verify none the
    /// answer is the first: a session may be resumed without any.
    fn choose(
        &self,
        site: usize,
        hello: &ClientHello<'_>,
        groups_name_curves: bool,
    ) -> Option<(&Arc<Certificate>, bool)> {
        let certificates = self.certificates.get(site)?;
        let is_verifiable = |certificate: &Arc<Certificate>| {
            certificate.certified().key.choose_scheme(hello.signature_schemes()).is_some()
        };
        let curves = hello.named_groups().filter(|_| groups_name_curves);
        let is_on_known_curve = |certificate: &Arc<Certificate>| {
            let wanted = certificate.algorithm().curve().zip(curves);
            wanted.is_none_or(|(curve, known)| known.contains(&curve))
        };
        certificates
            .iter()
            .find(|certificate| is_verifiable(certificate) && is_on_known_curve(certificate))
            .or_else(|| certificates.iter().find(|certificate| is_verifiable(certificate)))
            .map(|certificate| (certificate, true))
            .or_else(|| certificates.first().map(|certificate| (certificate, false)))
    }
}

/// What the resolver chose for a ClientHello.
pub(crate) struct Resolved {
    pub(crate) site: usize,
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) certificate: Arc<Certificate>,
    /// Whether the client says that it can verify the certificate.
    pub(crate) is_verifiable: bool,
}

thread_local! {
    /// Hands the choice to the handshake that asked for it. The unbuffered API keeps the SNI name to itself; but
    /// rustls calls the resolver from within the call that was given the ClientHello, on the same thread.
    static RESOLVED: Cell<Option<Resolved>> = const { Cell::new(None) };
}

/// The choice made since the last call on this thread.
pub(crate) fn take_resolved() -> Option<Resolved> {
    RESOLVED.take()
}

/// What rustls asks.
#[derive(Debug)]
pub(crate) struct CertificateChoice {
    pub(crate) sites: Arc<Sites>,
    /// Whether it will be TLS 1.2: rustls does not tell.
    pub(crate) is_tls12: bool,
}

impl ResolvesServerCert for CertificateChoice {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let site = self.sites.find(hello.server_name());
        let (certificate, is_verifiable) = self.sites.choose(site, &hello, self.is_tls12)?;
        let certificate = Arc::clone(certificate);
        let certified = Arc::clone(certificate.certified());
        let server_name = hello.server_name().map(Box::from);
        RESOLVED.set(Some(Resolved { site, server_name, certificate, is_verifiable }));
        Some(certified)
    }
}
