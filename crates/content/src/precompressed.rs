//! Precompressed siblings: for which files they are looked for.

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
