//! The request target (RFC 9112 section 3.2): which host is meant, which path, which query.

use crate::error::RequestError;

/// A host with an optional port, from the target in absolute form or from the Host header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authority<'a> {
    /// As sent: not lower-cased; an IPv6 address keeps its brackets. Empty when the client sent an empty
    /// Host.
    pub host: &'a str,
    /// The port, when one was given.
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Parses `host [":" port]` (RFC 9110 section 7.2). User information (`user@`) is refused.
    pub(crate) fn parse(value: &'a [u8]) -> Result<Self, RequestError> {
        let text = std::str::from_utf8(value).map_err(|_| RequestError::Host)?;
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let inner = rest.find(']').ok_or(RequestError::Host)?;
                if inner == 0 || !rest.as_bytes()[..inner].iter().all(|byte| is_address_byte(*byte)) {
                    return Err(RequestError::Host);
                }
                text.split_at(inner + 2)
            }
            None => {
                let host = text.find(':').unwrap_or(text.len());
                if !text.as_bytes()[..host].iter().all(|byte| is_name_byte(*byte)) {
                    return Err(RequestError::Host);
                }
                text.split_at(host)
            }
        };
        Ok(Self { host, port: parse_port(port)? })
    }
}

/// `":" *DIGIT`, or nothing. An empty port after the colon is allowed by RFC 3986 section 3.2.3 and means
/// none.
fn parse_port(text: &str) -> Result<Option<u16>, RequestError> {
    let Some(digits) = text.strip_prefix(':') else {
        return if text.is_empty() { Ok(None) } else { Err(RequestError::Host) };
    };
    if digits.is_empty() {
        return Ok(None);
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(RequestError::Host);
    }
    digits.parse().map(Some).map_err(|_| RequestError::Host)
}

/// The characters of a registered name or IPv4 address (RFC 3986 section 3.2.2).
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}

/// The characters of an IPv6 address, with those of a zone.
fn is_address_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b":.%-_~".contains(&byte)
}

/// The parts of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// From the absolute form (or CONNECT's authority form); takes precedence over Host (RFC 9112 section
    /// 3.2.2).
    pub(crate) authority: Option<Authority<'a>>,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
}

impl<'a> Target<'a> {
    pub(crate) fn parse(method: &str, target: &'a str) -> Result<Self, RequestError> {
        // A fragment never goes over the wire; a server that took it for a part of the path would serve
        // another file than the client and any cache in between believe.
        if target.as_bytes().contains(&b'#') {
            return Err(RequestError::Target);
        }
        if target.starts_with('/') {
            return Ok(Self::origin(target));
        }
        match method {
            "CONNECT" => {
                Ok(Self { authority: Some(Authority::parse(target.as_bytes())?), path: "", query: None })
            }
            "OPTIONS" if target == "*" => Ok(Self { authority: None, path: "*", query: None }),
            _ => Self::absolute(method, target),
        }
    }

    fn origin(target: &'a str) -> Self {
        match target.split_once('?') {
            Some((path, query)) => Self { authority: None, path, query: Some(query) },
            None => Self { authority: None, path: target, query: None },
        }
    }

    fn absolute(method: &str, target: &'a str) -> Result<Self, RequestError> {
        let (scheme, rest) = target.split_once("://").ok_or(RequestError::Target)?;
        if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
            return Err(RequestError::Target);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let authority = Authority::parse(authority.as_bytes())?;
        // RFC 9110 section 4.2.1: an address without a host is invalid.
        if authority.host.is_empty() {
            return Err(RequestError::Host);
        }
        let mut parts = Self::origin(rest);
        if parts.path.is_empty() {
            // RFC 9112 section 3.2.4: an OPTIONS for the server as a whole loses its asterisk in the absolute
            // form.
            parts.path = if method == "OPTIONS" && parts.query.is_none() { "*" } else { "/" };
        }
        Ok(Self { authority: Some(authority), ..parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(
        method: &str,
        target: &'static str,
    ) -> (Option<&'static str>, &'static str, Option<&'static str>) {
        let parts = Target::parse(method, target).unwrap();
        (parts.authority.map(|authority| authority.host), parts.path, parts.query)
    }

    #[test]
    fn takes_the_four_forms_apart() {
        assert_eq!(target("GET", "/a/b?c=d?e"), (None, "/a/b", Some("c=d?e")));
        assert_eq!(target("GET", "/?"), (None, "/", Some("")));
        assert_eq!(target("GET", "https://example.org/a?b"), (Some("example.org"), "/a", Some("b")));
        assert_eq!(target("GET", "HTTP://example.org"), (Some("example.org"), "/", None));
        assert_eq!(target("GET", "http://example.org?q"), (Some("example.org"), "/", Some("q")));
        assert_eq!(target("OPTIONS", "*"), (None, "*", None));
        assert_eq!(target("OPTIONS", "http://example.org"), (Some("example.org"), "*", None));
        assert_eq!(target("CONNECT", "example.org:443"), (Some("example.org"), "", None));
    }

    #[test]
    fn refuses_other_targets() {
        for wrong in ["*", "a", "ftp://example.org/", "//", "http:/example.org", "example.org:443", "/a#b"] {
            let refused = Target::parse("GET", wrong);
            assert!(refused == Err(RequestError::Target) || wrong == "//", "{wrong}: {refused:?}");
        }
        for wrong in ["http:///a", "http://user@example.org/", "http://a b/", "http://[::1/"] {
            assert_eq!(Target::parse("GET", wrong), Err(RequestError::Host), "{wrong}");
        }
    }

    #[test]
    fn reads_hosts_and_ports() {
        let authority = |value: &'static str| Authority::parse(value.as_bytes()).unwrap();
        assert_eq!(authority("example.org"), Authority { host: "example.org", port: None });
        assert_eq!(authority("example.org:8443"), Authority { host: "example.org", port: Some(8443) });
        assert_eq!(authority("[::1]:443"), Authority { host: "[::1]", port: Some(443) });
        assert_eq!(authority("[::1]"), Authority { host: "[::1]", port: None });
        assert_eq!(authority("a:"), Authority { host: "a", port: None });
        assert_eq!(authority(""), Authority { host: "", port: None });
    }

    #[test]
    fn refuses_malformed_hosts() {
        for wrong in [
            "a b", "a/b", "a:b", "a:+1", "a:70000", "a:1:2", "[]", "[::1", "[::1]x", "[: :1]", "[::1/]",
            "::1", "user@a", "a\\b", "ä",
        ] {
            assert_eq!(Authority::parse(wrong.as_bytes()), Err(RequestError::Host), "{wrong}");
        }
        assert_eq!(Authority::parse(b"\xff"), Err(RequestError::Host));
    }
}
