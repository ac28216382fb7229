//! Gathering a group: a fact is asked for by its file, and an absent file is an answer, too.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::Group;
use crate::result::Reading;

/// The most of a file that is looked at. The longest are /proc/cpuinfo, whose first processor says it all, and the list
/// of a distribution's modules (about 1 MiB).
const FILE_LIMIT_BYTES: usize = 8 << 20;

/// A group that is being filled from files below a root.
pub(super) struct Facts<'a> {
    root: &'a Path,
    group: Group,
}

impl<'a> Facts<'a> {
    pub(super) fn below(root: &'a Path) -> Self {
        Self { root, group: Group::new() }
    }

    pub(super) fn finish(self) -> Group {
        self.group
    }

    /// Where a path of the machine is.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file as text, or why there is none.
    pub(super) fn text(&self, path: &str) -> Reading<String> {
        match fs::read(self.path(path)) {
            Ok(bytes) => {
                let text =
                    String::from_utf8_lossy(&bytes[..bytes.len().min(FILE_LIMIT_BYTES)]).trim().to_owned();
                if text.is_empty() { missing(format!("{path} is empty")) } else { Reading::Value(text) }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing(format!("there is no {path}")),
            Err(error) => missing(format!("cannot read {path}: {error}")),
        }
    }

    /// The names in a folder, in order; none where there is no folder.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Notes an answer.
    pub(super) fn note(&mut self, fact: &str, answer: Reading<String>) {
        self.group.insert(fact.to_owned(), answer);
    }

    /// Notes the content of a file, with single spaces between its words.
    pub(super) fn file(&mut self, fact: &str, path: &str) {
        let answer = self.text(path).map(|text| words(&text));
        self.note(fact, answer);
    }

    /// Notes what is found in a text, or that the text lacks it.
    pub(super) fn found(&mut self, fact: &str, place: &str, found: Option<impl Into<String>>) {
        let answer = match found {
            Some(found) => Reading::Value(found.into()),
            None => missing(format!("{place} does not tell")),
        };
        self.note(fact, answer);
    }
}

/// No answer, for this reason.
pub(super) fn missing<T>(reason: impl Into<String>) -> Reading<T> {
    Reading::NotAvailable(reason.into())
}

/// The words of a text with single spaces between them.
pub(super) fn words(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value of a line "key : value" or "key=value", the first with that key.
pub(super) fn value<'a>(text: &'a str, separator: char, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"'))
    })
}
