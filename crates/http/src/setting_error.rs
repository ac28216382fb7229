//! What can be wrong with a setting: the operator's fault.

use std::fmt;

/// What is wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderValueFault {
    /// Longer than the limit.
    TooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// A space or tab at either end, which readers cut off.
    SpaceAtTheEnds,
    /// A character that is neither visible ASCII nor a space or tab.
    Characters,
}

/// A setting that is refused when the configuration is read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingError {
    /// A file name extension that is empty or holds a dot, a slash or whitespace.
    Extension {
        /// The extension as given.
        extension: String,
    },
    /// A media type that is not `type/subtype` with optional parameters.
    MediaType {
        /// The extension it was given for.
        extension: String,
        /// The media type as given.
        media_type: String,
    },
    /// A charset that is no token.
    Charset {
        /// The charset as given.
        charset: String,
    },
    /// A header name that is no token.
    HeaderName {
        /// The name as given.
        name: String,
    },
    /// A header value that may not stand in a response's head.
    HeaderValue {
        /// The value as given.
        value: String,
        /// What is wrong with it.
        fault: HeaderValueFault,
    },
    /// A header that the server writes itself.
    HeaderReserved {
        /// The name as it is registered.
        name: &'static str,
        /// What to use instead, with a colon before it; empty where there is nothing.
        instead: &'static str,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extension { extension } => {
                write!(formatter, "{extension:?} is not a file name extension: write it as in \"mp4\"")
            }
            Self::MediaType { extension, media_type } => {
                write!(
                    formatter,
                    "{media_type:?}, given for {extension:?}, is not a media type: write it as in \"video/mp4\""
                )
            }
            Self::Charset { charset } => {
                write!(formatter, "{charset:?} is not a charset: write it as in \"utf-8\"")
            }
            Self::HeaderName { name } => {
                write!(formatter, "{} is no header name: letters, digits and - are allowed", quoted(name))
            }
            Self::HeaderValue { value, fault } => match fault {
                HeaderValueFault::TooLong { limit_bytes } => {
                    write!(formatter, "the header value is longer than {limit_bytes} bytes")
                }
                HeaderValueFault::SpaceAtTheEnds => {
                    write!(formatter, "header value {} has space at its ends", quoted(value))
                }
                HeaderValueFault::Characters => write!(
                    formatter,
                    "header value {} contains characters outside of visible ASCII and space",
                    quoted(value)
                ),
            },
            Self::HeaderReserved { name, instead } => {
                write!(formatter, "{name} is written by the server itself{instead}")
            }
        }
    }
}

/// What was given, escaped, and no more of it than a message can hold.
fn quoted(text: &str) -> String {
    const LIMIT_CHARACTERS: usize = 64;
    match text.char_indices().nth(LIMIT_CHARACTERS) {
        Some((end, _)) => format!("{:?}", format!("{}…", &text[..end])),
        None => format!("{text:?}"),
    }
}

impl std::error::Error for SettingError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_in_a_line_of_bounded_length() {
        let name = |name: &str| SettingError::HeaderName { name: name.to_owned() }.to_string();
        assert_eq!(name("a\nb"), r#""a\nb" is no header name: letters, digits and - are allowed"#);
        assert!(name(&"x".repeat(64)).starts_with(&format!("\"{}\" is", "x".repeat(64))));
        assert!(name(&"x".repeat(65)).starts_with(&format!("\"{}…\" is", "x".repeat(64))));
    }
}
