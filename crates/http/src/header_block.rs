//! The header fields that a site's responses have beside those that the server writes, formatted once.

use crate::header_field::{HeaderField, HeaderName};
use std::sync::LazyLock;

/// Fields, and beside them the same as lines of a head (`Cache-Control: no-store\r\n`), so that a response copies them
/// in one piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderBlock {
    fields: Vec<HeaderField>,
    lines: String,
}

static STANDARD: LazyLock<HeaderBlock> = LazyLock::new(|| HeaderBlock::from_iter([HeaderField::NO_SNIFFING]));

impl HeaderBlock {
    /// No fields.
    pub const EMPTY: Self = Self { fields: Vec::new(), lines: String::new() };

    /// What every response has unless the operator says otherwise.
    #[must_use]
    pub fn standard() -> &'static Self {
        &STANDARD
    }

    /// Adds a field at the end, in the place of all that have its name.
    pub fn set(&mut self, field: HeaderField) {
        self.fields.retain(|known| known.name() != field.name());
        self.fields.push(field);
        self.write_lines();
    }

    /// Adds a field at the end, beside those that have its name: for fields whose lines count together, like Vary.
    pub fn add(&mut self, field: HeaderField) {
        self.fields.push(field);
        self.write_lines();
    }

    /// Takes the fields of that name out.
    pub fn unset(&mut self, name: &HeaderName) {
        self.fields.retain(|known| known.name() != name);
        self.write_lines();
    }

    /// Whether there is a field of that name.
    #[must_use]
    pub fn has(&self, name: &HeaderName) -> bool {
        self.fields.iter().any(|field| field.name() == name)
    }

    /// The fields in the order in which they are sent.
    #[must_use]
    pub fn fields(&self) -> &[HeaderField] {
        &self.fields
    }

    /// The lines, each with its CRLF.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.lines
    }

    fn write_lines(&mut self) {
        self.lines.clear();
        for field in &self.fields {
            for part in [field.name().as_str(), ": ", field.value(), "\r\n"] {
                self.lines.push_str(part);
            }
        }
    }
}

impl FromIterator<HeaderField> for HeaderBlock {
    fn from_iter<T: IntoIterator<Item = HeaderField>>(fields: T) -> Self {
        let mut block = Self { fields: fields.into_iter().collect(), lines: String::new() };
        block.write_lines();
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &str) -> HeaderField {
        HeaderField::new(HeaderName::parse(name).unwrap(), value).unwrap()
    }

    #[test]
    fn a_field_replaces_those_of_its_name_in_whatever_case() {
        let mut block = HeaderBlock::from_iter([field("X-One", "1"), field("X-Empty", "")]);
        assert_eq!(block.as_str(), "X-One: 1\r\nX-Empty: \r\n");
        block.set(field("x-ONE", "2"));
        assert_eq!(block.as_str(), "X-Empty: \r\nx-ONE: 2\r\n");
        block.unset(&HeaderName::parse("x-empty").unwrap());
        assert_eq!(block.as_str(), "x-ONE: 2\r\n");
        assert!(block.has(&HeaderName::parse("X-One").unwrap()));
        assert!(!block.has(&HeaderName::parse("X-On").unwrap()));
    }

    #[test]
    fn lines_that_count_together_stay() {
        let mut block = HeaderBlock::EMPTY;
        block.add(field("Vary", "Origin"));
        block.add(field("Vary", "Accept"));
        assert_eq!(block.as_str(), "Vary: Origin\r\nVary: Accept\r\n");
        assert_eq!(block.fields().len(), 2);
    }

    #[test]
    fn what_a_value_says_is_no_field() {
        let block = HeaderBlock::from_iter([field("X-Note", "Content-Security-Policy: none")]);
        assert!(!block.has(&HeaderName::CONTENT_SECURITY_POLICY));
    }
}
