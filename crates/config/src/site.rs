//! What is served, and how.

use std::collections::BTreeMap;
use std::path::PathBuf;

use linerate_http::{HeaderField, HeaderName};

use crate::{Hsts, Origin, PathGlob, Symlinks};

/// A folder served under some names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Host names it answers to, in lower case, exact or `*.example.org`; empty is the default site.
    pub names: Vec<String>,
    /// The folder.
    pub root: PathBuf,
    /// Where the folder was named.
    pub root_origin: Origin,
    /// Its certificates; one is chosen by what the client can verify.
    pub certificates: Vec<CertificateFiles>,
    /// How it is served.
    pub policy: SitePolicy,
}

/// A certificate chain and its key, both PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// The private key of the first certificate.
    pub key: PathBuf,
    /// Where the certificate was named.
    pub origin: Origin,
    /// Where the key was named.
    pub key_origin: Origin,
}

/// How a site is served: what `[site_defaults]` can say for all sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePolicy {
    /// Files served for a folder, the first that exists.
    pub index: Vec<String>,
    /// Whether a folder without index file is listed.
    pub listing: bool,
    /// Whether names that begin with a dot are served and listed.
    pub dotfiles: bool,
    /// What happens with symbolic links.
    pub symlinks: Symlinks,
    /// Whether `.br`, `.zst` and `.gz` siblings are served to clients that accept them.
    pub precompressed: bool,
    /// Whether no file is ever changed in place.
    pub immutable: bool,
    /// The charset said with text types; `None` says none.
    pub charset: Option<String>,
    /// Media types by file name extension (lower case, without dot), before the built-in ones.
    pub media_types: BTreeMap<String, String>,
    /// Strict-Transport-Security.
    pub hsts: Option<Hsts>,
    /// Headers by path, on every response of the site; every rule that covers the path adds its own, a later rule's
    /// replace an earlier one's.
    pub headers: Vec<HeaderRule>,
    /// Cache-Control by path, on all responses but errors; the last rule that covers the path wins.
    pub cache_control: Vec<CacheControlRule>,
}

impl Default for SitePolicy {
    fn default() -> Self {
        SitePolicy {
            index: vec!["index.html".to_owned()],
            listing: true,
            dotfiles: false,
            symlinks: Symlinks::Within,
            precompressed: true,
            immutable: false,
            charset: Some("utf-8".to_owned()),
            media_types: BTreeMap::new(),
            hsts: None,
            headers: Vec::new(),
            cache_control: Vec::new(),
        }
    }
}

/// Response headers for some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderRule {
    /// The paths.
    pub path: PathGlob,
    /// The fields that responses have, in the order of the file; each in the place of what an earlier rule, or the
    /// server where nothing is said, has under its name.
    pub set: Vec<HeaderField>,
    /// The fields that responses do not have, whichever earlier rule set them.
    pub unset: Vec<HeaderName>,
}

/// The Cache-Control header for some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheControlRule {
    /// The paths.
    pub path: PathGlob,
    /// The header.
    pub field: HeaderField,
}
