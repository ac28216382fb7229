//! A tree of files with names that are hard to handle, and what a tree holds.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::symlink,
    },
    path::Path,
};

/// What there is at a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Directory,
    Link(Vec<u8>),
    File(Vec<u8>),
}

/// Makes the tree in `folder`, with so many small files in one directory of it.
pub(crate) fn make(folder: &Path, many_files: u32) {
    let longest = "n".repeat(255);
    let names: [&[u8]; 9] = [
        b"plain",
        b"with space",
        b"line\nbreak",
        b"-rf",
        b".hidden",
        "gr\u{f6}\u{df}e \u{1f980}".as_bytes(),
        b"\xff\xfe not UTF-8",
        b"back\\slash\"quote'",
        longest.as_bytes(),
    ];
    for (number, name) in names.into_iter().enumerate() {
        let directory = folder.join("odd names").join(format!("{number}")).join(OsStr::from_bytes(name));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(OsStr::from_bytes(name)), vec![number as u8; number * 997]).unwrap();
    }
    let many = folder.join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..many_files {
        fs::write(many.join(format!("file-{number}")), number.to_string()).unwrap();
    }
    symlink("odd names/0/plain", folder.join("link")).unwrap();
    symlink("/nowhere/at all", folder.join("dangling")).unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    let deep = (0..20).fold(folder.to_owned(), |path, level| path.join(format!("level {level}")));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("bottom"), "deep").unwrap();
}

/// Everything beneath `folder`, by its path from there.
pub(crate) fn contents(folder: &Path) -> BTreeMap<Vec<u8>, Held> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            let held = if kind.is_dir() {
                waiting.push(path.clone());
                Held::Directory
            } else if kind.is_symlink() {
                Held::Link(fs::read_link(&path).unwrap().into_os_string().into_vec())
            } else {
                let content = fs::read(&path).unwrap();
                assert_eq!(entry.metadata().unwrap().len(), content.len() as u64);
                Held::File(content)
            };
            found.insert(path.strip_prefix(folder).unwrap().as_os_str().as_bytes().to_vec(), held);
        }
    }
    found
}
