//! Flags that take one of a few words.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use linerate_config::Error;

/// Parses one of a few words, which help and completions then know. What is wrong with another word is said as the
/// configuration file's reader says it.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    names: &'static [&'static str],
    parse: fn(&str) -> Result<T, Error>,
) -> impl TypedValueParser<Value = T> {
    OneOf { names, parse }
}

#[derive(Clone)]
struct OneOf<T> {
    names: &'static [&'static str],
    parse: fn(&str) -> Result<T, Error>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for OneOf<T> {
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
