//! What a path depends on: the directories in which a name can be replaced, and the state of the file it leads to.

use std::{
    collections::{BTreeSet, VecDeque},
    ffi::OsString,
    fs,
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

/// As many symlinks as Linux follows (`path_resolution(7)`).
const SYMLINKS_LIMIT: usize = 40;

/// What tells one file from another, and its contents from others; `None` if there is none.
pub(super) type FileState = Option<(PathBuf, u64, SystemTime, (u64, u64))>;

/// The state of the file that `path` leads to.
pub(super) fn file_state(path: &Path) -> FileState {
    let metadata = fs::metadata(path).ok()?;
    let target = fs::canonicalize(path).ok()?;
    Some((target, metadata.len(), metadata.modified().ok()?, identity(&metadata)))
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

/// Every directory in which a change of a name can make `path` lead elsewhere: that of the file, that of each symlink
/// on the way, and of each symlink's target. Where the path ends early, the directory in which the next name is
/// missing.
pub(super) fn directories_on_the_way(path: &Path) -> BTreeSet<PathBuf> {
    let mut directories = BTreeSet::new();
    let Ok(path) = std::path::absolute(path) else { return directories };
    let mut current = PathBuf::new();
    let mut remaining: VecDeque<OsString> = names(&path);
    let mut symlinks = 0;
    while let Some(name) = remaining.pop_front() {
        let next = step(&current, &name);
        let Ok(metadata) = fs::symlink_metadata(&next) else {
            directories.insert(current);
            return directories;
        };
        if metadata.is_symlink() {
            directories.insert(current.clone());
            symlinks += 1;
            let Ok(target) = fs::read_link(&next) else { return directories };
            if symlinks > SYMLINKS_LIMIT {
                return directories;
            }
            let mut names = names(&target);
            names.append(&mut remaining);
            remaining = names;
        } else {
            if remaining.is_empty() {
                directories.insert(current);
                return directories;
            }
            current = next;
        }
    }
    directories
}

/// The path's components; a leading root among them, which starts it afresh.
fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|component| *component != Component::CurDir)
        .map(|component| component.as_os_str().to_owned())
        .collect()
}

/// `current/name`. What `..` leaves is no symlink here: those are resolved before they become `current`.
fn step(current: &Path, name: &OsString) -> PathBuf {
    if name == ".." {
        return current.parent().unwrap_or(current).to_owned();
    }
    current.join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_place_where_the_path_can_turn_is_listed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("archive/one")).unwrap();
        fs::create_dir_all(root.join("live/site")).unwrap();
        fs::write(root.join("archive/one/cert.pem"), "x").unwrap();
        symlink("../../archive/current/cert.pem", root.join("live/site/cert.pem")).unwrap();
        symlink("one", root.join("archive/current")).unwrap();
        symlink("live", root.join("certificates")).unwrap();
        let found = directories_on_the_way(&root.join("certificates/./site/cert.pem"));
        let expected: BTreeSet<_> =
            ["", "live/site", "archive", "archive/one"].iter().map(|name| root.join(name)).collect();
        // join("") appends a separator, which comparing paths ignores.
        assert_eq!(found, expected);
    }

    #[test]
    fn a_path_that_ends_early_waits_where_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        assert_eq!(directories_on_the_way(&root.join("a/b/c.pem")), BTreeSet::from([root.clone()]));
        assert_eq!(file_state(&root.join("a/b/c.pem")), None);
    }

    #[test]
    fn a_symlink_to_itself_ends() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(directories_on_the_way(&root.join("loop/x")), BTreeSet::from([root]));
    }
}
