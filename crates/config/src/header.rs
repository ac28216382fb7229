//! Strict-Transport-Security.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::quantity::{duration_text, parse_duration_ms};
use linerate_http::{HeaderField, HeaderName};

/// The longest time a browser may be asked to remember, in seconds: ten years.
const LIMIT_HSTS_S: u64 = 3650 * 86_400;

/// What a name on the preload lists has to promise at least, in seconds: a year (hstspreload.org).
const PRELOAD_LEAST_S: u64 = 31_536_000;

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

    /// The header field that says it.
    ///
    /// # Errors
    /// Never: the value is made of digits and names.
    pub fn field(self) -> Result<HeaderField, Error> {
        let include_subdomains = if self.include_subdomains { "; includeSubDomains" } else { "" };
        let preload = if self.preload { "; preload" } else { "" };
        let value = format!("max-age={}{include_subdomains}{preload}", self.max_age_s);
        Ok(HeaderField::new(HeaderName::STRICT_TRANSPORT_SECURITY, &value)?)
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
    fn the_field_says_what_was_asked_for() {
        for (flag, value) in [
            ("0s", "max-age=0"),
            ("10m", "max-age=600"),
            ("365d,include-subdomains,preload", "max-age=31536000; includeSubDomains; preload"),
        ] {
            let field = flag.parse::<Hsts>().unwrap().field().unwrap();
            assert_eq!(field.to_string(), format!("Strict-Transport-Security: {value}"));
        }
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
