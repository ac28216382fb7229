//! A TOML file being read: its values with their places, and the faults found so far.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::choice::shortened;
use crate::keys::Section;
use crate::quantity::{parse_duration_ms, parse_size_bytes};
use crate::{Error, Fault, Origin, Position};
use linerate_faults::nearest;

/// The most faults reported of one file: beyond, it is no configuration.
const LIMIT_FAULTS: usize = 50;

/// The text being read, its name, and the faults found in it.
pub(crate) struct Document<'a> {
    file: Arc<Path>,
    text: &'a [u8],
    /// Where each line begins; the first at 0.
    line_starts: Vec<usize>,
    faults: RefCell<Vec<Fault>>,
}

impl<'a> Document<'a> {
    pub(crate) fn new(file: &Path, text: &'a [u8]) -> Self {
        let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let line_starts = std::iter::once(0).chain(newlines.map(|(offset, _)| offset + 1)).collect();
        Document { file: file.into(), text, line_starts, faults: RefCell::default() }
    }

    /// The place of the byte at `offset`.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        // Never 0: the first line begins at 0.
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let line_start = self.line_starts[..line].last().copied().unwrap_or(0);
        // Bytes that go on a UTF-8 character (10xxxxxx) are no columns.
        let column = self.text[line_start..offset].iter().filter(|byte| **byte & 0xC0 != 0x80).count() + 1;
        Position { file: Arc::clone(&self.file), line, column }
    }

    pub(crate) fn fault(&self, offset: usize, message: impl Into<String>) {
        if !self.is_full() {
            let origin = Origin::File(self.position(offset));
            self.faults.borrow_mut().push(Fault { origin, message: message.into() });
        }
    }

    /// Whether further faults are no longer told.
    fn is_full(&self) -> bool {
        self.faults.borrow().len() >= LIMIT_FAULTS
    }

    pub(crate) fn into_faults(self) -> Vec<Fault> {
        self.faults.into_inner()
    }

    /// Paths are relative to the folder of the file.
    fn resolved(&self, path: &str) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(path)
    }
}

/// A table whose keys are those of a section.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    document: &'a Document<'a>,
    section: Section,
    offset: usize,
    entries: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// Takes the table, and reports every key that the section does not have.
    pub(crate) fn new(
        document: &'a Document<'a>,
        section: Section,
        offset: usize,
        entries: &'a DeTable<'a>,
    ) -> Self {
        for name in entries.keys() {
            if document.is_full() {
                break;
            }
            if !section.names().any(|known| known == name.get_ref()) {
                document.fault(name.span().start, unknown_key(section, name.get_ref()));
            }
        }
        Table { document, section, offset, entries }
    }

    /// Where the table stands.
    pub(crate) fn origin(self) -> Origin {
        Origin::File(self.document.position(self.offset))
    }

    pub(crate) fn value(self, name: &'static str) -> Option<Value<'a>> {
        debug_assert!(self.section.names().any(|known| known == name), "{name} is not documented");
        let node = self.entries.get(name)?;
        Some(Value { document: self.document, section: self.section, name, node })
    }

    /// The value of a key that has to be there.
    pub(crate) fn required(self, name: &'static str) -> Option<Value<'a>> {
        let value = self.value(name);
        if value.is_none() {
            self.document.fault(self.offset, format!("{}{name} is missing", self.section.prefix()));
        }
        value
    }

    /// Sets `target` where the key is there and its value can be read.
    pub(crate) fn set<T>(
        self,
        name: &'static str,
        target: &mut T,
        read: impl FnOnce(Value<'a>) -> Option<T>,
    ) {
        if let Some(read) = self.value(name).and_then(read) {
            *target = read;
        }
    }
}

/// What to say about a key that `section` does not have.
fn unknown_key(section: Section, name: &str) -> String {
    let unknown = format!("unknown key \"{}\"", shortened(name));
    let near = (name.len() <= 64).then(|| nearest(name, section.names())).flatten();
    if let Some(near) = near {
        return format!("{unknown}; did you mean \"{near}\"?");
    }
    let elsewhere = crate::KEYS.iter().find(|key| key.name == name).map(|key| key.section.heading().0);
    if let Some(heading) = elsewhere {
        return format!("{unknown} here; it belongs in {heading}");
    }
    format!("{unknown} (allowed here: {})", section.names().collect::<Vec<_>>().join(", "))
}

/// A value with its place and the key it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    document: &'a Document<'a>,
    section: Section,
    name: &'a str,
    node: &'a Spanned<DeValue<'a>>,
}

impl<'a> Value<'a> {
    pub(crate) fn origin(self) -> Origin {
        Origin::File(self.document.position(self.node.span().start))
    }

    /// Reports that the value is wrong.
    pub(crate) fn fault(self, message: impl std::fmt::Display) {
        self.fault_at(self.node.span().start, &message);
    }

    fn fault_at(self, offset: usize, message: &dyn std::fmt::Display) {
        self.document.fault(offset, format!("{}{}: {message}", self.section.prefix(), self.name));
    }

    /// Reports the error, if it is one.
    pub(crate) fn kept<T>(self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.fault(error)).ok()
    }

    /// Reports that the value is of another type than `wanted`.
    fn wrong_type<T>(self, wanted: &str) -> Option<T> {
        let found = match self.node.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.fault(format!("{wanted} is needed, this is {found}"));
        None
    }

    pub(crate) fn text_or(self, wanted: &str) -> Option<&'a str> {
        self.node.get_ref().as_str().or_else(|| self.wrong_type(wanted))
    }

    pub(crate) fn text(self) -> Option<&'a str> {
        self.text_or("a string")
    }

    pub(crate) fn parsed<T: FromStr<Err = Error>>(self) -> Option<T> {
        self.parsed_by(str::parse)
    }

    pub(crate) fn parsed_by<T>(self, parse: fn(&str) -> Result<T, Error>) -> Option<T> {
        let text = self.text()?;
        self.kept(parse(text))
    }

    pub(crate) fn boolean(self) -> Option<bool> {
        self.node.get_ref().as_bool().or_else(|| self.wrong_type("true or false"))
    }

    pub(crate) fn integer<T: TryFrom<u64>>(self, allowed: RangeInclusive<u64>) -> Option<T> {
        let (least, most) = (allowed.start(), allowed.end());
        let wanted = format!("an integer from {least} to {most}");
        let Some(integer) = self.node.get_ref().as_integer() else { return self.wrong_type(&wanted) };
        let value = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let value = value.filter(|value| allowed.contains(value)).and_then(|value| T::try_from(value).ok());
        if value.is_none() {
            self.fault(format!("{} is out of range: {wanted} is needed", shortened(&integer.to_string())));
        }
        value
    }

    pub(crate) fn duration_ms(self, allowed: RangeInclusive<u64>) -> Option<u64> {
        let text = self.text_or("a duration with its unit, like \"75s\",")?;
        self.kept(parse_duration_ms(text, allowed))
    }

    pub(crate) fn size_bytes<T: TryFrom<u64>>(self, allowed: RangeInclusive<u64>) -> Option<T> {
        let text = self.text_or("a size with its unit, like \"512KiB\",")?;
        let size_bytes = self.kept(parse_size_bytes(text, allowed))?;
        self.kept(T::try_from(size_bytes).map_err(|_| Error::value("more than this machine can address")))
    }

    pub(crate) fn path(self) -> Option<PathBuf> {
        let text = self.text_or("a path")?;
        if text.is_empty() || text.contains('\0') {
            self.fault("a path is needed, this one is empty or contains a NUL");
            return None;
        }
        Some(self.document.resolved(text))
    }

    /// The elements of a list.
    pub(crate) fn elements(self) -> Option<impl Iterator<Item = Value<'a>>> {
        let wanted = match self.name {
            "site" => "[[site]], with two brackets,",
            "export" => "[[export]], with two brackets,",
            _ => "a list in [ ]",
        };
        let array = self.node.get_ref().as_array().or_else(|| self.wrong_type(wanted))?;
        Some(array.iter().map(move |node| Value { node, ..self }))
    }

    /// The elements of a list, each read by `read`; `None` where one cannot be read, after all have been tried.
    pub(crate) fn list<T>(self, read: impl FnMut(Value<'a>) -> Option<T>) -> Option<Vec<T>> {
        let read: Vec<Option<T>> = self.elements()?.map(read).collect();
        read.into_iter().collect()
    }

    /// A table with the keys of `section`.
    pub(crate) fn table(self, section: Section) -> Option<Table<'a>> {
        let entries = self.node.get_ref().as_table().or_else(|| self.wrong_type("a table"))?;
        Some(Table::new(self.document, section, self.node.span().start, entries))
    }

    /// The entries of a table with free keys, in the order of the file.
    pub(crate) fn free_entries(self) -> Option<Vec<FreeEntry<'a>>> {
        let entries = self.node.get_ref().as_table().or_else(|| self.wrong_type("a table in { }"))?;
        let mut entries: Vec<_> = entries
            .iter()
            .map(|(name, node)| FreeEntry {
                name: name.get_ref(),
                name_offset: name.span().start,
                value: Value { node, ..self },
            })
            .collect();
        entries.sort_by_key(|entry| entry.name_offset);
        Some(entries)
    }
}

/// A key that is the operator's to choose, and its value.
#[derive(Clone, Copy)]
pub(crate) struct FreeEntry<'a> {
    pub(crate) name: &'a str,
    name_offset: usize,
    pub(crate) value: Value<'a>,
}

impl FreeEntry<'_> {
    /// Reports the error about the name, if it is one.
    pub(crate) fn name_kept<T>(self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.value.fault_at(self.name_offset, &error)).ok()
    }
}
