//! The configuration file: read or refused, always with a place to look at.

use crate::Verdict;
use linerate_config::{Error, Flags, Origin, Settings};
use std::path::Path;

/// The text of a configuration file.
///
/// # Panics
/// If settings are incomplete, or a fault points nowhere or would garble a terminal.
pub fn configuration(data: &[u8]) -> Verdict {
    let read = || Settings::from_toml(Path::new("linerate.toml"), data, &Flags::default());
    match read() {
        Ok(settings) => {
            assert!(!settings.listeners.is_empty() && !settings.sites.is_empty());
            assert_eq!(read().ok().as_ref(), Some(&settings), "a second reading differs");
            Verdict::Taken
        }
        Err(Error::Invalid { faults }) => {
            assert!(!faults.is_empty());
            let lines = data.iter().filter(|byte| **byte == b'\n').count() + 1;
            for fault in faults {
                if let Origin::File(position) = &fault.origin {
                    assert!((1..=lines).contains(&position.line) && position.column >= 1, "{fault}");
                }
                assert!(!fault.message.is_empty());
                assert!(!fault.message.contains(is_hostile_to_terminals), "{fault:?}");
            }
            Verdict::Refused
        }
        Err(other) => panic!("a text that is at hand gave {other:?}"),
    }
}

/// A file that somebody else wrote must not move the cursor of who checks it.
fn is_hostile_to_terminals(character: char) -> bool {
    character.is_control() && character != '\n'
}
