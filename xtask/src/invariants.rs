//! Holds `docs/INVARIANTS.md` against the code: every number cited in the code stands there, every number that stands
//! there is cited in the code, and every place that it names as `FILE.rs::NAME` exists.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Where code is looked for, relative to the workspace.
const FOLDERS: [&str; 4] = ["crates", "fuzz", "tests", "xtask"];
/// What a citation begins with. This file is not to cite anything itself.
const PREFIX: &str = concat!("INV", "-");

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

fn document() -> String {
    fs::read_to_string(workspace().join("docs/INVARIANTS.md")).expect("the document is there")
}

/// Every Rust file below the folders.
fn sources() -> Vec<PathBuf> {
    let mut waiting: Vec<PathBuf> = FOLDERS.iter().map(|folder| workspace().join(folder)).collect();
    let mut files = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let entry = entry.expect("a readable folder");
            let is_folder = entry.file_type().expect("a file type").is_dir();
            if is_folder && entry.file_name() != "target" {
                waiting.push(entry.path());
            } else if !is_folder && entry.path().extension().is_some_and(|extension| extension == "rs") {
                files.push(entry.path());
            }
        }
    }
    files
}

/// The citations in `text`: all that begins with [`PREFIX`], to the end of the word.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(PREFIX).map(|(start, _)| {
        let rest = &text[start..];
        let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
        rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())].trim_end_matches('-')
    })
}

/// Whether `citation` is complete: prefix, a word, a number.
fn is_numbered(citation: &str) -> bool {
    citation.strip_prefix(PREFIX).and_then(|name| name.rsplit_once('-')).is_some_and(|(word, number)| {
        word.chars().all(|c| c.is_ascii_uppercase()) && number.parse::<u32>().is_ok_and(|number| number > 0)
    })
}

/// The numbers that the document defines: its headings of the second level.
fn defined(document: &str) -> BTreeSet<&str> {
    let headings = document.lines().filter_map(|line| line.strip_prefix("## "));
    let numbers: Vec<&str> = headings.flat_map(citations).collect();
    let set: BTreeSet<&str> = numbers.iter().copied().collect();
    assert_eq!(numbers.len(), set.len(), "a number is defined twice in {numbers:?}");
    set
}

#[test]
fn code_and_document_know_the_same_invariants() {
    let document = document();
    let defined = defined(&document);
    let mut cited = BTreeMap::new();
    for file in sources() {
        let text = fs::read_to_string(&file).expect("a readable file");
        for citation in citations(&text) {
            assert!(is_numbered(citation), "{}: {citation} has no number", file.display());
            cited.entry(citation.to_owned()).or_insert_with(|| file.clone());
        }
    }
    for (citation, file) in &cited {
        assert!(defined.contains(&**citation), "{}: {citation} is not in the document", file.display());
    }
    for number in &defined {
        assert!(cited.contains_key(*number), "{number} is cited nowhere in the code");
    }
    let mentioned: BTreeSet<&str> = citations(&document).collect();
    assert_eq!(mentioned, defined, "the document mentions what it does not define");
}

#[test]
fn every_place_that_the_document_names_exists() {
    let document = document();
    let places: Vec<(&str, &str)> =
        document.split('`').skip(1).step_by(2).filter_map(|quoted| quoted.split_once(".rs::")).collect();
    assert!(places.len() > 50, "only {} places were found", places.len());
    for (file, name) in places {
        let path = workspace().join(format!("{file}.rs"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}.rs: {error}"));
        let is_there = ["fn", "struct", "enum", "const", "static"].iter().any(|kind| {
            text.match_indices(&format!("{kind} {name}")).any(|(start, found)| {
                let next = text[start + found.len()..].chars().next();
                next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
            })
        });
        assert!(is_there, "{file}.rs has no {name}");
    }
}

#[test]
fn every_invariant_names_its_tests() {
    let document = document();
    for section in document.split("\n## ").skip(1) {
        let heading = section.lines().next().unwrap_or_default();
        for part in ["Why: ", "Kept: ", "Tests: "] {
            assert!(section.contains(&format!("\n{part}")), "{heading}: {part:?} is missing");
        }
    }
}

#[test]
fn citations_are_found_whole() {
    let text = format!("({PREFIX}NONCE-1, {PREFIX}LIMIT-12) {PREFIX}FILE: {PREFIX}A-");
    let found: Vec<&str> = citations(&text).collect();
    let expected = ["NONCE-1", "LIMIT-12", "FILE", "A"].map(|name| format!("{PREFIX}{name}"));
    assert_eq!(found, expected);
    let numbered: Vec<bool> = found.iter().map(|citation| is_numbered(citation)).collect();
    assert_eq!(numbered, [true, true, false, false]);
}
