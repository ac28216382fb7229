//! Media types by file name extension, with a charset where the type has one.

use crate::setting_error::SettingError;
use std::collections::HashMap;

/// Longer extensions have no type; bounds the copy that is made to compare without regard to case.
const EXTENSION_LIMIT_BYTES: usize = 16;

/// What text is in unless the operator says otherwise.
const UTF_8: &str = "utf-8";

/// A media type as it stands in Content-Type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaType<'a> {
    /// The type, e.g. `text/html`.
    pub name: &'a str,
    /// What follows it as `; charset=`.
    pub charset: Option<&'a str>,
}

impl<'a> MediaType<'a> {
    /// What a file of unknown kind is.
    pub const OCTET_STREAM: Self = Self { name: "application/octet-stream", charset: None };

    /// HTML in UTF-8: what this server's own pages are.
    pub const HTML: Self = Self { name: "text/html", charset: Some(UTF_8) };

    /// Plain text in UTF-8.
    pub(crate) const PLAIN_TEXT: Self = Self { name: "text/plain", charset: Some(UTF_8) };

    /// Adds `charset` where the type is one that has a charset and the name does not say one already.
    ///
    /// Text types, JavaScript, XML and SVG have one. JSON has none: RFC 8259 section 11 defines no such
    /// parameter.
    #[must_use]
    pub fn named(name: &'a str, charset: Option<&'a str>) -> Self {
        let has_charset = starts_with_ignoring_case(name, "text/")
            || ["application/javascript", "application/xml", "application/xhtml+xml", "image/svg+xml"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known));
        Self { name, charset: charset.filter(|_| has_charset && !name.contains(';')) }
    }

    pub(crate) fn write(&self, head: &mut Vec<u8>) {
        head.extend_from_slice(self.name.as_bytes());
        if let Some(charset) = self.charset {
            head.extend_from_slice(b"; charset=");
            head.extend_from_slice(charset.as_bytes());
        }
    }
}

impl std::fmt::Display for MediaType<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)?;
        self.charset.map_or(Ok(()), |charset| write!(formatter, "; charset={charset}"))
    }
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(prefix))
}

/// The types by extension, the operator's before the built-in ones.
#[derive(Debug, Clone)]
pub struct MediaTypes {
    overrides: HashMap<Box<[u8]>, Box<str>>,
    charset: Option<Box<str>>,
}

/// The built-in types, text in UTF-8.
impl Default for MediaTypes {
    fn default() -> Self {
        Self { overrides: HashMap::new(), charset: Some(UTF_8.into()) }
    }
}

impl MediaTypes {
    /// A table with the operator's `(extension, media type)` pairs; the last of equals counts. An extension
    /// may be given with its dot and in any case. A file has one extension: for `a.tar.gz` it is `gz`.
    ///
    /// # Errors
    /// The first pair whose extension or type is malformed.
    pub fn with_overrides<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SettingError> {
        let mut overrides = HashMap::new();
        for (extension, media_type) in pairs {
            let bare = extension.strip_prefix('.').unwrap_or(extension).to_ascii_lowercase();
            if !(1..=EXTENSION_LIMIT_BYTES).contains(&bare.len())
                || bare.bytes().any(|byte| matches!(byte, b'.' | b'/') || !byte.is_ascii_graphic())
            {
                return Err(SettingError::Extension { extension: extension.to_owned() });
            }
            if !is_media_type(media_type) {
                let media_type = media_type.to_owned();
                return Err(SettingError::MediaType { extension: extension.to_owned(), media_type });
            }
            overrides.insert(bare.into_bytes().into_boxed_slice(), media_type.into());
        }
        Ok(Self { overrides, ..Self::default() })
    }

    /// The same with another charset of text than UTF-8; with `None`, text does not say one.
    ///
    /// # Errors
    /// The charset's name is no token (RFC 9110 section 8.3.2).
    pub fn with_charset(self, charset: Option<&str>) -> Result<Self, SettingError> {
        if let Some(charset) = charset.filter(|name| !is_token(name)) {
            return Err(SettingError::Charset { charset: charset.to_owned() });
        }
        Ok(Self { charset: charset.map(Into::into), ..self })
    }

    /// The type of a file by its name (or path), without its compression sibling's suffix.
    #[must_use]
    pub fn of(&self, file_name: &[u8]) -> MediaType<'_> {
        let mut buffer = [0; EXTENSION_LIMIT_BYTES];
        let Some(extension) = lower_extension(file_name, &mut buffer) else { return MediaType::OCTET_STREAM };
        if !self.overrides.is_empty()
            && let Some(name) = self.overrides.get(extension)
        {
            return MediaType::named(name, self.charset.as_deref());
        }
        built_in(extension, self.charset.as_deref())
    }
}

/// What follows the last dot of the last segment, in lower case. The dot that begins a dotfile does not
/// count.
fn lower_extension<'b>(file_name: &[u8], buffer: &'b mut [u8; EXTENSION_LIMIT_BYTES]) -> Option<&'b [u8]> {
    let from_end = file_name.iter().rev().take(EXTENSION_LIMIT_BYTES + 1);
    let length = from_end.take_while(|byte| **byte != b'/').position(|byte| *byte == b'.')?;
    let (stem, extension) = file_name.split_at(file_name.len() - length);
    if extension.is_empty() || matches!(stem, [b'.'] | [.., b'/', b'.']) {
        return None;
    }
    let lower = buffer.get_mut(..length)?;
    lower.copy_from_slice(extension);
    lower.make_ascii_lowercase();
    Some(lower)
}

/// First the kinds that are served most, and those where mime_guess has another opinion than media players,
/// browsers and package mirrors; then mime_guess.
fn built_in<'a>(extension: &[u8], charset: Option<&'a str>) -> MediaType<'a> {
    let text = |name| MediaType { name, charset };
    let binary = |name| MediaType { name, charset: None };
    match extension {
        b"html" | b"htm" => text("text/html"),
        b"css" => text("text/css"),
        // RFC 9239.
        b"js" | b"mjs" => text("text/javascript"),
        b"txt" | b"log" | b"sha256" | b"sha512" | b"sha1" | b"md5" => text("text/plain"),
        b"xml" | b"xsl" => text("application/xml"),
        b"svg" => text("image/svg+xml"),
        b"json" | b"map" => binary("application/json"),
        b"jpg" | b"jpeg" => binary("image/jpeg"),
        b"png" => binary("image/png"),
        b"webp" => binary("image/webp"),
        b"avif" => binary("image/avif"),
        b"wasm" => binary("application/wasm"),
        b"woff2" => binary("font/woff2"),
        b"mp4" => binary("video/mp4"),
        b"mkv" => binary("video/x-matroska"),
        b"webm" => binary("video/webm"),
        b"mp3" => binary("audio/mpeg"),
        b"m4a" => binary("audio/mp4"),
        b"flac" => binary("audio/flac"),
        // RFC 7845 section 9.
        b"opus" => binary("audio/ogg"),
        // RFC 8216 section 4, with the type that all players know.
        b"m3u8" => binary("application/vnd.apple.mpegurl"),
        // MPEG-2 transport streams (RFC 8216 section 3.2); TypeScript shares the extension, but browsers run
        // none.
        b"ts" | b"m2ts" | b"mts" => binary("video/mp2t"),
        b"mpd" => binary("application/dash+xml"),
        b"m4s" => binary("video/iso.segment"),
        b"gz" | b"tgz" => binary("application/gzip"),
        b"zst" | b"tzst" => binary("application/zstd"),
        b"xz" | b"txz" => binary("application/x-xz"),
        b"bz2" | b"tbz2" => binary("application/x-bzip2"),
        b"tar" => binary("application/x-tar"),
        b"deb" | b"udeb" | b"ddeb" => binary("application/vnd.debian.binary-package"),
        b"rpm" | b"drpm" => binary("application/x-rpm"),
        b"bin" | b"img" => MediaType::OCTET_STREAM,
        b"iso" => binary("application/x-iso9660-image"),
        _ => guessed(extension, charset),
    }
}

fn guessed<'a>(extension: &[u8], charset: Option<&'a str>) -> MediaType<'a> {
    std::str::from_utf8(extension)
        .ok()
        .and_then(|extension| mime_guess::from_ext(extension).first_raw())
        .map_or(MediaType::OCTET_STREAM, |name| MediaType::named(name, charset))
}

/// `type/subtype` of token characters (RFC 9110 section 8.3.1); parameters may follow a semicolon, of which
/// only the characters are checked.
fn is_media_type(value: &str) -> bool {
    let (name, parameters) = value.split_once(';').unwrap_or((value, ""));
    let Some((main, sub)) = name.trim_end().split_once('/') else { return false };
    is_token(main)
        && is_token(sub)
        && parameters.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && value.trim() == value
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(crate::header_field::is_token_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> String {
        MediaTypes::default().of(name.as_bytes()).to_string()
    }

    #[test]
    fn knows_what_media_servers_and_mirrors_serve() {
        for (name, expected) in [
            ("a.mp4", "video/mp4"),
            ("a.mkv", "video/x-matroska"),
            ("a.webm", "video/webm"),
            ("live/a.m3u8", "application/vnd.apple.mpegurl"),
            ("a.mpd", "application/dash+xml"),
            ("a.m4s", "video/iso.segment"),
            ("a.ts", "video/mp2t"),
            ("debian-13.iso", "application/x-iso9660-image"),
            ("a_1.0_amd64.deb", "application/vnd.debian.binary-package"),
            ("a.rpm", "application/x-rpm"),
            ("a.tar.gz", "application/gzip"),
            ("a.tar.xz", "application/x-xz"),
            ("a.tar.zst", "application/zstd"),
            ("a.tar.bz2", "application/x-bzip2"),
            ("a.tar", "application/x-tar"),
            ("a.wasm", "application/wasm"),
            ("a.avif", "image/avif"),
            ("a.webp", "image/webp"),
            ("a.flac", "audio/flac"),
            ("a.opus", "audio/ogg"),
            ("a.vtt", "text/vtt; charset=utf-8"),
            ("a.md", "text/markdown; charset=utf-8"),
            ("a.pdf", "application/pdf"),
            ("a.zip", "application/zip"),
            ("INDEX.HTML", "text/html; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.svg", "image/svg+xml; charset=utf-8"),
            ("a.xml", "application/xml; charset=utf-8"),
            ("a.xhtml", "application/xhtml+xml; charset=utf-8"),
            ("a.json", "application/json"),
            ("app.js.map", "application/json"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.iso.sha256", "text/plain; charset=utf-8"),
            ("access.log", "text/plain; charset=utf-8"),
            ("a.m4a", "audio/mp4"),
            ("a.tgz", "application/gzip"),
            ("a.txz", "application/x-xz"),
            ("a.tbz2", "application/x-bzip2"),
            ("disk.img", "application/octet-stream"),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }

    #[test]
    fn names_without_a_known_extension_are_octet_streams() {
        for name in [
            "",
            "README",
            "a.",
            ".html",
            "a/.html",
            "a.html/b",
            "a.unheard-of",
            "a.\u{e9}",
            "a.12345678901234567",
        ] {
            assert_eq!(of(name), "application/octet-stream", "{name}");
        }
        assert_eq!(MediaTypes::default().of(b"a.\xff\xfe"), MediaType::OCTET_STREAM);
        assert_eq!(of("..html"), "text/html; charset=utf-8");
    }

    #[test]
    fn the_operator_has_the_last_word() {
        let types = MediaTypes::with_overrides([
            (".TS", "text/x-typescript"),
            ("html", "text/html; charset=iso-8859-1"),
            ("x", "a/b"),
            ("x", "application/x-thing"),
            ("1234567890123456", "application/x-longest"),
        ])
        .unwrap();
        assert_eq!(types.of(b"a.1234567890123456").to_string(), "application/x-longest");
        assert_eq!(types.of(b"a.ts").to_string(), "text/x-typescript; charset=utf-8");
        assert_eq!(types.of(b"a.html").to_string(), "text/html; charset=iso-8859-1");
        assert_eq!(types.of(b"a.X").to_string(), "application/x-thing");
        assert_eq!(types.of(b"a.css").to_string(), "text/css; charset=utf-8");
    }

    #[test]
    fn text_has_the_operators_charset_or_says_none() {
        let overrides = [("ts", "text/x-typescript"), ("htm", "text/html; charset=utf-16")];
        let types = |charset| MediaTypes::with_overrides(overrides).unwrap().with_charset(charset).unwrap();
        for (charset, suffix) in
            [(Some("iso-8859-1"), "; charset=iso-8859-1"), (Some("UTF-8"), "; charset=UTF-8"), (None, "")]
        {
            for (name, media_type) in [
                ("a.html", "text/html"),
                ("a.txt", "text/plain"),
                ("a.md", "text/markdown"),
                ("a.xhtml", "application/xhtml+xml"),
                ("a.ts", "text/x-typescript"),
            ] {
                let expected = format!("{media_type}{suffix}");
                assert_eq!(types(charset).of(name.as_bytes()).to_string(), expected);
            }
            assert_eq!(types(charset).of(b"a.htm").to_string(), "text/html; charset=utf-16");
            assert_eq!(types(charset).of(b"a.json").to_string(), "application/json");
        }
        for charset in ["", "utf 8", "utf-8;x", "\"utf-8\"", "utf-8\r\nX: y"] {
            let refused = MediaTypes::default().with_charset(Some(charset));
            assert!(matches!(refused, Err(SettingError::Charset { .. })), "{charset}");
        }
    }

    #[test]
    fn malformed_overrides_are_refused() {
        for extension in ["", ".", "tar.gz", "a/b", "a b", "ä", "12345678901234567"] {
            let refused = MediaTypes::with_overrides([(extension, "a/b")]);
            assert!(matches!(refused, Err(SettingError::Extension { .. })), "{extension}");
        }
        for media_type in
            ["", "text", "text/", "/plain", "te xt/plain", "a/b\r\nX: y", "a/b;\n", " a/b", "a/b;ä"]
        {
            let refused = MediaTypes::with_overrides([("x", media_type)]);
            assert!(matches!(refused, Err(SettingError::MediaType { .. })), "{media_type}");
        }
    }
}
