//! Listings: whatever names a directory holds, the page shows each of them as it is and leads to it, and nothing in a
//! name is markup, moves other text, or cannot be seen.

use crate::Verdict;
use html5gum::{DefaultEmitter, Token, Tokenizer};
use linerate_content::{Blocking, Found, ListingFormat, ListingView, Policy, Root, SortKey, SortOrder};
use linerate_http::{AcceptedCodings, MediaTypes, decode_path, encode_path};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::Arc,
};

/// A run with hundreds of files would spend its time in the file system.
const ENTRIES_LIMIT: usize = 40;
const NAME_LIMIT_BYTES: usize = 255;

/// The first byte says by turns which entries are directories, the second how the page is sorted. Names follow, set apart by
/// slashes: that of the directory itself (none: the root), then those of its entries.
///
/// # Panics
/// If page or document are not well formed, do not show a name as it is, or lead anywhere but to the file of that name.
pub fn listing(data: &[u8]) -> Verdict {
    let Some((&[directories, sorting], names)) = data.split_first_chunk() else { return Verdict::Refused };
    let mut names = names.split(|byte| *byte == b'/');
    let own_name = names.next().filter(|name| may_be_a_name(name)).unwrap_or_default();

    let root_directory = tempfile::tempdir().expect("a temporary directory");
    let listed = root_directory.path().join(OsStr::from_bytes(own_name));
    if !own_name.is_empty() && fs::create_dir(&listed).is_err() {
        return Verdict::Refused;
    }
    let made = make_entries(&listed, names.filter(|name| may_be_a_name(name)), directories);

    let policy = Policy { dotfiles: true, index: Vec::new(), ..Policy::default() };
    let root = Root::open(root_directory.path(), policy, Arc::new(MediaTypes::default())).expect("a root");
    let key = [SortKey::Name, SortKey::Size, SortKey::Date][usize::from(sorting >> 1) % 3];
    let order = [SortOrder::Ascending, SortOrder::Descending][usize::from(sorting & 1)];
    let mut listing = match look_up(&root, own_name, "") {
        Found::Listing(directory) => root.list(directory).expect("a directory can be read"),
        other => panic!("the directory: {other:?}"),
    };
    let mut rendered = |format| {
        let body = listing.render(ListingView { key, order, format }).body;
        let text = String::from_utf8(body).expect("what is sent is UTF-8");
        assert!(!text.contains(is_dangerous), "{text:?}");
        text
    };

    let page = Page::read(&rendered(ListingFormat::Html));
    let own_names: &[String] = &if own_name.is_empty() { vec![] } else { vec![lossy(own_name)] };
    assert_eq!(page.breadcrumb, own_names);
    let document: serde_json::Value =
        serde_json::from_str(&rendered(ListingFormat::Json)).expect("the document is JSON");
    let of_document = document["entries"].as_array().expect("entries");
    assert_eq!((page.rows.len(), of_document.len()), (made.len(), made.len()));

    let mut reached = BTreeSet::new();
    for ((href, shown), entry) in page.rows.iter().zip(of_document) {
        assert_eq!(entry["href"], *href);
        let name = reach(&root, own_name, href, &made);
        let slash = if made[&name].is_none() { "/" } else { "" };
        assert_eq!(*shown, lossy(&name) + slash);
        assert_eq!(entry["name"], lossy(&name));
        reached.insert(name);
    }
    assert!(reached.iter().eq(made.keys()), "{made:?}");
    if made.is_empty() { Verdict::Refused } else { Verdict::Taken }
}

fn may_be_a_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&0) && name.len() <= NAME_LIMIT_BYTES
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Makes files, each of another length, and directories. Gives names with lengths; a directory has none. A name that the
/// file system refuses is left out.
fn make_entries<'a>(
    listed: &Path,
    names: impl Iterator<Item = &'a [u8]>,
    directories: u8,
) -> BTreeMap<Vec<u8>, Option<u64>> {
    let mut made = BTreeMap::new();
    for (index, name) in names.take(ENTRIES_LIMIT).enumerate() {
        let path = listed.join(OsStr::from_bytes(name));
        if made.contains_key(name) {
            continue;
        }
        if directories >> (index % 8) & 1 == 1 {
            if fs::create_dir(&path).is_ok() {
                made.insert(name.to_vec(), None);
            }
        } else if fs::write(&path, vec![b'x'; index]).is_ok() {
            made.insert(name.to_vec(), Some(index as u64));
        }
    }
    made
}

/// What stands at `href` as a client resolves it against the address of the directory.
fn look_up(root: &Root, own_name: &[u8], href: &str) -> Found {
    let slash = if own_name.is_empty() { "" } else { "/" };
    let address = format!("/{}{slash}{href}", encode_path(own_name));
    let path = decode_path(&address).expect("the address is sound");
    root.lookup(&path, &AcceptedCodings::IDENTITY_ONLY, Blocking::Allowed)
        .unwrap_or_else(|error| panic!("{address}: {error}"))
}

/// Follows a link; gives the name of what it leads to.
fn reach(root: &Root, own_name: &[u8], href: &str, made: &BTreeMap<Vec<u8>, Option<u64>>) -> Vec<u8> {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%/".contains(&byte);
    assert!(href.bytes().all(sound) && !href.starts_with('/'), "another place: {href}");
    let from_root = format!("/{href}");
    let path = decode_path(&from_root).expect("a link is sound");
    let name = path.relative.into_owned();
    match (look_up(root, own_name, href), made.get(&name)) {
        (Found::File(content), Some(Some(length_bytes))) => assert_eq!(content.length_bytes(), *length_bytes),
        (Found::Listing(_), Some(None)) => {}
        (found, expected) => panic!("{href} leads to {found:?}, not to {expected:?}"),
    }
    name
}

/// Controls, and what changes the direction of other text (Unicode's `Bidi_Control`).
fn is_dangerous(character: char) -> bool {
    let is_bidi_control = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    is_bidi_control || (character.is_control() && character != '\n')
}

/// What a person gets from the page.
#[derive(Debug, Default)]
struct Page {
    /// The names in the heading.
    breadcrumb: Vec<String>,
    /// Each entry's link and the name as it is shown, read back.
    rows: Vec<(String, String)>,
}

/// All that our own page is made of.
const ELEMENTS: &str = "html meta link title style svg defs symbol path circle use main h1 a i bdi b table thead tbody tr th td \
                        time p span";
const ATTRIBUTES: &str = "lang charset name content rel href class aria-hidden aria-sort id viewbox d cx cy r scope colspan \
                          datetime title";
const VOID_ELEMENTS: &str = "meta link";

fn is_one_of(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

impl Page {
    fn read(page: &str) -> Self {
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        let (mut found, mut open) = (Self::default(), Vec::new());
        let (mut href, mut name) = (String::new(), String::new());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        for token in Tokenizer::new_with_emitter(page, emitter) {
            let Ok(token) = token;
            match token {
                Token::StartTag(tag) => {
                    let element = text(&tag.name);
                    assert!(is_one_of(ELEMENTS, &element), "<{element}>");
                    for (attribute, value) in &tag.attributes {
                        assert!(is_one_of(ATTRIBUTES, &text(attribute)), "<{element} {attribute:?}>");
                        if element == "a" && attribute.as_slice() == b"href" {
                            href = text(value);
                        }
                    }
                    match element.as_str() {
                        "bdi" => name.clear(),
                        "b" => assert!(is_in(&open, "bdi"), "<b> beside a name"),
                        _ => {}
                    }
                    if !tag.self_closing && !is_one_of(VOID_ELEMENTS, &element) {
                        open.push(element);
                    }
                }
                Token::EndTag(tag) => {
                    let element = text(&tag.name);
                    assert_eq!(open.pop().as_deref(), Some(element.as_str()), "elements overlap");
                    if element == "bdi" {
                        found.take_name(&open, &href, std::mem::take(&mut name));
                    }
                }
                Token::String(bytes) => {
                    let text = text(&bytes);
                    match open.last().map(String::as_str) {
                        Some("bdi") => name.push_str(&text),
                        Some("b") => name.push(written_out(&text)),
                        _ => {}
                    }
                }
                Token::Doctype(_) => assert!(open.is_empty()),
                Token::Comment(_) | Token::Error(_) => panic!("{token:?} in {page}"),
            }
        }
        assert!(open.is_empty(), "not closed: {open:?}");
        found
    }

    fn take_name(&mut self, open: &[String], href: &str, name: String) {
        if is_in(open, "h1") {
            self.breadcrumb.push(name);
        } else if href == "../" {
            assert_eq!(name, "Parent directory");
        } else {
            assert!(is_in(open, "tbody") && is_in(open, "a"), "a name that is no link: {name:?}");
            self.rows.push((href.to_owned(), name));
        }
    }
}

fn is_in(open: &[String], element: &str) -> bool {
    open.iter().any(|known| known == element)
}

/// The character that is shown by its number.
fn written_out(text: &str) -> char {
    let digits = text.strip_prefix("U+").expect("a number");
    let number = u32::from_str_radix(digits, 16).expect("hexadecimal digits");
    char::from_u32(number).expect("a character")
}
