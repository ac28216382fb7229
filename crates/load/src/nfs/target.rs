//! Which file of which server: a URL, taken apart.

use std::{fmt, str::FromStr};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::target::host_and_port;

/// NFS's port (RFC 8881 section 2.9.3).
const PORT: u16 = 2049;
/// Steps from the root to a file.
const STEPS_LIMIT: usize = 32;
/// The longest name, in bytes.
const NAME_LIMIT_BYTES: usize = 255;
/// What stands in a URL's path as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An `nfs` URL, near to RFC 2224's: `nfs://HOST[:PORT]/EXPORT/path`. The path begins at the server's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NfsTarget {
    /// Host name or IP address, the latter without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Names to look up, one after the other.
    pub path: Vec<String>,
}

impl FromStr for NfsTarget {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("nfs") => rest,
            _ => return Err("write it with its scheme, like nfs://localhost/export/file".to_owned()),
        };
        if let Some(odd) = url.chars().find(|&c| !c.is_ascii_graphic()) {
            return Err(format!("{odd:?} has to be percent-encoded in a URL"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err("NFS has no user names in URLs".to_owned());
        }
        let (host, port) = host_and_port(authority)?;
        let port = match port {
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|&port| port > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .ok_or_else(|| format!("\"{digits}\" is no port"))?,
            None => PORT,
        };
        let names = path.split('/').filter(|name| !name.is_empty());
        let path = names.map(name).collect::<Result<Vec<_>, _>>()?;
        match path.len() {
            0 => Err("name a file behind the host, like nfs://localhost/export/file".to_owned()),
            1..=STEPS_LIMIT => Ok(Self { host: host.to_owned(), port, path }),
            _ => Err(format!("at most {STEPS_LIMIT} names can be looked up in a row")),
        }
    }
}

fn name(encoded: &str) -> Result<String, String> {
    let name = percent_decode_str(encoded).decode_utf8().map_err(|_| format!("{encoded} is not UTF-8"))?;
    if name == "." || name == ".." {
        return Err(format!("\"{name}\" cannot be looked up: write the path without it"));
    }
    if name.len() > NAME_LIMIT_BYTES || name.contains(['/', '\0']) {
        return Err(format!("{encoded} is no name of a file"));
    }
    Ok(name.into_owned())
}

impl fmt::Display for NfsTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "nfs://[{}]", self.host)?,
            false => write!(formatter, "nfs://{}", self.host)?,
        }
        if self.port != PORT {
            write!(formatter, ":{}", self.port)?;
        }
        self.path.iter().try_for_each(|name| write!(formatter, "/{}", utf8_percent_encode(name, ENCODED)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, host, port, path, shown) in [
            ("nfs://a.example/x/y%20z", "a.example", 2049, &["x", "y z"][..], "nfs://a.example/x/y%20z"),
            ("NFS://[::1]:20490//f/", "::1", 20490, &["f"], "nfs://[::1]:20490/f"),
            ("nfs://10.0.0.1:2049/%C3%A4", "10.0.0.1", 2049, &["ä"], "nfs://10.0.0.1/%C3%A4"),
        ] {
            let target: NfsTarget = url.parse().unwrap();
            let path = path.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(target, NfsTarget { host: host.to_owned(), port, path });
            assert_eq!(target.to_string(), shown);
        }
    }

    #[test]
    fn what_names_no_file_is_refused_with_advice() {
        let many = format!("nfs://h{}", "/x".repeat(STEPS_LIMIT + 1));
        let long = format!("nfs://h/{}", "n".repeat(256));
        for (url, words) in [
            ("h:/export", "scheme"),
            ("http://h/", "scheme"),
            ("nfs://h", "name a file"),
            ("nfs://h//", "name a file"),
            ("nfs:///f", "host is missing"),
            ("nfs://h:0/f", "no port"),
            ("nfs://u@h/f", "user names"),
            ("nfs://h/a/../b", "without it"),
            ("nfs://h/a%2Fb", "no name"),
            ("nfs://h/%ff", "UTF-8"),
            ("nfs://h/ä", "percent-encoded"),
            (&many, "in a row"),
            (&long, "no name"),
        ] {
            let said = url.parse::<NfsTarget>().unwrap_err();
            assert!(said.contains(words), "{url}: {said}");
        }
    }
}
