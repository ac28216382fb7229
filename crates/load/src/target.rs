//! What is asked for: a URL, taken apart.

use std::{fmt, str::FromStr};

/// An `http` or `https` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Over TLS.
    pub tls: bool,
    /// Host name or IP address, the latter without brackets.
    pub host: String,
    /// Port, the scheme's own where the URL has none.
    pub port: u16,
    /// Path and query, as they go into the request.
    pub path: String,
}

impl Target {
    /// What belongs into the Host header: without the scheme's own port.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let (tls, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            _ => return Err("write it with its scheme, like https://localhost:8443/file".to_owned()),
        };
        if let Some(odd) = url.chars().find(|&c| !c.is_ascii_graphic()) {
            return Err(format!("{odd:?} has to be percent-encoded in a URL"));
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        if authority.contains('@') {
            return Err(
                "user names in URLs are not supported: send an -H 'Authorization: …' header".to_owned()
            );
        }
        let (host, port) = host_and_port(authority)?;
        let port = match port {
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|&port| port > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .ok_or_else(|| format!("\"{digits}\" is no port"))?,
            None if tls => 443,
            None => 80,
        };
        let path = if path.starts_with('?') { format!("/{path}") } else { path.to_owned() };
        Ok(Self { tls, host: host.to_owned(), port, path })
    }
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`.
pub(crate) fn host_and_port(authority: &str) -> Result<(&str, Option<&str>), String> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, behind) =
            rest.split_once(']').ok_or("the bracket around the IPv6 address is not closed")?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(format!("[{host}] is no IPv6 address"));
        }
        match behind.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if behind.is_empty() => (host, None),
            None => return Err(format!("\"{behind}\" behind the address is no port")),
        }
    } else {
        match authority.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err("an IPv6 address is written in brackets, like https://[::1]:8443/".to_owned());
            }
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    Ok((host, port))
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(formatter, "{scheme}://{}{}", self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, tls, host, port, path, shown) in [
            ("https://a.example/x?y=1#z", true, "a.example", 443, "/x?y=1", "https://a.example/x?y=1"),
            ("http://127.0.0.1:8080", false, "127.0.0.1", 8080, "/", "http://127.0.0.1:8080/"),
            ("HTTPS://[::1]:8443/%20", true, "::1", 8443, "/%20", "https://[::1]:8443/%20"),
            ("http://h?q", false, "h", 80, "/?q", "http://h/?q"),
            ("https://h:443/", true, "h", 443, "/", "https://h/"),
        ] {
            let target: Target = url.parse().unwrap();
            assert_eq!(target, Target { tls, host: host.to_owned(), port, path: path.to_owned() });
            assert_eq!(target.to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_url_is_refused_with_advice() {
        for (url, words) in [
            ("localhost:8443/", "scheme"),
            ("ftp://h/", "scheme"),
            ("https://", "host is missing"),
            ("https://h:0/", "no port"),
            ("https://h:+1/", "no port"),
            ("https://h:99999/", "no port"),
            ("https://::1/", "brackets"),
            ("https://[::1/", "not closed"),
            ("https://[x]/", "no IPv6"),
            ("https://[::1]x/", "no port"),
            ("https://h/a b", "percent-encoded"),
            ("https://h/ä", "percent-encoded"),
            ("https://u:p@h/", "not supported"),
        ] {
            let said = url.parse::<Target>().unwrap_err();
            assert!(said.contains(words), "{url}: {said}");
        }
    }
}
