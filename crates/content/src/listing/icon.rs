//! The picture beside a name.

use std::fmt;

/// What a name's media type looks like to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Icon {
    Directory,
    File,
    Text,
    Image,
    Video,
    Audio,
    Archive,
}

/// Each picture once, as a symbol that the rows refer to: 24 by 24, drawn with strokes in the colour of the text.
pub(crate) const SYMBOLS: &str = concat!(
    r#"<svg class="symbols" aria-hidden="true"><defs>"#,
    r#"<symbol id="directory" viewBox="0 0 24 24"><path d="M3 7.5a2 2 0 0 1 2-2h4.2l2 2.2H19a2 2 0 0 1 2 2v7.8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z"/></symbol>"#,
    r#"<symbol id="file" viewBox="0 0 24 24"><path d="M13.5 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V8.5zM13.5 3v5.5H19"/></symbol>"#,
    r#"<symbol id="text" viewBox="0 0 24 24"><path d="M13.5 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V8.5zM13.5 3v5.5H19M8.5 13h7M8.5 16.5h5"/></symbol>"#,
    r#"<symbol id="image" viewBox="0 0 24 24"><path d="M5 4h14a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2zM3.5 17.5l5-5 4 4 3-3 5 4.5"/><circle cx="15.5" cy="8.8" r="1.6"/></symbol>"#,
    r#"<symbol id="video" viewBox="0 0 24 24"><path d="M5 5h14a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2zM10 9v6l5-3z"/></symbol>"#,
    r#"<symbol id="audio" viewBox="0 0 24 24"><path d="M9 17.5V6l10-2v11.5"/><circle cx="6.5" cy="17.5" r="2.5"/><circle cx="16.5" cy="15.5" r="2.5"/></symbol>"#,
    r#"<symbol id="archive" viewBox="0 0 24 24"><path d="M4 8v10a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2V8M3 4h18v4H3zM10 12h4"/></symbol>"#,
    r#"<symbol id="up" viewBox="0 0 24 24"><path d="M9 14L4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3"/></symbol>"#,
    "</defs></svg>\n"
);

/// Endings of archives and disk images that the registry of media types knows nothing better about than octets.
const ARCHIVE_WORDS: [&str; 9] =
    ["zip", "tar", "compressed", "zstd", "bzip", "x-xz", "iso9660", "package", "archive"];

impl Icon {
    /// The picture for a media type.
    pub(crate) fn of(media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        match essence.split_once('/') {
            Some(("text", _)) => Self::Text,
            Some(("image", _)) => Self::Image,
            Some(("video", _)) => Self::Video,
            Some(("audio", _)) => Self::Audio,
            Some(("application", "json" | "xml" | "javascript" | "pdf" | "toml" | "x-sh")) => Self::Text,
            Some(("application", subtype)) if ARCHIVE_WORDS.iter().any(|word| subtype.contains(word)) => {
                Self::Archive
            }
            _ => Self::File,
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File => "file",
            Self::Text => "text",
            Self::Image => "image",
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Archive => "archive",
        }
    }
}

impl fmt::Display for Icon {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, r##"<svg aria-hidden="true"><use href="#{}"/></svg>"##, self.symbol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_by_media_type() {
        for (media_type, icon) in [
            ("text/plain; charset=utf-8", Icon::Text),
            ("image/png", Icon::Image),
            ("video/mp4", Icon::Video),
            ("audio/flac", Icon::Audio),
            ("application/zip", Icon::Archive),
            ("application/x-tar", Icon::Archive),
            ("application/octet-stream", Icon::File),
            ("", Icon::File),
        ] {
            assert_eq!(Icon::of(media_type), icon, "{media_type}");
        }
    }

    #[test]
    fn every_picture_is_drawn() {
        let all =
            [Icon::Directory, Icon::File, Icon::Text, Icon::Image, Icon::Video, Icon::Audio, Icon::Archive];
        for icon in all {
            assert!(SYMBOLS.contains(&format!(r#"id="{}""#, icon.symbol())));
        }
    }
}
