//! The headers that a site's responses have, by path: put together once for each set of rules that meet, and copied from
//! then on.

use linerate_config as config;
use linerate_http::{HeaderBlock, HeaderField};
use std::{borrow::Cow, iter::once, sync::OnceLock};

/// With so many rules all sets of them are kept, twice (with TLS and without); with more a response's headers are put
/// together each time.
const KEPT_RULES_LIMIT: usize = 7;

/// What the responses for one path have beside the fields that the server writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathHeaders {
    /// On every response.
    pub(crate) block: HeaderBlock,
    /// On all but errors.
    pub(crate) cache_control: Option<HeaderField>,
}

/// The path that rules are held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RulePath<'a> {
    /// Decoded, without slashes at either end. A request without a path (`OPTIONS *`, one that could not be read) has the
    /// root's.
    pub(crate) relative: &'a [u8],
    /// It has a slash at its end, too.
    pub(crate) is_directory: bool,
}

impl RulePath<'_> {
    /// The root of a site.
    pub(crate) const ROOT: RulePath<'static> = RulePath { relative: b"", is_directory: true };

    /// The characters, with a slash at the beginning. Bytes that are not UTF-8 are U+FFFD.
    fn characters(&self) -> impl Iterator<Item = char> {
        let name = self.relative.utf8_chunks().flat_map(|chunk| {
            let replaced = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
            chunk.valid().chars().chain(replaced)
        });
        let slash = (self.is_directory && !self.relative.is_empty()).then_some('/');
        once('/').chain(name).chain(slash)
    }
}

/// A site's rules, and what they came to so far.
#[derive(Clone, Debug)]
pub(crate) struct SiteHeaders {
    hsts: Option<HeaderField>,
    rules: Vec<config::HeaderRule>,
    cache_control: Vec<config::CacheControlRule>,
    /// By [`index`]; empty where there are too many rules. Workers may make the same one at once; the first stays.
    kept: Box<[OnceLock<PathHeaders>]>,
}

impl SiteHeaders {
    /// # Errors
    /// As [`config::Hsts::field`].
    pub(crate) fn new(policy: &config::SitePolicy) -> Result<Self, config::Error> {
        let rules_count = policy.headers.len() + policy.cache_control.len();
        let kept_count = if rules_count <= KEPT_RULES_LIMIT { 2 << rules_count } else { 0 };
        Ok(Self {
            hsts: policy.hsts.map(config::Hsts::field).transpose()?,
            rules: policy.headers.clone(),
            cache_control: policy.cache_control.clone(),
            kept: (0..kept_count).map(|_| OnceLock::new()).collect(),
        })
    }

    /// The headers for `path`. Strict-Transport-Security is among them only if the response goes over TLS (RFC 6797
    /// section 7.2).
    pub(crate) fn for_path(&self, path: RulePath<'_>, over_tls: bool) -> Cow<'_, PathHeaders> {
        if self.kept.is_empty() {
            return Cow::Owned(self.put_together(path, over_tls));
        }
        // All rules count, and which ones cover the path is where it stands.
        let globs = self.rules.iter().map(|rule| &rule.path);
        let globs = globs.chain(self.cache_control.iter().map(|rule| &rule.path));
        let index = globs.fold(usize::from(over_tls), |index, glob| {
            index << 1 | usize::from(glob.matches(path.characters()))
        });
        match self.kept.get(index) {
            Some(kept) => Cow::Borrowed(kept.get_or_init(|| self.put_together(path, over_tls))),
            None => Cow::Owned(self.put_together(path, over_tls)),
        }
    }

    fn put_together(&self, path: RulePath<'_>, over_tls: bool) -> PathHeaders {
        let mut block: HeaderBlock = self.hsts.iter().filter(|_| over_tls).cloned().collect();
        for field in HeaderBlock::standard().fields() {
            block.set(field.clone());
        }
        for rule in self.rules.iter().filter(|rule| rule.path.matches(path.characters())) {
            for name in &rule.unset {
                block.unset(name);
            }
            for field in &rule.set {
                block.set(field.clone());
            }
        }
        let cache_control = self.cache_control.iter().rev().find(|rule| rule.path.matches(path.characters()));
        PathHeaders { block, cache_control: cache_control.map(|rule| rule.field.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_http::HeaderName;

    fn field(name: &str, value: &str) -> HeaderField {
        HeaderField::new(HeaderName::parse(name).unwrap(), value).unwrap()
    }

    fn rule(path: &str, set: &[(&str, &str)], unset: &[&str]) -> config::HeaderRule {
        config::HeaderRule {
            path: path.parse().unwrap(),
            set: set.iter().map(|(name, value)| field(name, value)).collect(),
            unset: unset.iter().map(|name| HeaderName::parse(name).unwrap()).collect(),
        }
    }

    fn lines(headers: &SiteHeaders, path: &str, over_tls: bool) -> String {
        let path =
            RulePath { relative: path.trim_matches('/').as_bytes(), is_directory: path.ends_with('/') };
        let headers = headers.for_path(path, over_tls);
        let cache_control = headers.cache_control.as_ref().map_or(String::new(), ToString::to_string);
        format!("{}{cache_control}", headers.block.as_str().replace("\r\n", " "))
    }

    fn policy() -> config::SitePolicy {
        config::SitePolicy {
            headers: vec![
                rule("/**", &[("X-Where", "all")], &[]),
                rule("/static/**", &[("x-where", "static")], &["X-Content-Type-Options"]),
                rule("/static/raw/**", &[("X-Content-Type-Options", "nosniff")], &["X-Where"]),
            ],
            cache_control: vec![config::CacheControlRule {
                path: "*.js".parse().unwrap(),
                field: HeaderField::new(HeaderName::CACHE_CONTROL, "no-cache").unwrap(),
            }],
            hsts: Some("10m".parse().unwrap()),
            ..config::SitePolicy::default()
        }
    }

    #[test]
    fn later_rules_replace_and_take_away() {
        let mut policy = policy();
        for rules_are_kept in [true, false] {
            let headers = SiteHeaders::new(&policy).unwrap();
            assert_eq!(!headers.kept.is_empty(), rules_are_kept);
            // Twice: put together, and kept.
            for _ in 0..2 {
                for (path, expected) in [
                    ("/", "X-Content-Type-Options: nosniff X-Where: all "),
                    ("/static", "X-Content-Type-Options: nosniff X-Where: all "),
                    ("/static/", "x-where: static "),
                    ("/static/a.js", "x-where: static Cache-Control: no-cache"),
                    ("/static/raw/a", "X-Content-Type-Options: nosniff "),
                ] {
                    assert_eq!(lines(&headers, path, false), expected, "{path}");
                    let hsts = "Strict-Transport-Security: max-age=600 ";
                    assert_eq!(lines(&headers, path, true), format!("{hsts}{expected}"), "{path}");
                }
            }
            // The same, and too many.
            policy.headers.extend((0..KEPT_RULES_LIMIT).map(|_| rule("/none", &[], &[])));
        }
    }

    #[test]
    fn names_that_are_not_utf8_are_covered_by_wildcards() {
        let headers = SiteHeaders::new(&config::SitePolicy {
            headers: vec![rule("/caf?.js", &[("X-A", "1")], &["X-Content-Type-Options"])],
            ..config::SitePolicy::default()
        });
        let path = RulePath { relative: b"caf\xe9.js", is_directory: false };
        assert_eq!(headers.unwrap().for_path(path, false).block.as_str(), "X-A: 1\r\n");
    }
}
