//! The configuration file's keys as plain text: `linerate check --keys`.

use std::fmt::Write;

use linerate_config::{KEYS, Section};

/// The sections in the order of the documentation.
pub(crate) const SECTIONS: [Section; 14] = [
    Section::Top,
    Section::Tls,
    Section::Limits,
    Section::Timeouts,
    Section::UserEngine,
    Section::KernelEngine,
    Section::Placement,
    Section::Site,
    Section::Nfs,
    Section::Export,
    Section::Certificates,
    Section::Hsts,
    Section::Headers,
    Section::CacheControl,
];

/// How values are written, for every section.
pub(crate) const NOTATION: &str = "Durations and sizes are strings that carry their unit: \"500ms\", \"75s\", \"10m\", \
    \"1h\", \"365d\"; \"4096B\", \"512KiB\", \"1MiB\", \"1GiB\". Counts are integers. Paths are relative to the folder \
    of the file. A key that does not exist is an error.";

const WIDTH_CHARACTERS: usize = 100;

/// Every key with what it takes, its default and what it means.
pub(crate) fn text() -> String {
    let mut text = wrapped(NOTATION, "");
    for section in SECTIONS {
        let (heading, about) = section.heading();
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{heading}\n{}", wrapped(about, "  "));
        for key in KEYS.iter().filter(|key| key.section == section) {
            let default = default_text(key.default);
            let _ = write!(text, "\n  {} = {}\n", key.name, key.example);
            text.push_str(&wrapped(&format!("{} ({default}). {}", key.takes, key.meaning), "      "));
        }
    }
    let (heading, about) = Section::SiteDefaults.heading();
    let _ = write!(text, "\n{heading}\n{}", wrapped(about, "  "));
    text
}

/// What holds without the key, in words.
pub(crate) fn default_text(default: &str) -> String {
    match default.strip_prefix('(').and_then(|words| words.strip_suffix(')')) {
        Some("required") => "required".to_owned(),
        Some(words) => format!("default: {words}"),
        None => format!("default: {default}"),
    }
}

fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut line = indent.to_owned();
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH_CHARACTERS {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = indent.to_owned();
        }
        line.push_str(word);
        line.push(' ');
    }
    lines.push_str(line.trim_end());
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_told() {
        let text = text();
        for key in KEYS {
            assert!(text.contains(&format!("\n  {} = {}\n", key.name, key.example)), "{}", key.name);
        }
    }

    #[test]
    fn lines_are_wrapped() {
        assert_eq!(wrapped("a b", "  "), "  a b\n");
        let text = wrapped(&"word ".repeat(50), "    ");
        assert!(text.lines().all(|line| line.starts_with("    word") && line.len() <= WIDTH_CHARACTERS));
        assert_eq!(text.split_whitespace().count(), 50);
    }
}
