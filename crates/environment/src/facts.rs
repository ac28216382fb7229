//! Gathering a group: a fact is asked for by its file, and an absent file is an answer, too.

use std::{ops::Deref, path::Path};

use crate::{Files, Group, Reading, words};

/// A group that is being filled from files below a root.
pub(crate) struct Facts<'a> {
    files: Files<'a>,
    group: Group,
}

impl<'a> Facts<'a> {
    pub(crate) fn below(root: &'a Path) -> Self {
        Self { files: Files::below(root), group: Group::new() }
    }

    pub(crate) fn finish(self) -> Group {
        self.group
    }

    /// Notes an answer.
    pub(crate) fn note(&mut self, fact: &str, answer: Reading<String>) {
        self.group.insert(fact.to_owned(), answer);
    }

    /// Notes the content of a file, with single spaces between its words.
    pub(crate) fn file(&mut self, fact: &str, path: &str) {
        let answer = self.text(path).map(|text| words(&text));
        self.note(fact, answer);
    }

    /// Notes what is found in a text, or that the text lacks it.
    pub(crate) fn found(&mut self, fact: &str, place: &str, found: Option<impl Into<String>>) {
        let answer = match found {
            Some(found) => Reading::Value(found.into()),
            None => missing(format!("{place} does not tell")),
        };
        self.note(fact, answer);
    }
}

impl<'a> Deref for Facts<'a> {
    type Target = Files<'a>;

    fn deref(&self) -> &Files<'a> {
        &self.files
    }
}

/// No answer, for this reason.
pub(crate) fn missing<T>(reason: impl Into<String>) -> Reading<T> {
    Reading::NotAvailable(reason.into())
}
