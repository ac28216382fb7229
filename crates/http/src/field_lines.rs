//! The lines of one list-valued header, borrowed, without joining them into one string.

use crate::error::RequestError;

/// How many lines of one list-valued header are kept; a request with more is refused.
///
/// RFC 9110 section 5.3 lets a sender split a list over lines. Ordinary clients send one; a proxy may make
/// two.
pub const FIELD_LINES_LIMIT: usize = 4;

/// The lines of one list-valued header (e.g. If-None-Match) in the order received; most often none or one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldLines<'a> {
    lines: [&'a [u8]; FIELD_LINES_LIMIT],
    count: usize,
}

impl<'a> FieldLines<'a> {
    /// No lines: the header is absent.
    pub(crate) const NONE: Self = Self { lines: [b""; FIELD_LINES_LIMIT], count: 0 };

    pub(crate) fn push(&mut self, line: &'a [u8]) -> Result<(), RequestError> {
        let place = self.lines.get_mut(self.count).ok_or(RequestError::FieldLines)?;
        *place = line;
        self.count += 1;
        Ok(())
    }

    /// Whether the header is absent. A header that is there with an empty value is not absent.
    #[must_use]
    pub(crate) fn is_absent(&self) -> bool {
        self.count == 0
    }

    /// The values, one a line, without the whitespace around them.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.lines[..self.count].iter().copied()
    }
}

impl<'a> From<&'a [u8]> for FieldLines<'a> {
    fn from(line: &'a [u8]) -> Self {
        let mut lines = Self::NONE;
        lines.lines[0] = line;
        lines.count = 1;
        lines
    }
}

/// The elements of a comma-separated list without quoted strings (RFC 9110 section 5.6.1), empty ones
/// included.
pub(crate) fn list_elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trim_whitespace)
}

/// Without the optional whitespace (space and tab, RFC 9110 section 5.6.3) at both ends.
pub(crate) fn trim_whitespace(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_lines_up_to_the_limit_and_refuses_one_more() {
        let mut lines = FieldLines::NONE;
        assert!(lines.is_absent());
        for _ in 0..FIELD_LINES_LIMIT {
            lines.push(b"a").unwrap();
        }
        assert_eq!(lines.push(b"b"), Err(RequestError::FieldLines));
        assert_eq!(lines.iter().count(), FIELD_LINES_LIMIT);
    }

    #[test]
    fn splits_and_trims_list_elements() {
        let elements: Vec<_> = list_elements(b" close ,\tkeep-alive,, x").collect();
        assert_eq!(elements, [&b"close"[..], b"keep-alive", b"", b"x"]);
        assert_eq!(list_elements(b"").collect::<Vec<_>>(), [b""]);
    }
}
