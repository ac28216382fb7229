//! The sites that are served, made from the configuration: opened roots, names, and the headers each path gets.

use crate::site_headers::{PathHeaders, RulePath, SiteHeaders};
use linerate_config::{self as config, Settings};
use linerate_content::{EtagSource, Policy, Root, Symlinks};
use linerate_http::MediaTypes;
use std::{borrow::Cow, fmt, sync::Arc};

/// Why a site cannot be served.
#[derive(Debug)]
pub struct SiteFault {
    origin: String,
    message: String,
}

impl fmt::Display for SiteFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.origin, self.message)
    }
}

/// A site, ready to serve.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Lower case; exact, or `*.` and a parent.
    names: Vec<String>,
    pub(crate) root: Arc<Root>,
    headers: Arc<SiteHeaders>,
    immutable: bool,
}

impl Site {
    /// Whether no file of it is ever changed in place.
    pub(crate) fn is_immutable(&self) -> bool {
        self.immutable
    }

    fn open(site: &config::Site, settings: &Settings) -> Result<Self, SiteFault> {
        let fault = |message: String| SiteFault { origin: site.root_origin.to_string(), message };
        let overrides: Vec<(String, String)> = site
            .policy
            .media_types
            .iter()
            .map(|(extension, media_type)| (extension.clone(), media_type.clone()))
            .collect();
        let media_types = MediaTypes::with_overrides(
            overrides.iter().map(|(extension, kind)| (extension.as_str(), kind.as_str())),
        )
        .and_then(|types| types.with_charset(site.policy.charset.as_deref()))
        .map_err(|error| fault(error.to_string()))?;
        let policy = Policy {
            symlinks: match site.policy.symlinks {
                config::Symlinks::Within => Symlinks::Within,
                config::Symlinks::Refused => Symlinks::Refused,
                config::Symlinks::Anywhere => Symlinks::Anywhere,
            },
            dotfiles: site.policy.dotfiles,
            listing: site.policy.listing,
            listing_limit_entries: settings.limits.listing_entries,
            index: site.policy.index.clone(),
            precompressed: site.policy.precompressed,
            etag_source: EtagSource::default(),
        };
        let root = Root::open(&site.root, policy, Arc::new(media_types))
            .map_err(|error| fault(error.to_string()))?;
        let headers = SiteHeaders::new(&site.policy).map_err(|error| fault(error.to_string()))?;
        Ok(Self {
            names: site.names.clone(),
            root: Arc::new(root),
            headers: Arc::new(headers),
            immutable: site.policy.immutable,
        })
    }

    /// What its responses for `path` have beside the fields that the server writes.
    pub(crate) fn headers(&self, path: RulePath<'_>, over_tls: bool) -> Cow<'_, PathHeaders> {
        self.headers.for_path(path, over_tls)
    }

    fn is_named(&self, host: &str) -> bool {
        self.names.iter().any(|name| name_matches(name, host))
    }
}

/// Whether `host` is `name`, or one label below it where it begins with `*.`.
fn name_matches(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        None => name.eq_ignore_ascii_case(host),
        Some(parent) => host
            .split_once('.')
            .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(parent)),
    }
}

/// All sites.
#[derive(Clone, Debug)]
pub(crate) struct Sites {
    /// Those with names first, exact names before wildcards, so that the first match is the best one.
    sites: Vec<Site>,
}

impl Sites {
    /// Opens the roots of all sites.
    ///
    /// # Errors
    /// What is wrong with each site that cannot be served.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Vec<SiteFault>> {
        let mut faults = Vec::new();
        let mut sites = Vec::new();
        for site in &settings.sites {
            match Site::open(site, settings) {
                Ok(site) => sites.push(site),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok(Self { sites }) } else { Err(faults) }
    }

    /// The same sites, but for these roots (each with the index of its site).
    pub(crate) fn with_roots(&self, roots: Vec<(usize, Root)>) -> Self {
        let mut sites = self.clone();
        for (index, root) in roots {
            if let Some(site) = sites.sites.get_mut(index) {
                site.root = Arc::new(root);
            }
        }
        sites
    }

    /// The site that a host name means; the one without names for all others. `None` if nobody serves that name.
    pub(crate) fn for_host(&self, host: &str) -> Option<&Site> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let exact = |site: &&Site| site.names.iter().any(|name| name.eq_ignore_ascii_case(host));
        self.sites
            .iter()
            .find(exact)
            .or_else(|| self.sites.iter().find(|site| site.is_named(host)))
            .or_else(|| self.default_site())
    }

    /// The site that answers where no name is given (HTTP/1.0) or known.
    pub(crate) fn default_site(&self) -> Option<&Site> {
        self.sites.iter().find(|site| site.names.is_empty())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_exactly_one_label() {
        assert!(name_matches("*.example.org", "a.EXAMPLE.org"));
        for host in ["example.org", "a.b.example.org", ".example.org", "aexample.org"] {
            assert!(!name_matches("*.example.org", host), "{host}");
        }
        assert!(name_matches("Example.org", "example.ORG"));
    }
}
