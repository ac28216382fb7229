//! What is said about a file that was found: length, times, tag, media type, coding; and what becomes of it later.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;

use common::{Site, accepted, bytes, file, lookup, outcome, path, refusal, set_age_seconds};
use linerate_content::{
    Blocking, Content, ContentError, EtagSource, FileState, Found, Policy, Refusal, Resolver, Root,
};
use linerate_http::Coding;

fn choose(root: &Root, name: &str, header: &str) -> Content {
    match root.lookup(&path(name), &accepted(header), Blocking::Allowed) {
        Ok(Found::File(content)) => content,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_file_is_described_as_it_is() {
    let site = Site::new();
    site.write("page.html", "<p>hello");
    site.write("film.mp4", "");
    site.write("README", "text");
    let root = site.open(Policy::default());
    let page = file(&root, "page.html");
    let metadata = fs::metadata(site.path("page.html")).unwrap();
    assert_eq!(page.length_bytes(), 8);
    assert_eq!(page.modified().unix_seconds, metadata.mtime());
    assert_eq!(i64::from(page.modified().nanoseconds), metadata.mtime_nsec());
    assert_eq!((page.identity().device, page.identity().inode), (metadata.dev(), metadata.ino()));
    assert_eq!(page.media_type().to_string(), "text/html; charset=utf-8");
    assert_eq!((page.coding(), page.varies()), (None, true));
    let film = file(&root, "film.mp4");
    assert_eq!((film.length_bytes(), film.varies()), (0, false));
    assert_eq!(film.media_type().to_string(), "video/mp4");
    assert_eq!(file(&root, "README").media_type().to_string(), "application/octet-stream");
}

#[test]
fn tags_are_weak_until_the_file_has_come_to_rest() {
    let site = Site::new();
    site.write("file.txt", "text");
    let root = site.open(Policy::default());
    assert!(file(&root, "file.txt").etag().starts_with("W/\""));
    set_age_seconds(&site.path("file.txt"), 60);
    let strong = file(&root, "file.txt").etag().to_owned();
    assert!(strong.starts_with('"') && strong.ends_with('"'));
    assert_eq!(file(&root, "file.txt").etag(), strong);
    set_age_seconds(&site.path("file.txt"), 61);
    assert_ne!(file(&root, "file.txt").etag(), strong);
}

#[test]
fn replicas_share_their_tags_and_others_do_not() {
    let (one, two) = (Site::new(), Site::new());
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    for site in [&one, &two] {
        site.write("file.txt", "text");
        fs::File::options().write(true).open(site.path("file.txt")).unwrap().set_modified(time).unwrap();
    }
    let tags = |source| {
        [&one, &two].map(|site| {
            file(&site.open(Policy { etag_source: source, ..Policy::default() }), "file.txt")
                .etag()
                .to_owned()
        })
    };
    let [left, right] = tags(EtagSource::Replicas);
    assert_eq!(left, right);
    let [left, right] = tags(EtagSource::File);
    assert_ne!(left, right);
}

#[test]
fn changes_of_an_open_file_are_told_apart() {
    let site = Site::new();
    let root = site.open(Policy::default());
    let content = |name: &str| {
        site.write(name, "0123456789");
        set_age_seconds(&site.path(name), 60);
        file(&root, name)
    };
    let untouched = content("untouched");
    assert_eq!(untouched.state().unwrap(), FileState::Unchanged);
    // Reading, and another file beside it, change nothing.
    assert_eq!(bytes(&untouched), b"0123456789");
    site.write("another", "");
    assert_eq!(untouched.state().unwrap(), FileState::Unchanged);

    let truncated = content("truncated");
    fs::File::options().write(true).open(site.path("truncated")).unwrap().set_len(4).unwrap();
    assert_eq!(truncated.state().unwrap(), FileState::Modified);

    let overwritten = content("overwritten");
    fs::write(site.path("overwritten"), "abcdefghij").unwrap();
    assert_eq!(overwritten.state().unwrap(), FileState::Modified);

    let renamed_over = content("renamed-over");
    site.write("new", "abcdefghij");
    fs::rename(site.path("new"), site.path("renamed-over")).unwrap();
    assert_eq!(renamed_over.state().unwrap(), FileState::Replaced);
    assert_eq!(bytes(&renamed_over), b"0123456789");

    let removed = content("removed");
    fs::remove_file(site.path("removed")).unwrap();
    assert_eq!(removed.state().unwrap(), FileState::Replaced);
}

#[test]
fn the_client_gets_the_sibling_it_likes_best() {
    let site = Site::new();
    site.write("app.js", "plain");
    for ending in ["br", "zst", "gz"] {
        site.write(&format!("app.js.{ending}"), ending);
    }
    let root = site.open(Policy::default());
    let mut tags = vec![];
    for (header, coding, expected) in [
        ("", None, "plain"),
        ("deflate", None, "plain"),
        ("gzip", Some(Coding::Gzip), "gz"),
        ("gzip, br", Some(Coding::Brotli), "br"),
        ("gzip, zstd;q=0.9", Some(Coding::Gzip), "gz"),
        ("zstd", Some(Coding::Zstd), "zst"),
        ("br;q=0, zstd, gzip", Some(Coding::Zstd), "zst"),
    ] {
        let content = choose(&root, "app.js", header);
        assert_eq!((content.coding(), bytes(&content)), (coding, expected.as_bytes().to_vec()), "{header}");
        assert_eq!(content.media_type().to_string(), "text/javascript; charset=utf-8");
        assert!(content.varies());
        tags.push((coding, content.etag().to_owned()));
    }
    tags.sort_by(|left, right| left.1.cmp(&right.1));
    tags.dedup();
    assert_eq!(tags.len(), 4, "one tag for each variant: {tags:?}");
    // Asked for by its own name it is a file like any other.
    let itself = choose(&root, "app.js.gz", "gzip");
    assert_eq!((itself.coding(), itself.media_type().name), (None, "application/gzip"));
}

#[test]
fn siblings_that_are_old_missing_or_no_files_are_passed_over() {
    let site = Site::new();
    site.write("a.css", "plain");
    site.write("a.css.br/x", "a directory");
    site.write("a.css.zst", "older");
    set_age_seconds(&site.path("a.css"), 60);
    set_age_seconds(&site.path("a.css.zst"), 61);
    site.link("../outside/secret.txt", "a.css.gz");
    let root = site.open(Policy::default());
    assert_eq!(bytes(&choose(&root, "a.css", "br, zstd, gzip")), b"plain");
    // As new as the original is new enough: that is how tools leave it that keep the time.
    fs::File::options()
        .write(true)
        .open(site.path("a.css.zst"))
        .unwrap()
        .set_modified(fs::metadata(site.path("a.css")).unwrap().modified().unwrap())
        .unwrap();
    assert_eq!(bytes(&choose(&root, "a.css", "br, zstd, gzip")), b"older");
    // `brotli -k` leaves it with the whole seconds of the time.
    let set_time = |name: &str, nanoseconds: u32| {
        let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_700_000_000, nanoseconds);
        fs::File::options().write(true).open(site.path(name)).unwrap().set_modified(time).unwrap();
    };
    set_time("a.css", 987_654_321);
    set_time("a.css.zst", 0);
    assert_eq!(bytes(&choose(&root, "a.css", "br, zstd, gzip")), b"older");
    set_time("a.css.zst", 987_654_320);
    assert_eq!(bytes(&choose(&root, "a.css", "br, zstd, gzip")), b"plain");
    // A sibling does not stand in for an original that is missing.
    site.write("b.css.gz", "alone");
    assert_eq!(refusal(root.lookup(&path("b.css"), &accepted("gzip"), Blocking::Allowed)), Refusal::Missing);
}

#[test]
fn formats_that_are_compressed_and_sites_without_the_feature_have_no_siblings() {
    let site = Site::new();
    for name in
        ["film.mp4", "film.mp4.gz", "page.html", "page.html.gz", "dir/index.html", "dir/index.html.gz"]
    {
        site.write(name, name);
    }
    let root = site.open(Policy::default());
    let film = choose(&root, "film.mp4", "gzip");
    assert_eq!((film.coding(), film.varies()), (None, false));
    assert_eq!(choose(&root, "dir/", "gzip").coding(), Some(Coding::Gzip));
    let root = site.open(Policy { precompressed: false, ..Policy::default() });
    let page = choose(&root, "page.html", "gzip");
    assert_eq!((page.coding(), page.varies()), (None, false));
}

#[test]
fn index_files_are_tried_in_order_and_listings_can_be_off() {
    let site = Site::new();
    site.write("both/index.html", "html");
    site.write("both/index.htm", "htm");
    site.write("second/index.htm", "htm");
    site.write("none/file", "");
    site.write("secret", "secret");
    let index = ["index.html", "index.htm", "../secret", ""].map(str::to_owned).to_vec();
    let root = site.open(Policy { index, listing: false, ..Policy::default() });
    assert_eq!(outcome(lookup(&root, "both/")), "file html");
    assert_eq!(outcome(lookup(&root, "second/")), "file htm");
    for (path, expected) in [
        ("none/", Refusal::ListingOff),
        ("", Refusal::ListingOff),
        ("missing/", Refusal::Missing),
        ("none/file/", Refusal::Missing),
    ] {
        assert_eq!(refusal(lookup(&root, path)), expected, "{path}");
    }
    assert_eq!(outcome(lookup(&root, "none")), "needs slash");
}

#[test]
fn what_is_not_cached_would_block_and_what_is_does_not() {
    let site = Site::new();
    site.write("dir/file.txt", "text");
    let ask = |root: &Root, name: &str| root.lookup(&path(name), &accepted("gzip"), Blocking::CachedOnly);
    let by_hand = site.open_with(Policy::default(), Resolver::ByHand);
    assert!(matches!(ask(&by_hand, "dir/file.txt"), Err(ContentError::WouldBlock)));
    let old_kernel = site.open_with(Policy::default(), Resolver::Kernel { cached: false });
    assert!(matches!(ask(&old_kernel, "dir/file.txt"), Err(ContentError::WouldBlock)));
    let root = site.open(Policy::default());
    if root.resolver() != (Resolver::Kernel { cached: true }) {
        eprintln!(
            "SKIPPED the rest of what_is_not_cached_would_block_and_what_is_does_not: no RESOLVE_CACHED here"
        );
        return;
    }
    // The first look-up that may wait fills the kernel's cache, the sibling's absence included.
    root.lookup(&path("dir/file.txt"), &accepted("gzip"), Blocking::Allowed).unwrap();
    assert_eq!(outcome(ask(&root, "dir/file.txt")), "file text");
}

#[test]
fn names_may_be_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let site = Site::new();
    let root = site.open(Policy::default());
    for name in [
        &b"\xff\xfe\x80"[..],
        b"a b?#%&.txt",
        b"'\"<>;|$`",
        b"a\\b",
        b"\n\t\x01",
        b"-rf",
        b"a:b",
        b"\xe2\x80\xae",
    ] {
        let name = std::ffi::OsStr::from_bytes(name);
        fs::write(site.path(name), name.as_bytes()).unwrap();
        assert_eq!(bytes(&file(&root, name)), name.as_bytes());
    }
}
