//! From the path of a request to a file name relative to the root, and back for links.

use crate::error::RequestError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};
use std::borrow::Cow;

/// All but RFC 3986's unreserved characters and the slash. The sub-delimiters and the colon may stand in a
/// path, but a colon in the first segment of a relative link reads as a scheme, and quotes and ampersands
/// need care in HTML.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A path that is safe to resolve beneath a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedPath<'a> {
    /// Without a slash at either end, segments separated by one slash; no segment is empty, `.` or `..`.
    /// Empty for the root itself. Borrowed from the request where nothing had to be decoded.
    pub relative: Cow<'a, [u8]>,
    /// The path ended in a slash (or in `/.`): the client means a directory.
    pub is_directory: bool,
    /// A segment begins with a dot.
    pub has_dotfile: bool,
    /// The name is UTF-8. One that is not is a file name all the same.
    pub is_utf8: bool,
}

impl DecodedPath<'_> {
    /// The address of this path as a directory, with `query` appended as it came: for the redirect that adds
    /// the final slash. It always begins with exactly one slash, so that it cannot lead to another host
    /// (`//host/`).
    #[must_use]
    pub fn directory_location(&self, query: Option<&str>) -> String {
        let mut location = String::from("/");
        if !self.relative.is_empty() {
            location.push_str(&encode_path(&self.relative));
            location.push('/');
        }
        if let Some(query) = query {
            location.push('?');
            location.push_str(query);
        }
        location
    }
}

/// Decodes the path of a request, as it stands in [`Request::path`](crate::Request::path).
///
/// Empty segments and `.` are dropped (as nginx does, and RFC 3986 section 5.2.4 for the dot). A backslash is
/// an ordinary byte. Names are bytes, as on Linux: an encoded control byte is one that a file's name can have
/// (RFC 3986 section 2.1 lets any byte be encoded), and whatever shows a decoded path has to escape it.
///
/// # Errors
/// A path that does not begin with a slash, a malformed escape, an encoded slash or NUL, a control byte that is
/// not encoded, or a `..` segment, encoded or not.
pub fn decode_path(path: &str) -> Result<DecodedPath<'_>, RequestError> {
    let encoded = path.strip_prefix('/').ok_or(RequestError::PathNotAbsolute)?.as_bytes();
    check_bytes(encoded)?;
    let decoded = Cow::from(percent_decode(encoded));

    let mut is_plain = true;
    let mut has_dotfile = false;
    for segment in decoded.split(|byte| *byte == b'/') {
        match segment {
            b".." => return Err(RequestError::PathParent),
            b"" | b"." => is_plain = false,
            [b'.', ..] => has_dotfile = true,
            _ => {}
        }
    }
    let is_directory = decoded.is_empty() || decoded.ends_with(b"/") || ends_in_dot(&decoded);
    let is_utf8 = std::str::from_utf8(&decoded).is_ok();
    let relative = if is_plain { decoded } else { collapse(decoded) };
    Ok(DecodedPath { relative, is_directory, has_dotfile, is_utf8 })
}

fn ends_in_dot(decoded: &[u8]) -> bool {
    decoded == b"." || decoded.ends_with(b"/.")
}

/// Looks at every byte before decoding: afterwards an encoded slash could not be told from a separator.
fn check_bytes(encoded: &[u8]) -> Result<(), RequestError> {
    let mut rest = encoded;
    while let [first, after @ ..] = rest {
        rest = after;
        let byte = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                hexadecimal(*high, *low).ok_or(RequestError::PathEscape)?
            }
            (b'%', _) => return Err(RequestError::PathEscape),
            (byte, _) => *byte,
        };
        match (byte, *first) {
            (b'/', b'%') => return Err(RequestError::PathEncodedSlash),
            (0, b'%') => return Err(RequestError::PathNul),
            (_, first) if first.is_ascii_control() => return Err(RequestError::PathControlByte),
            _ => {}
        }
    }
    Ok(())
}

fn hexadecimal(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Drops empty segments and `.`. A single slash at the end, the ordinary case, is cut off without copying.
fn collapse(decoded: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if let Cow::Borrowed(bytes) = decoded {
        if bytes.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let shortened = bytes.strip_suffix(b"/").unwrap_or(bytes);
        if !shortened.split(|byte| *byte == b'/').any(is_dropped) {
            return Cow::Borrowed(shortened);
        }
    }
    let kept = decoded.split(|byte| *byte == b'/').filter(|segment| !is_dropped(segment));
    let mut collapsed = Vec::with_capacity(decoded.len());
    for segment in kept {
        if !collapsed.is_empty() {
            collapsed.push(b'/');
        }
        collapsed.extend_from_slice(segment);
    }
    Cow::Owned(collapsed)
}

fn is_dropped(segment: &[u8]) -> bool {
    matches!(segment, b"" | b".")
}

/// Percent-encodes a path or a file name for a link or a Location header: unreserved characters and slashes
/// stay, all other bytes become `%XX`. [`decode_path`] undoes it.
#[must_use]
pub fn encode_path(path: &[u8]) -> String {
    percent_encoding::percent_encode(path, ENCODED).to_string()
}

/// A header value made of `text`: bytes that may not stand in a Location are encoded, `%` is left alone.
pub(crate) fn encode_location(text: &str) -> impl Iterator<Item = &str> {
    const UNSAFE: &AsciiSet = &percent_encoding::CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>');
    utf8_percent_encode(text, UNSAFE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relative(path: &str) -> Vec<u8> {
        decode_path(path).unwrap().relative.into_owned()
    }

    #[test]
    fn plain_paths_are_borrowed() {
        for (path, expected) in
            [("/", ""), ("/a", "a"), ("/a/b.txt", "a/b.txt"), ("/a/b/", "a/b"), ("/ä", "ä")]
        {
            let decoded = decode_path(path).unwrap();
            assert_eq!(decoded.relative, expected.as_bytes());
            assert!(matches!(decoded.relative, Cow::Borrowed(_)), "{path}");
            assert_eq!(decoded.is_directory, path.ends_with('/'), "{path}");
            assert!(decoded.is_utf8 && !decoded.has_dotfile, "{path}");
        }
    }

    #[test]
    fn escapes_are_decoded_once() {
        assert_eq!(relative("/a%20b"), b"a b");
        assert_eq!(relative("/%c3%A4"), "ä".as_bytes());
        assert_eq!(relative("/%2541"), b"%41");
        assert_eq!(relative("/%252e%252e/x"), b"%2e%2e/x");
        assert_eq!(relative("/a+b"), b"a+b");
        assert_eq!(relative("/a%3Fb%23"), b"a?b#");
        assert_eq!(relative("/..\\x"), b"..\\x");
        assert_eq!(relative("/a%0d%0Ab%7f%1b"), b"a\r\nb\x7f\x1b");
    }

    #[test]
    fn empty_and_dot_segments_collapse() {
        for (path, expected, is_directory) in [
            ("//", "", true),
            ("///a//b", "a/b", false),
            ("/./a/./b/.", "a/b", true),
            ("/a//", "a", true),
            ("/.", "", true),
            ("/%2e/a", "a", false),
            ("//example.org/", "example.org", true),
        ] {
            let decoded = decode_path(path).unwrap();
            assert_eq!(decoded.relative, expected.as_bytes(), "{path}");
            assert_eq!(decoded.is_directory, is_directory, "{path}");
            assert!(!decoded.has_dotfile, "{path}");
        }
    }

    #[test]
    fn refuses_what_could_lead_out_or_deceive() {
        use RequestError::*;
        for (path, error) in [
            ("", PathNotAbsolute),
            ("a", PathNotAbsolute),
            ("*", PathNotAbsolute),
            ("/..", PathParent),
            ("/../etc", PathParent),
            ("/a/..", PathParent),
            ("/a/../b", PathParent),
            ("/%2e%2e/b", PathParent),
            ("/.%2E", PathParent),
            ("/a%2fb", PathEncodedSlash),
            ("/a%2Fb", PathEncodedSlash),
            ("/%00", PathNul),
            ("/a%00.html", PathNul),
            ("/a\nb", PathControlByte),
            ("/a\0b", PathControlByte),
            ("/\u{7f}", PathControlByte),
            ("/%", PathEscape),
            ("/%4", PathEscape),
            ("/%zz", PathEscape),
            ("/%+4", PathEscape),
            ("/100%/x", PathEscape),
        ] {
            assert_eq!(decode_path(path), Err(error), "{path:?}");
        }
    }

    #[test]
    fn reports_dotfiles_and_other_bytes_than_utf8() {
        assert!(decode_path("/.git/config").unwrap().has_dotfile);
        assert!(decode_path("/a/%2ehidden").unwrap().has_dotfile);
        assert!(decode_path("/...").unwrap().has_dotfile);
        assert!(!decode_path("/a.b").unwrap().has_dotfile);
        let latin1 = decode_path("/caf%e9").unwrap();
        assert_eq!((&*latin1.relative, latin1.is_utf8), (&b"caf\xe9"[..], false));
    }

    #[test]
    fn every_name_survives_encoding_and_decoding() {
        for byte in (0x01..=0xff_u8).filter(|byte| *byte != b'/') {
            let name = [b'a', byte, b'b', b'/', byte, b'x'];
            let encoded = format!("/{}", encode_path(&name));
            assert!(encoded.is_ascii());
            assert_eq!(relative(&encoded), name);
        }
        assert_eq!(encode_path("Ä b/c:d'.mp4".as_bytes()), "%C3%84%20b/c%3Ad%27.mp4");
    }

    #[test]
    fn directory_locations_stay_on_this_host() {
        let location = |path: &str, query| decode_path(path).unwrap().directory_location(query);
        assert_eq!(location("/a%20b", None), "/a%20b/");
        assert_eq!(location("/a", Some("sort=size")), "/a/?sort=size");
        assert_eq!(location("//example.org", None), "/example.org/");
        assert_eq!(location("/\\example.org", None), "/%5Cexample.org/");
        assert_eq!(location("/", None), "/");
    }
}
