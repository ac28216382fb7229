//! Header fields that the operator adds to responses: names and values, checked once, when the configuration is read.

use crate::setting_error::{HeaderValueFault, SettingError};
use std::borrow::Cow;
use std::fmt;

/// The longest name accepted, in bytes.
const NAME_LIMIT_BYTES: usize = 128;

/// The longest value accepted, in bytes.
const VALUE_LIMIT_BYTES: usize = 4096;

/// Fields that the operator cannot set. They say how the message is to be read or what the connection does next, so the
/// server writes them itself; or the configuration has a key of its own for them, which the second half names.
const RESERVED: [(&str, &str); 19] = [
    ("Accept-Ranges", ""),
    ("Allow", ""),
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
    ("Proxy-Connection", ""),
    ("Server", ""),
    ("Strict-Transport-Security", ": use hsts"),
    ("Trailer", ""),
    ("Transfer-Encoding", ""),
    ("Upgrade", ""),
];

/// The name of a field. Names are equal without regard to case (RFC 9110 section 5.1).
#[derive(Debug, Clone)]
pub struct HeaderName(Cow<'static, str>);

impl HeaderName {
    /// How long a response may be kept. Not the operator's to set as a header.
    pub const CACHE_CONTROL: Self = Self(Cow::Borrowed("Cache-Control"));
    /// What a page may load and run.
    pub const CONTENT_SECURITY_POLICY: Self = Self(Cow::Borrowed("Content-Security-Policy"));
    /// Not the operator's to set as a header.
    pub const STRICT_TRANSPORT_SECURITY: Self = Self(Cow::Borrowed("Strict-Transport-Security"));
    /// By which headers of the request the response was chosen.
    pub const VARY: Self = Self(Cow::Borrowed("Vary"));
    /// Whether browsers may guess another media type than the one that was said.
    pub(crate) const X_CONTENT_TYPE_OPTIONS: Self = Self(Cow::Borrowed("X-Content-Type-Options"));

    /// Reads a name that the operator wrote.
    ///
    /// # Errors
    /// The name is no token (RFC 9110 section 5.6.2), too long, or one that the server writes itself.
    pub fn parse(name: &str) -> Result<Self, SettingError> {
        if name.is_empty() || name.len() > NAME_LIMIT_BYTES || !name.bytes().all(is_token_byte) {
            return Err(SettingError::HeaderName { name: name.to_owned() });
        }
        match RESERVED.iter().find(|(reserved, _)| reserved.eq_ignore_ascii_case(name)) {
            Some(&(name, instead)) => Err(SettingError::HeaderReserved { name, instead }),
            None => Ok(Self(Cow::Owned(name.to_owned()))),
        }
    }

    /// The name as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for HeaderName {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for HeaderName {}

impl fmt::Display for HeaderName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A field whose name and value cannot break a response's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderField {
    name: HeaderName,
    value: Cow<'static, str>,
}

impl HeaderField {
    /// Tells browsers to go by the media type that is said and not to guess another from the bytes.
    pub(crate) const NO_SNIFFING: Self = Self::constant(HeaderName::X_CONTENT_TYPE_OPTIONS, "nosniff");

    /// A field with a value that the operator wrote.
    ///
    /// # Errors
    /// The value is too long, has anything in it but visible ASCII, spaces and tabs, or has space at its ends (RFC 9110
    /// section 5.5; bytes above ASCII are obsolete there).
    pub fn new(name: HeaderName, value: &str) -> Result<Self, SettingError> {
        let fault = |fault| SettingError::HeaderValue { value: value.to_owned(), fault };
        if value.len() > VALUE_LIMIT_BYTES {
            return Err(fault(HeaderValueFault::TooLong { limit_bytes: VALUE_LIMIT_BYTES }));
        }
        if value.trim_matches([' ', '\t']) != value {
            return Err(fault(HeaderValueFault::SpaceAtTheEnds));
        }
        if !value.bytes().all(is_value_byte) {
            return Err(fault(HeaderValueFault::Characters));
        }
        Ok(Self { name, value: Cow::Owned(value.to_owned()) })
    }

    /// A field of the server's own; evaluated while compiling, which fails where the value may not stand in a head.
    pub const fn constant(name: HeaderName, value: &'static str) -> Self {
        let bytes = value.as_bytes();
        let mut index = 0;
        while index < bytes.len() {
            assert!(is_value_byte(bytes[index]), "a value is visible ASCII, spaces and tabs");
            index += 1;
        }
        Self { name, value: Cow::Borrowed(value) }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for HeaderField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.name, self.value)
    }
}

/// The characters of a token (RFC 9110 section 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

const fn is_value_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &str) -> Result<HeaderField, SettingError> {
        HeaderField::new(HeaderName::parse(name)?, value)
    }

    #[test]
    fn names_are_tokens_and_not_the_servers() {
        let longest = "x".repeat(NAME_LIMIT_BYTES);
        for name in
            ["X-Frame-Options", "Access-Control-Allow-Origin", "Content-Security-Policy", "x~y", &longest]
        {
            let parsed = HeaderName::parse(name).unwrap();
            assert_eq!((parsed.as_str(), &*parsed.to_string()), (name, name));
        }
        for name in ["", "a b", "a:", "a\r\n", "ä", &"x".repeat(NAME_LIMIT_BYTES + 1)] {
            assert_eq!(HeaderName::parse(name), Err(SettingError::HeaderName { name: name.to_owned() }));
        }
        for (reserved, instead) in RESERVED {
            for name in [reserved.to_owned(), reserved.to_ascii_lowercase(), reserved.to_ascii_uppercase()] {
                let refused = Err(SettingError::HeaderReserved { name: reserved, instead });
                assert_eq!(HeaderName::parse(&name), refused);
            }
        }
    }

    #[test]
    fn names_are_equal_without_regard_to_case() {
        assert_eq!(
            HeaderName::parse("content-security-policy").unwrap(),
            HeaderName::CONTENT_SECURITY_POLICY
        );
        let report_only = HeaderName::parse("Content-Security-Policy-Report-Only").unwrap();
        assert_ne!(report_only, HeaderName::CONTENT_SECURITY_POLICY);
    }

    #[test]
    fn a_constant_is_held_to_the_same_rule() {
        let constant = |value| std::panic::catch_unwind(|| HeaderField::constant(HeaderName::VARY, value));
        assert_eq!(constant("Origin, Accept").unwrap().value(), "Origin, Accept");
        for value in ["\n", "a\r", "a\0b"] {
            assert!(constant(value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn values_cannot_split_the_response() {
        for value in ["", "no-store", "a\tb", "default-src 'self'; img-src *", &"x".repeat(VALUE_LIMIT_BYTES)]
        {
            let field = field("a", value).unwrap();
            assert_eq!((field.value(), field.to_string()), (value, format!("a: {value}")));
        }
        use HeaderValueFault::*;
        let long = "x".repeat(VALUE_LIMIT_BYTES + 1);
        for (value, fault) in [
            ("a\r\nb: c", Characters),
            ("a\nb", Characters),
            ("a\0", Characters),
            ("\u{7f}", Characters),
            ("ä", Characters),
            (" a", SpaceAtTheEnds),
            ("a\t", SpaceAtTheEnds),
            (&long, TooLong { limit_bytes: VALUE_LIMIT_BYTES }),
        ] {
            assert_eq!(field("a", value), Err(SettingError::HeaderValue { value: value.to_owned(), fault }));
        }
    }
}
