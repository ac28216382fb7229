//! Precompressed siblings: for which files they are looked for, and when one is as new as its file.

use linerate_http::{Coding, MediaTypes};

use crate::facts::FileTime;

/// Units that times are cut to when they are copied, in nanoseconds, the coarsest first.
const RESOLUTIONS_NS: [u32; 3] = [1_000_000_000, 1_000_000, 1_000];

/// Whether a sibling that was modified at `sibling` can have been made from a file that was modified at `original`: it
/// is not older, as far as its time tells.
///
/// gzip and zstd give what they make the file's own time to the nanosecond, and equal times mean that it is current.
/// `brotli -k` and tar copy whole seconds, other tools micro- or milliseconds: their sibling looks older by what was cut
/// off. So the file's time is cut in the same way before it is compared. What that cannot see is a file that is
/// compressed and then changed within the same unit; a second allowed to every sibling, whatever its time, would not see
/// a change in the second after any compression.
#[must_use]
pub fn is_current(sibling: FileTime, original: FileTime) -> bool {
    let resolution_ns =
        RESOLUTIONS_NS.into_iter().find(|unit| sibling.nanoseconds.is_multiple_of(*unit)).unwrap_or(1);
    let cut = original.nanoseconds - original.nanoseconds % resolution_ns;
    sibling >= FileTime { nanoseconds: cut, ..original }
}

/// The file that `name` is a sibling of by its ending, if siblings of such files are served: `app.js` of `app.js.br`.
#[must_use]
pub fn original_of<'a>(name: &'a [u8], media_types: &MediaTypes) -> Option<&'a [u8]> {
    let original =
        Coding::ALL.iter().find_map(|coding| name.strip_suffix(coding.file_suffix().as_bytes()))?;
    (!original.is_empty() && is_worthwhile(media_types.of(original).name)).then_some(original)
}

/// Whether siblings are looked for at all. Formats that are compressed by themselves have none, and are most of the
/// bytes a media or mirror server sends: they are spared up to three look-ups and the Vary header, which halves the
/// use of caches on the way.
///
/// For all others Vary is sent whether a sibling exists or not: no look-ups are needed for codings that the client does
/// not accept, and a cache on the way stays right when a sibling is added later.
pub(crate) fn is_worthwhile(media_type: &str) -> bool {
    // An operator's own type may have parameters.
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let (kind, subtype) = essence.split_once('/').unwrap_or((essence, ""));
    match kind {
        "video" | "audio" => false,
        "image" => matches!(subtype, "svg+xml" | "bmp" | "x-icon" | "vnd.microsoft.icon" | "x-ms-bmp"),
        "font" => !matches!(subtype, "woff" | "woff2"),
        "application" => !COMPRESSED_APPLICATION_TYPES.contains(&subtype),
        _ => true,
    }
}

/// Subtypes of `application/` that are compressed by themselves.
const COMPRESSED_APPLICATION_TYPES: [&str; 18] = [
    "brotli",
    "epub+zip",
    "font-woff",
    "font-woff2",
    "gzip",
    "java-archive",
    "vnd.android.package-archive",
    "vnd.debian.binary-package",
    "vnd.rar",
    "x-7z-compressed",
    "x-bzip",
    "x-bzip2",
    "x-gzip",
    "x-rar-compressed",
    "x-rpm",
    "x-xz",
    "zip",
    "zstd",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sibling_is_as_new_as_its_file_to_the_digits_that_were_copied() {
        let time = |unix_seconds, nanoseconds| FileTime { unix_seconds, nanoseconds };
        let original = time(1_700_000_000, 123_456_789);
        for (sibling, current) in [
            // gzip -k, zstd: all digits.
            (original, true),
            (time(1_700_000_000, 123_456_788), false),
            (time(1_700_000_000, 123_456_790), true),
            // brotli -k, tar: whole seconds.
            (time(1_700_000_000, 0), true),
            (time(1_699_999_999, 0), false),
            (time(1_700_000_001, 0), true),
            // Micro- and milliseconds.
            (time(1_700_000_000, 123_456_000), true),
            (time(1_700_000_000, 123_455_000), false),
            (time(1_700_000_000, 123_000_000), true),
            (time(1_700_000_000, 122_000_000), false),
            // Made by no copy, and older by less than a second: the file was changed since.
            (time(1_700_000_000, 122_999_999), false),
            (time(1_699_999_999, 999_999_999), false),
            (time(1_700_000_060, 5), true),
        ] {
            assert_eq!(is_current(sibling, original), current, "{sibling:?}");
        }
        // Where the file's own time is in whole seconds nothing is cut.
        assert!(is_current(time(-5, 0), time(-5, 0)));
        assert!(!is_current(time(-6, 0), time(-5, 0)));
    }

    #[test]
    fn originals_are_told_by_the_ending() {
        let types = MediaTypes::default();
        for (name, original) in [
            ("app.js.br", Some("app.js")),
            ("app.js.zst", Some("app.js")),
            ("app.js.gz", Some("app.js")),
            ("film.mp4.gz", None),
            ("backup.tar.gz", Some("backup.tar")),
            ("app.js", None),
            (".br", None),
        ] {
            assert_eq!(original_of(name.as_bytes(), &types), original.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn only_what_compression_helps() {
        for media_type in
            ["text/html; charset=utf-8", "image/svg+xml", "application/json", "application/wasm", "font/ttf"]
        {
            assert!(is_worthwhile(media_type), "{media_type}");
        }
        for media_type in
            ["video/mp4", "audio/flac", "image/jpeg", "font/woff2", "application/zip", "application/gzip"]
        {
            assert!(!is_worthwhile(media_type), "{media_type}");
        }
    }
}
