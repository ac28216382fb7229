//! The path of a request, checked again: relative, without `..`, empty segments, NUL or refused dotfiles.
//!
//! The HTTP layer refuses most of this when it decodes a target, and the kernel refuses to leave the root. This is
//! the layer between them, so that a slip in either does not suffice.

use linerate_http::DecodedPath;

use crate::error::Refusal;

/// Checks every segment of `path`.
pub(crate) fn check_path(path: &DecodedPath<'_>, dotfiles: bool) -> Result<(), Refusal> {
    if path.relative.is_empty() {
        return if path.is_directory { Ok(()) } else { Err(Refusal::MalformedPath) };
    }
    path.relative.split(|&byte| byte == b'/').try_for_each(|segment| check_segment(segment, dotfiles))
}

/// One name: not empty, no NUL, not `.` or `..`, and a dotfile only where those are allowed.
pub(crate) fn check_segment(segment: &[u8], dotfiles: bool) -> Result<(), Refusal> {
    match segment {
        b"" | b"." | b".." => Err(Refusal::MalformedPath),
        _ if segment.contains(&0) || segment.contains(&b'/') => Err(Refusal::MalformedPath),
        // RFC 8615: certificate authorities and others ask here, on sites that hide all else.
        b".well-known" => Ok(()),
        [b'.', ..] if !dotfiles => Err(Refusal::Dotfile),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(relative: &[u8], dotfiles: bool) -> Result<(), Refusal> {
        let path =
            DecodedPath { relative: relative.into(), is_directory: false, has_dotfile: false, is_utf8: true };
        check_path(&path, dotfiles)
    }

    #[test]
    fn plain_paths_pass() {
        for path in [b"a".as_slice(), b"a/b c", b"a..b/c.", b"\xff\xfe", b"a\\..\\b"] {
            assert_eq!(check(path, false), Ok(()));
        }
    }

    #[test]
    fn what_could_lead_elsewhere_is_malformed() {
        let paths: [&[u8]; 14] = [
            b"",
            b"/",
            b"/a",
            b"a/",
            b"a//b",
            b".",
            b"..",
            b"../a",
            b"a/..",
            b"a/../b",
            b"a/./b",
            b"a\0b",
            b"\0",
            b"/etc/passwd",
        ];
        for path in paths {
            assert_eq!(check(path, true), Err(Refusal::MalformedPath), "{:?}", String::from_utf8_lossy(path));
        }
    }

    #[test]
    fn dotfiles_are_refused_at_any_depth_but_for_well_known() {
        for path in
            [b".git".as_slice(), b"a/.env", b".git/config", b".../x", b".well-known/.x", b".well-known2"]
        {
            assert_eq!(check(path, false), Err(Refusal::Dotfile));
            assert_eq!(check(path, true), Ok(()));
        }
        assert_eq!(check(b".well-known/acme-challenge/x", false), Ok(()));
    }
}
