//! Response headers that the operator adds, and Strict-Transport-Security.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::choice::shortened;
use crate::quantity::{duration_text, parse_duration_ms};

/// The longest header value accepted, in bytes.
const LIMIT_VALUE_BYTES: usize = 4096;

/// The longest time a browser may be asked to remember, in seconds: ten years.
const LIMIT_HSTS_S: u64 = 3650 * 86_400;

/// What a name on the preload lists has to promise at least, in seconds: a year (hstspreload.org).
const PRELOAD_LEAST_S: u64 = 31_536_000;

/// Headers that say how the message itself is to be read; they follow from the response and are never the
/// operator's. The second half tells where the configuration speaks about them instead.
const SERVERS_OWN: [(&str, &str); 16] = [
    ("Accept-Ranges", ""),
    ("Cache-Control", ": use cache_control"),
    ("Connection", ""),
    ("Content-Encoding", ": use precompressed"),
    ("Content-Length", ""),
    ("Content-Range", ""),
    ("Content-Type", ": use media_types"),
    ("Date", ""),
    ("ETag", ""),
    ("Keep-Alive", ""),
    ("Last-Modified", ""),
    ("Location", ""),
    ("Strict-Transport-Security", ": use hsts"),
    ("Trailer", ""),
    ("Transfer-Encoding", ""),
    ("Upgrade", ""),
];

/// Checks a header name: a token (RFC 9110 section 5.6.2) that is not one of the server's own headers.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > 128 || !name.bytes().all(is_token_byte) {
        return Err(Error::value(format!(
            "\"{}\" is no header name: letters, digits and - are allowed",
            shortened(name)
        )));
    }
    match SERVERS_OWN.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)) {
        Some((own, instead)) => Err(Error::value(format!("{own} is written by the server itself{instead}"))),
        None => Ok(()),
    }
}

/// Checks a header value: visible ASCII, spaces and tabs, none of these at the ends (RFC 9110 section 5.5).
pub(crate) fn check_value(value: &str) -> Result<(), Error> {
    if value.len() > LIMIT_VALUE_BYTES {
        return Err(Error::value(format!("the header value is longer than {LIMIT_VALUE_BYTES} bytes")));
    }
    if value.trim_matches([' ', '\t']) != value {
        return Err(Error::value(format!("header value \"{}\" has space at its ends", shortened(value))));
    }
    if !value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
        return Err(Error::value(format!(
            "header value \"{}\" contains characters outside of visible ASCII and space",
            shortened(value)
        )));
    }
    Ok(())
}

/// Strict-Transport-Security (RFC 6797): asks browsers to come back over TLS only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hsts {
    /// How long to remember it, in seconds; 0 asks to forget.
    pub max_age_s: u64,
    /// Whether it holds for the names below this one.
    pub include_subdomains: bool,
    /// Whether the operator agrees to the browsers' built-in lists.
    pub preload: bool,
}

impl Hsts {
    /// Checks what the preload lists ask for.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        if self.preload && (self.max_age_s < PRELOAD_LEAST_S || !self.include_subdomains) {
            return Err(Error::value("preload needs a max_age of 365d at least, and include_subdomains"));
        }
        Ok(self)
    }

    /// Reads the time: whole seconds, ten years at most.
    pub(crate) fn parse_max_age_s(text: &str) -> Result<u64, Error> {
        parse_duration_ms(text, 0..=LIMIT_HSTS_S * 1000).map(|max_age_ms| max_age_ms / 1000)
    }
}

impl FromStr for Hsts {
    type Err = Error;

    /// Reads the flag's way of writing it: `DURATION[,include-subdomains][,preload]`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut parts = text.split(',');
        let max_age_s = Self::parse_max_age_s(parts.next().unwrap_or_default())?;
        let mut hsts = Hsts { max_age_s, include_subdomains: false, preload: false };
        for part in parts {
            let directives = [("include-subdomains", true), ("includeSubDomains", true), ("preload", false)];
            if crate::choice::choose("HSTS directive", part, &directives, "")? {
                hsts.include_subdomains = true;
            } else {
                hsts.preload = true;
            }
        }
        hsts.checked()
    }
}

impl fmt::Display for Hsts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", duration_text(self.max_age_s.saturating_mul(1000)))?;
        formatter.write_str(if self.include_subdomains { ", include-subdomains" } else { "" })?;
        formatter.write_str(if self.preload { ", preload" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens_and_not_the_servers() {
        for name in ["X-Frame-Options", "Access-Control-Allow-Origin", "x~y"] {
            check_name(name).unwrap();
        }
        for name in ["", "X Y", "X:", "Ü", "X\r\nY"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        let message = check_name("cache-control").unwrap_err().to_string();
        assert_eq!(message, "Cache-Control is written by the server itself: use cache_control");
        let message = check_name("Content-length").unwrap_err().to_string();
        assert_eq!(message, "Content-Length is written by the server itself");
    }

    #[test]
    fn values_cannot_split_the_response() {
        for value in ["", "no-store", "a\tb", "default-src 'self'; img-src *"] {
            check_value(value).unwrap();
        }
        for value in ["a\r\nSet-Cookie: x", "a\0", " a", "a\t", "ü"] {
            assert!(check_value(value).is_err(), "{value:?}");
        }
        assert!(check_value(&"x".repeat(LIMIT_VALUE_BYTES)).is_ok());
        assert!(check_value(&"x".repeat(LIMIT_VALUE_BYTES + 1)).is_err());
    }

    #[test]
    fn hsts_is_read_from_a_flag() {
        let hsts: Hsts = "365d,include-subdomains,preload".parse().unwrap();
        assert_eq!(hsts, Hsts { max_age_s: 31_536_000, include_subdomains: true, preload: true });
        assert_eq!(hsts.to_string(), "365d, include-subdomains, preload");
        assert_eq!("10m".parse::<Hsts>().unwrap().max_age_s, 600);
        for text in ["", "1y", "365d,preload", "30d,include-subdomains,preload", "365d,", "3651d"] {
            assert!(text.parse::<Hsts>().is_err(), "{text:?}");
        }
    }
}
