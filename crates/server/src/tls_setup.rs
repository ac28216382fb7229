//! From settings to what `crates/tls` accepts connections with.

use linerate_config::{self as config, ListenerKind, Settings};
use linerate_tls as tls;

/// The policy that the settings ask for.
fn policy(settings: &Settings) -> tls::TlsPolicy {
    let configured = &settings.tls;
    let defaults = tls::TlsPolicy::default();
    // Both crates know the same suites and groups by the same names: nothing is lost on the way.
    let cipher_suites = configured.cipher_suites.as_ref().map(|suites| {
        suites.as_slice().iter().filter_map(|suite| tls::CipherSuite::named(suite.iana_name())).collect()
    });
    let groups = configured
        .groups
        .as_ref()
        .map(|groups| groups.as_slice().iter().filter_map(|group| tls::Group::named(group.name())).collect());
    tls::TlsPolicy {
        minimum_version: match configured.minimum_version {
            config::TlsVersion::Version12 => linerate_record::Version::Tls12,
            config::TlsVersion::Version13 => linerate_record::Version::Tls13,
        },
        cipher_suites: cipher_suites.unwrap_or(defaults.cipher_suites),
        groups: groups.unwrap_or(defaults.groups),
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

/// The certificates of each site.
fn certificates(
    settings: &Settings,
    development: Option<tls::CertificateFiles>,
) -> Vec<tls::SiteCertificates> {
    settings
        .sites
        .iter()
        .map(|site| {
            let configured = site.certificates.iter().map(|pair| tls::CertificateFiles {
                certificate: pair.certificate.clone(),
                key: pair.key.clone(),
            });
            tls::SiteCertificates {
                names: site.names.clone(),
                certificates: configured
                    .chain(development.clone().filter(|_| site.certificates.is_empty()))
                    .collect(),
            }
        })
        .collect()
}

/// Whether anything is served over TLS.
pub(crate) fn is_wanted(settings: &Settings) -> bool {
    settings.listeners.iter().any(|listener| listener.kind == ListenerKind::Tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration knows no TLS library, so both crates have a table of their own: what one names the other must
    /// know, or it would be left out of the policy without a word.
    #[test]
    fn both_crates_know_the_same_suites_and_groups() {
        let configured: Vec<_> = config::CipherSuite::all()
            .map(|suite| {
                let version = match suite.version() {
                    config::TlsVersion::Version12 => linerate_record::Version::Tls12,
                    config::TlsVersion::Version13 => linerate_record::Version::Tls13,
                };
                (suite.iana_name(), suite.openssl_name(), version)
            })
            .collect();
        let spoken: Vec<_> = tls::CipherSuite::all()
            .map(|suite| (suite.iana_name(), suite.openssl_name(), suite.version()))
            .collect();
        for suite in &configured {
            assert!(spoken.contains(suite), "crates/tls does not know {suite:?}");
        }
        for suite in &spoken {
            assert!(configured.contains(suite), "crates/config does not know {suite:?}");
        }

        let of_name: Vec<_> = config::Group::all().map(|group| tls::Group::named(group.name())).collect();
        assert!(!of_name.contains(&None), "crates/tls does not know all of crates/config: {of_name:?}");
        for group in tls::Group::ALL {
            assert!(of_name.contains(&Some(group)), "crates/config does not know {group:?}");
            let named: config::Group = group.iana_name().parse().unwrap();
            assert_eq!(tls::Group::named(named.name()), Some(group));
        }
        assert_eq!(of_name.len(), tls::Group::ALL.len());
    }
}
