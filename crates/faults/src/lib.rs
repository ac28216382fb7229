//! What is wrong in a file or a word that a person wrote: its place, and what was probably meant.

// A fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]
#![forbid(unsafe_code)]

mod toml_fault;
mod unclosed;

pub use toml_fault::toml_fault;
pub use unclosed::Unclosed;

/// The candidate that `word` is most likely a mistyping of, if one is near enough to be worth naming.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let allowed_distance = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed_distance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_near_is_not_suggested() {
        assert_eq!(nearest("zebra", ["listen", "root"]), None);
        assert_eq!(nearest("lisen", ["listen", "root"]), Some("listen"));
    }
}
