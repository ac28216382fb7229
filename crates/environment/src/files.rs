//! The files that the kernel tells by, below a root: this machine's, or those of another that were recorded.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{Reading, facts::missing};

/// The most of a file that is looked at. The longest are /proc/cpuinfo, whose first processor says it all, and the list
/// of a distribution's modules (about 1 MiB).
const FILE_LIMIT_BYTES: usize = 8 << 20;

/// Files below a root.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    root: &'a Path,
}

impl<'a> Files<'a> {
    /// Those below `root`: `/` for this machine.
    #[must_use]
    pub fn below(root: &'a Path) -> Self {
        Self { root }
    }

    /// Where a path of the machine is.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file as text without white space around it, or why there is none.
    #[must_use]
    pub fn text(&self, path: &str) -> Reading<String> {
        match fs::read(self.path(path)) {
            Ok(bytes) => {
                let text =
                    String::from_utf8_lossy(&bytes[..bytes.len().min(FILE_LIMIT_BYTES)]).trim().to_owned();
                if text.is_empty() { missing(format!("{path} is empty")) } else { Reading::Value(text) }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing(format!("there is no {path}")),
            Err(error) => missing(format!("cannot read {path}: {error}")),
        }
    }

    /// The names in a folder, in order; none where there is no folder.
    #[must_use]
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}

/// The words of a text with single spaces between them.
#[must_use]
pub fn words(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value of a line "key : value" or "key=value", the first with that key.
#[must_use]
pub fn value<'a>(text: &'a str, separator: char, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"'))
    })
}
