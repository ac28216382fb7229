//! Listings: what is in them, in which order, and that no name can break the page.

mod common;

use std::fs;
use std::os::unix::ffi::OsStrExt;

use common::{RESOLVERS, Site, lookup};
use linerate_content::{
    CONTENT_SECURITY_POLICY, Found, Listing, ListingFormat, ListingView, Policy, Root, SortKey, SortOrder,
    Symlinks,
};
use linerate_http::decode_path;
use serde_json::Value;

fn list(root: &Root, name: &str) -> Listing {
    match lookup(root, name) {
        Ok(Found::Listing(directory)) => root.list(directory).unwrap(),
        other => panic!("{name}: {other:?}"),
    }
}

fn html(listing: &mut Listing) -> String {
    let rendered = listing.render(ListingView::default());
    assert_eq!(rendered.media_type, "text/html; charset=utf-8");
    String::from_utf8(rendered.body).unwrap()
}

fn json(listing: &mut Listing, key: SortKey, order: SortOrder) -> Value {
    let rendered = listing.render(ListingView { key, order, format: ListingFormat::Json });
    assert_eq!(rendered.media_type, "application/json");
    serde_json::from_slice(&rendered.body).unwrap()
}

fn names(document: &Value) -> Vec<&str> {
    document["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[test]
fn programs_get_all_they_need() {
    let site = Site::new();
    site.write("dir/sub/x", "");
    site.write("dir/a b.txt", "four");
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_700_000_000, 5);
    fs::File::options().write(true).open(site.path("dir/a b.txt")).unwrap().set_modified(time).unwrap();
    let document =
        json(&mut list(&site.open(Policy::default()), "dir/"), SortKey::Name, SortOrder::Ascending);
    assert_eq!(document["path"], "/dir/");
    assert_eq!((&document["files"], &document["directories"]), (&1.into(), &1.into()));
    assert_eq!((&document["total_bytes"], &document["cut"]), (&4.into(), &false.into()));
    let sub = &document["entries"][0];
    assert_eq!(
        (&sub["name"], &sub["href"], &sub["type"]),
        (&"sub".into(), &"sub/".into(), &"directory".into())
    );
    assert!(sub.get("size").is_none());
    let file = &document["entries"][1];
    assert_eq!(
        (&file["name"], &file["href"], &file["type"]),
        (&"a b.txt".into(), &"a%20b.txt".into(), &"file".into())
    );
    assert_eq!((&file["size"], &file["mtime"]), (&4.into(), &"2023-11-14T22:13:20Z".into()));
    let document = json(&mut list(&site.open(Policy::default()), ""), SortKey::Name, SortOrder::Ascending);
    assert_eq!(document["path"], "/");
}

#[test]
fn entries_come_in_the_order_asked_for_directories_first() {
    let site = Site::new();
    for (name, length, age_seconds) in
        [("file10", 1, 30), ("file2", 300, 10), ("File1", 20, 20), ("same", 20, 20)]
    {
        site.write(name, vec![b'x'; length]);
        common::set_age_seconds(&site.path(name), age_seconds);
    }
    fs::create_dir(site.path("zoo")).unwrap();
    fs::create_dir(site.path("arc")).unwrap();
    let mut listing = list(&site.open(Policy::default()), "");
    let mut order = |key, order| names(&json(&mut listing, key, order)).join(" ");
    use SortKey::{Date, Name, Size};
    use SortOrder::{Ascending, Descending};
    assert_eq!(order(Name, Ascending), "arc zoo File1 file2 file10 same");
    assert_eq!(order(Name, Descending), "zoo arc same file10 file2 File1");
    assert_eq!(order(Size, Ascending), "arc zoo file10 File1 same file2");
    assert_eq!(order(Size, Descending), "arc zoo file2 File1 same file10");
    assert!(order(Date, Ascending).ends_with("file10 File1 same file2"));
    assert!(
        order(Date, Descending).ends_with("file2 same File1 file10")
            || order(Date, Descending).ends_with("file2 File1 same file10")
    );
}

#[test]
fn what_is_not_served_is_not_shown() {
    let site = Site::new();
    site.write("file", "1234");
    site.write(".hidden", "");
    site.write(".well-known/x", "");
    fs::create_dir(site.path("dir")).unwrap();
    site.link("file", "to-file");
    site.link("dir", "to-dir");
    site.link("../outside/secret.txt", "to-secret");
    site.link("/etc/passwd", "to-absolute");
    site.link("missing", "dangling");
    site.link("loop", "loop");
    for resolver in RESOLVERS {
        let shown = |policy| {
            let mut listing = list(&site.open_with(policy, resolver), "");
            names(&json(&mut listing, SortKey::Name, SortOrder::Ascending)).join(" ")
        };
        let policy = Policy::default();
        assert_eq!(shown(policy.clone()), "dir to-dir file to-file");
        assert_eq!(shown(Policy { symlinks: Symlinks::Refused, ..policy.clone() }), "dir file");
        let anywhere = Policy { symlinks: Symlinks::Anywhere, ..policy.clone() };
        assert_eq!(shown(anywhere), "dir to-dir file to-absolute to-file to-secret");
        assert_eq!(shown(Policy { dotfiles: true, ..policy }), ".well-known dir to-dir .hidden file to-file");
    }
    // A link shows what it leads to.
    let document = json(&mut list(&site.open(Policy::default()), ""), SortKey::Name, SortOrder::Ascending);
    assert_eq!(document["entries"][3]["size"], 4);
}

#[test]
fn no_name_breaks_the_page_or_its_link() {
    let site = Site::new();
    let odd: [&[u8]; 15] = [
        b"a b?#%&.txt",
        b"<script>alert(1)</script>"[..8].as_ref(),
        b"\"><img src=x onerror=alert(1)>",
        b"it's",
        b"a:b",
        b"javascript:alert(1)",
        b"\xff\xfe",
        "ünïcödé".as_bytes(),
        b"\\evil",
        b"%2e%2e",
        b"line\r\nbreak",
        b"\x1b[31mred\x07",
        b"\x7f",
        "ann\u{202e}txt.exe".as_bytes(),
        b"\x01",
    ];
    for name in odd {
        fs::write(site.path(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
        let directory = [b"dir-", name].concat();
        fs::create_dir(site.path(std::ffi::OsStr::from_bytes(&directory))).unwrap();
    }
    let root = site.open(Policy::default());
    let mut listing = list(&root, "");
    let page = html(&mut listing);
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("onerror=alert(1)>\""));
    assert!(
        page.contains("<bdi>&lt;script&gt;</bdi>")
            && page.contains("it&#39;s")
            && page.contains("a b?#%&amp;.txt")
    );
    // Nothing that moves other characters, or cannot be seen, is in the page or in the document.
    assert!(page.contains("<bdi>ann<b>U+202E</b>txt.exe</bdi>"));
    assert!(page.contains("<bdi>line<b>U+000D</b><b>U+000A</b>break</bdi>"));
    let hidden = |character: char| character != '\n' && (character.is_control() || character == '\u{202e}');
    assert!(!page.contains(hidden));
    let as_json = ListingView { format: ListingFormat::Json, ..ListingView::default() };
    let text = String::from_utf8(listing.render(as_json).body).unwrap();
    assert!(!text.contains(hidden) && text.contains("ann\\u202etxt.exe"));
    let document = json(&mut listing, SortKey::Name, SortOrder::Ascending);
    assert!(names(&document).contains(&"ann\u{202e}txt.exe"));
    assert_eq!(document["files"], odd.len());
    let entries = document["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2 * odd.len());
    for entry in entries {
        let href = entry["href"].as_str().unwrap();
        assert!(page.contains(&format!("<a href=\"{href}\">")), "{href}");
        // Nothing in it can be read as a scheme, a query or another host.
        assert!(
            href.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%/".contains(&byte))
                && !href.starts_with('/')
        );
        let encoded = format!("/{href}");
        let path = decode_path(&encoded).unwrap();
        let found = root.lookup(&path, &common::accepted(""), linerate_content::Blocking::Allowed);
        assert!(matches!(found, Ok(Found::File(_) | Found::Listing(_))), "{href}: {found:?}");
    }
}

#[test]
fn odd_directory_names_stand_in_title_and_breadcrumb() {
    let site = Site::new();
    site.write("a&b/<i>/\"c\"/file", "x");
    let root = site.open(Policy::default());
    let page = html(&mut list(&root, "a&b/<i>/\"c\"/"));
    assert!(page.contains("<title>Index of /a&amp;b/&lt;i&gt;/&quot;c&quot;</title>"));
    assert!(page.contains("<a href=\"./../../../\">Index</a>"));
    assert!(
        page.contains("<a href=\"../../\"><bdi>a&amp;b</bdi></a>")
            && page.contains("<a href=\"../\"><bdi>&lt;i&gt;</bdi></a>")
    );
    assert!(!page.contains("<i>\"") && page.contains("<bdi>&quot;c&quot;</bdi></h1>"));
}

#[test]
fn the_page_sorts_by_links_and_says_how_it_is_sorted() {
    let site = Site::new();
    site.write("file", "x".repeat(1_234_567));
    let mut listing = list(&site.open(Policy::default()), "");
    let page = html(&mut listing);
    assert!(page.contains("aria-sort=\"ascending\"><a href=\"?sort=name&amp;order=desc\""));
    assert!(
        page.contains("<a href=\"?sort=size&amp;order=desc\"")
            && page.contains("<a href=\"?sort=date&amp;order=desc\"")
    );
    assert!(page.contains("title=\"1,234,567 bytes\">1.18 MiB</td>"));
    assert!(!page.contains("Parent directory"));
    let view = ListingView { key: SortKey::Size, order: SortOrder::Descending, ..ListingView::default() };
    let page = String::from_utf8(listing.render(view).body).unwrap();
    assert!(page.contains("aria-sort=\"descending\"><a href=\"?sort=size&amp;order=asc\""));
    assert!(page.contains("<a href=\"?sort=name&amp;order=asc\""));
}

#[test]
fn the_page_needs_nothing_from_elsewhere_and_its_style_is_the_one_announced() {
    let site = Site::new();
    site.write("dir/file", "x");
    let page = html(&mut list(&site.open(Policy::default()), "dir/"));
    for forbidden in ["http:", "https:", "//", "@import", "<script", " style=", " on", "javascript:"] {
        let allowed = page.replace(" only", "").replace(" one", "");
        assert!(!allowed.contains(forbidden), "{forbidden}");
    }
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, style.as_bytes());
    let expected = format!("'sha256-{}'", base64(digest.as_ref()));
    assert!(
        CONTENT_SECURITY_POLICY.contains(&expected),
        "the style sheet changed; its hash is now {expected}"
    );
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group =
            (0..3).fold(0_u32, |group, index| group << 8 | u32::from(*chunk.get(index).unwrap_or(&0)));
        for position in 0..4 {
            let character = ALPHABET[(group >> (18 - 6 * position) & 63) as usize];
            text.push(if position <= chunk.len() { char::from(character) } else { '=' });
        }
    }
    text
}

#[test]
fn a_huge_directory_is_cut_and_says_so() {
    let site = Site::new();
    for number in 0..20_000 {
        fs::write(site.path(format!("file{number}")), "x").unwrap();
    }
    let mut listing = list(&site.open(Policy::default()), "");
    assert!(listing.is_cut());
    assert_eq!(listing.len(), 10_000);
    let page = html(&mut listing);
    assert!(page.contains("Only the first 10,000 names are shown; 10,000 or more are not."));
    let document = json(&mut listing, SortKey::Name, SortOrder::Ascending);
    // The first by name, not those that the file system happens to give first.
    assert_eq!((names(&document)[0], names(&document)[9999]), ("file0", "file9999"));
    assert_eq!(document["cut"], true);
    // Beyond 16 times the limit names are not even read.
    let policy = Policy { listing_limit_entries: 10, ..Policy::default() };
    let listing = list(&site.open(policy), "");
    assert!(listing.is_cut() && listing.len() == 10);
}

#[test]
fn an_empty_directory_says_so() {
    let site = Site::new();
    let mut listing = list(&site.open(Policy::default()), "");
    assert!(listing.is_empty() && !listing.is_cut());
    assert!(html(&mut listing).contains("This directory is empty."));
}
