//! Percent-decoding: what comes out can be resolved beneath a root, and leads back to itself.

use crate::Verdict;
use linerate_http::{DecodedPath, decode_path, encode_path};

/// The path of a request, as it came.
///
/// # Panics
/// If a decoded path could lead out of the root, or does not survive encoding.
pub fn path(data: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(data) else { return Verdict::Refused };
    let Ok(decoded) = decode_path(text) else { return Verdict::Refused };
    assert!(text.starts_with('/'));
    check(&decoded);
    Verdict::Taken
}

/// What holds for every path that was not refused.
pub(crate) fn check(decoded: &DecodedPath<'_>) {
    let relative = &*decoded.relative;
    assert!(!relative.contains(&0));
    assert_eq!(decoded.is_utf8, std::str::from_utf8(relative).is_ok());
    if !relative.is_empty() {
        let segments = || relative.split(|byte| *byte == b'/');
        assert!(!segments().any(|segment| matches!(segment, b"" | b"." | b"..")));
        assert_eq!(decoded.has_dotfile, segments().any(|segment| segment.starts_with(b".")));
    }

    let encoded = format!("/{}", encode_path(relative));
    assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic()));
    let again = decode_path(&encoded).expect("what was decoded can be encoded");
    assert_eq!(again.relative, decoded.relative);

    let location = decoded.directory_location(None);
    assert!(location.starts_with('/') && !location.starts_with("//"), "another host: {location}");
    let again = decode_path(&location).expect("a redirect leads somewhere");
    assert_eq!((again.relative, again.is_directory), (decoded.relative.clone(), true));
}
