//! Flags that take one of a few words.

use std::error::Error;
use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
/// Parses one of a few words, which help and completions then know. What is wrong with another word is said as `parse` says
/// it: the configuration file's reader, where the file has the word, too.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static, E: Reason>(
    names: &'static [&'static str],
    parse: fn(&str) -> Result<T, E>,
) -> impl TypedValueParser<Value = T> {
    OneOf { names, parse }
}

/// What is wrong with a word.
pub(crate) trait Reason: Into<Box<dyn Error + Send + Sync + 'static>> + 'static {}

impl<E: Into<Box<dyn Error + Send + Sync + 'static>> + 'static> Reason for E {}

struct OneOf<T, E> {
    names: &'static [&'static str],
    parse: fn(&str) -> Result<T, E>,
}

impl<T, E> Clone for OneOf<T, E> {
    fn clone(&self) -> Self {
        Self { names: self.names, parse: self.parse }
    }
}

impl<T: Clone + Send + Sync + 'static, E: Reason> TypedValueParser for OneOf<T, E> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let parse = self.parse;
        StringValueParser::new().try_map(move |name| parse(&name)).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().map(PossibleValue::new)))
    }
}
