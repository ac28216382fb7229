//! Experiments of streams: `linerate stream` by engine beside iperf3, as the papers about single streams have them.
//!
//! [`definition`] is an experiment's file, which has `kind = "streams"`. `program` knows how both ends are called, `session`
//! runs them slice by slice, and `measured` makes of their reports what the bench's reports, plots and targets are made of.
//!
//! The other end (`--clients HOST` on another machine, else in this one) runs `linerate stream HOST:PORT`, this one listens.

pub(crate) mod definition;
mod measured;
mod program;
mod session;

use std::sync::atomic::AtomicBool;

pub use definition::{StreamDefinition, VARIABLES};

use crate::error::Result;
use crate::result::ExperimentRun;
use crate::run::{Finished, Options};

/// Every built-in experiment of streams: its name, and its file.
pub const EXPERIMENTS: &[(&str, &str)] = &[
    ("t5-io-size", include_str!("../experiments/t5-io-size.toml")),
    ("t6-single", include_str!("../experiments/t6-single.toml")),
];

/// The text of the experiment `asked`, a built-in one or a file that ends in `.toml`, if it is of streams.
pub(crate) fn text_of(asked: &str) -> Option<String> {
    if let Some((_, text)) = EXPERIMENTS.iter().find(|(name, _)| *name == asked) {
        return Some((*text).to_owned());
    }
    // What cannot be read, or is too large, the search for experiments of servers tells.
    let text = asked.ends_with(".toml").then(|| std::fs::read_to_string(asked).ok()).flatten()?;
    definition::is_of_streams(&text).then_some(text)
}

/// Runs an experiment of streams.
pub(crate) fn run(asked: &str, text: &str, options: &Options, interrupted: &AtomicBool) -> Result<Finished> {
    let mut definition = StreamDefinition::parse(asked, text, options.quick)?;
    session::adjust(&mut definition, options)?;
    session::Session::begin(definition, options, interrupted)?.measure()
}

/// Goes on with a run of streams, by options that are those of the run.
pub(crate) fn resume(
    earlier: ExperimentRun,
    options: &Options,
    interrupted: &AtomicBool,
) -> Result<Finished> {
    let mut definition = StreamDefinition::parse(&earlier.name, &earlier.definition, earlier.quick)?;
    session::adjust(&mut definition, options)?;
    session::Session::resume(definition, earlier, options, interrupted)?.measure()
}
