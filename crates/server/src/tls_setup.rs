//! From settings to what `crates/tls` accepts connections with.

use linerate_config::{ListenerKind, Settings};
use linerate_tls as tls;

/// The policy that the settings ask for.
fn policy(settings: &Settings) -> tls::TlsPolicy {
    let configured = &settings.tls;
    let defaults = tls::TlsPolicy::default();
    tls::TlsPolicy {
        minimum_version: configured.minimum_version,
        cipher_suites: configured
            .cipher_suites
            .as_ref()
            .map_or(defaults.cipher_suites, |suites| suites.as_slice().to_vec()),
        groups: configured.groups.as_ref().map_or(defaults.groups, |groups| groups.as_slice().to_vec()),
        session_tickets: configured.session_tickets,
    }
}

/// What acceptors are made by, at start and at each reload. `development` stands in for a server without certificates.
pub(crate) fn builder(
    settings: &Settings,
    development: Option<tls::CertificateFiles>,
) -> tls::AcceptorBuilder {
    tls::AcceptorBuilder::new(policy(settings), certificates(settings, development))
}

/// The same for exports; `None` if none has TLS.
pub(crate) fn nfs_builder(
    settings: &Settings,
    development: Option<tls::CertificateFiles>,
) -> Option<tls::AcceptorBuilder> {
    if !settings.serves_nfs_over_tls() {
        return None;
    }
    let configured: Vec<_> = settings.nfs.certificates.iter().map(files).collect();
    let made = development.filter(|_| configured.is_empty());
    let authorities = settings.nfs.client_authorities.as_ref().map(|file| file.path.clone());
    let certificates = configured.into_iter().chain(made).collect();
    Some(tls::AcceptorBuilder::rpc(policy(settings), certificates, authorities))
}

fn files(pair: &linerate_config::CertificateFiles) -> tls::CertificateFiles {
    tls::CertificateFiles { certificate: pair.certificate.clone(), key: pair.key.clone() }
}

/// The certificates of each site.
fn certificates(
    settings: &Settings,
    development: Option<tls::CertificateFiles>,
) -> Vec<tls::SiteCertificates> {
    settings
        .sites
        .iter()
        .map(|site| {
            let configured = site.certificates.iter().map(files);
            tls::SiteCertificates {
                names: site.names.clone(),
                certificates: configured
                    .chain(development.clone().filter(|_| site.certificates.is_empty()))
                    .collect(),
            }
        })
        .collect()
}

/// Whether sites are served over TLS.
pub(crate) fn is_wanted(settings: &Settings) -> bool {
    settings.listeners.iter().any(|listener| listener.kind == ListenerKind::Tls)
}
