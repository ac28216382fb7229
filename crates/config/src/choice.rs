//! Values that are one word out of a few.

use std::fmt;
use std::str::FromStr;

use linerate_faults::nearest;

use crate::Error;

/// The value that `word` names in `names`, in any case; otherwise an error that names the nearest and all, and ends in
/// `note`.
pub(crate) fn choose<T: Copy>(
    what: &str,
    word: &str,
    names: &[(&'static str, T)],
    note: &str,
) -> Result<T, Error> {
    if let Some((_, value)) = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        return Ok(*value);
    }
    // An over-long word is no typing error, and the distance costs its length times the name's. Nor is a number:
    // 1.1 is not a mistyped 1.3.
    let may_be_mistyped = word.len() <= 64 && word.contains(char::is_alphabetic);
    let guess = may_be_mistyped.then(|| nearest(word, names.iter().map(|(name, _)| *name))).flatten();
    let hint = guess.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default();
    let allowed = names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    Err(Error::value(format!("unknown {what} \"{}\"{hint} (allowed: {allowed}{note})", shortened(word))))
}

/// `text` as it may be quoted in a message: control characters escaped, long ones cut.
pub(crate) fn shortened(text: &str) -> String {
    const LIMIT_CHARACTERS: usize = 64;
    let mut characters = text.chars();
    let mut quoted = String::new();
    for character in characters.by_ref().take(LIMIT_CHARACTERS) {
        if character.is_control() {
            quoted.extend(character.escape_debug());
        } else {
            quoted.push(character);
        }
    }
    if characters.next().is_some() {
        quoted.push_str("...");
    }
    quoted
}

/// Gives an enum its words, both ways.
macro_rules! words {
    ($type:ty, $what:literal, [$($name:literal => $variant:ident),+ $(,)?]) => {
        impl $type {
            /// The words that name the values.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The word that names this value.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(<$type>::$variant => $name),+ }
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(word: &str) -> Result<Self, Error> {
                choose($what, word, &[$(($name, <$type>::$variant)),+], "")
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}

/// Which engine encrypts the bulk of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// The server decides.
    #[default]
    Auto,
    /// The batched record engine in user space, always.
    User,
    /// The kernel (Linux kTLS), for large responses and where it can; else the engine in user space.
    Kernel,
    /// The network adapter, for large responses and where it takes them; else the engine in user space.
    Nic,
}
words!(EngineChoice, "engine", ["auto" => Auto, "user" => User, "kernel" => Kernel, "nic" => Nic]);

/// How an access log line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The combined log format, with what TLS adds at the end.
    #[default]
    Combined,
    /// One JSON object a line.
    Json,
}
words!(LogFormat, "log format", ["combined" => Combined, "json" => Json]);

/// What happens with a symbolic link met on the way to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// It is followed while it stays beneath the site's root.
    #[default]
    Within,
    /// It is never followed.
    Refused,
    /// It is followed wherever it leads.
    Anywhere,
}
words!(Symlinks, "symlink rule", ["within" => Within, "refused" => Refused, "anywhere" => Anywhere]);

/// Whether an export is for connections with TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportTls {
    /// For those alone.
    #[default]
    Require,
    /// For those and others.
    Offer,
    /// For others alone.
    Off,
}
words!(ExportTls, "TLS rule", ["require" => Require, "offer" => Offer, "off" => Off]);

/// By whom an NFS client's permission is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportIdentity {
    /// What the server's own user may read, every client may.
    #[default]
    Server,
    /// In addition the user that the client states must be permitted to.
    Client,
}
words!(ExportIdentity, "identity rule", ["server" => Server, "client" => Client]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case_and_written_back() {
        for name in Symlinks::NAMES {
            assert_eq!(name.parse::<Symlinks>().unwrap().name(), *name);
        }
        assert_eq!("JSON".parse::<LogFormat>().unwrap(), LogFormat::Json);
    }

    #[test]
    fn a_wrong_word_names_the_nearest_and_all() {
        let message = "usr".parse::<EngineChoice>().unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown engine \"usr\"; did you mean \"user\"? (allowed: auto, user, kernel, nic)"
        );
    }

    #[test]
    fn quoted_words_are_cut_and_escaped() {
        assert_eq!(shortened("a\u{1b}[1m\n"), "a\\u{1b}[1m\\n");
        assert_eq!(shortened(&"x".repeat(65)), format!("{}...", "x".repeat(64)));
        assert_eq!(shortened("größe \"x\""), "größe \"x\"");
    }
}
