//! Header lines that the operator adds to responses, checked once and formatted once.

use crate::error::SettingError;

/// Written by the server itself, or meaningful only to the connection: the operator cannot set these.
const RESERVED: [&str; 17] = [
    "accept-ranges",
    "allow",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "keep-alive",
    "last-modified",
    "location",
    "proxy-connection",
    "server",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Complete header lines, e.g. `Cache-Control: no-store\r\n`, that cannot break a response's head.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderBlock {
    lines: String,
}

impl HeaderBlock {
    /// No lines.
    pub const EMPTY: Self = Self { lines: String::new() };

    /// Adds a line at the end.
    ///
    /// # Errors
    /// A name that is no token or that the server writes itself, or a value with anything but printable
    /// ASCII.
    pub fn push(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err(SettingError::HeaderName { name: name.to_owned() });
        }
        if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
            return Err(SettingError::HeaderReserved { name: name.to_owned() });
        }
        if value.trim() != value || !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(SettingError::HeaderValue { name: name.to_owned() });
        }
        for part in [name, ": ", value, "\r\n"] {
            self.lines.push_str(part);
        }
        Ok(())
    }

    /// Adds the lines of another block at the end.
    pub fn append(&mut self, other: &Self) {
        self.lines.push_str(&other.lines);
    }

    /// The lines, each with its CRLF.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.lines
    }
}

/// The characters of a token (RFC 9110 section 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_lines() {
        let mut block = HeaderBlock::EMPTY;
        block.push("Cache-Control", "public, max-age=31536000, immutable").unwrap();
        let mut more = HeaderBlock::EMPTY;
        more.push("X-Empty", "").unwrap();
        block.append(&more);
        assert_eq!(block.as_str(), "Cache-Control: public, max-age=31536000, immutable\r\nX-Empty: \r\n");
    }

    #[test]
    fn refuses_what_would_break_the_head() {
        let mut block = HeaderBlock::EMPTY;
        for name in ["", "a b", "a:", "a\r\n", "ä"] {
            assert_eq!(block.push(name, "x"), Err(SettingError::HeaderName { name: name.to_owned() }));
        }
        for value in ["a\r\nb: c", "a\n", " a", "a\t", "ä", "\0"] {
            assert_eq!(block.push("a", value), Err(SettingError::HeaderValue { name: "a".to_owned() }));
        }
        for name in RESERVED.iter().copied().chain(["Content-LENGTH"]) {
            assert_eq!(block.push(name, "1"), Err(SettingError::HeaderReserved { name: name.to_owned() }));
        }
        assert_eq!(block, HeaderBlock::EMPTY);
    }
}
