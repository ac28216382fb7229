//! What a client does with directories, and what there is for it to find.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// The large directory, and the tree.
const LARGE: &str = "large";
const TREE: &str = "tree";
/// Files of a directory of the tree.
const FILES_EACH: u32 = 100;

/// A piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Work {
    /// `ls -f` of the large directory: its names, as they come.
    List,
    /// `find` in the tree.
    Find,
    /// `ls -lR` of the tree: the attributes of each.
    ListLong,
}

impl Work {
    pub(super) const ALL: [Self; 3] = [Self::List, Self::Find, Self::ListLong];

    /// Does it beneath `mounted`, and looks whether all was found.
    pub(super) fn run(self, mounted: &Path, entries: u32, files: u32) -> Result<()> {
        let (program, flags, folder) = match self {
            Self::List => ("ls", &["-f"][..], LARGE),
            Self::Find => ("find", &[][..], TREE),
            Self::ListLong => ("ls", &["-lR"][..], TREE),
        };
        let output = Command::new(program).args(flags).arg(mounted.join(folder)).output()?;
        if !output.status.success() {
            bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let lines = output.stdout.iter().filter(|&&byte| byte == b'\n').count();
        let directories = files.div_ceil(FILES_EACH);
        let expected = match self {
            // With "." and "..".
            Self::List => entries + 2,
            // With the tree itself.
            Self::Find => files + directories + 1,
            // Of each directory its line, its name, a total, and an empty line, where it is not the first.
            Self::ListLong => files + directories + 3 * (directories + 1) - 1,
        };
        if lines != expected as usize {
            bail!("{program} {flags:?} printed {lines} lines, not {expected}");
        }
        Ok(())
    }
}

/// Makes what is to be found, in the directory that servers show.
pub(super) fn make(root: &Path, entries: u32, files: u32) -> Result<()> {
    let large = root.join(LARGE);
    fs::create_dir(&large)?;
    for number in 0..entries {
        File::create(large.join(format!("entry-{number:06}"))).context("cannot make the large directory")?;
    }
    for number in 0..files {
        let directory = root.join(TREE).join(format!("directory-{}", number / FILES_EACH));
        if number % FILES_EACH == 0 {
            fs::create_dir_all(&directory)?;
        }
        fs::write(directory.join(format!("file-{number}")), "content").context("cannot make the tree")?;
    }
    Ok(())
}
