//! Content to serve: files whose every byte follows from their name.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Lengths around the boundaries of records, batches and mappings, in bytes.
pub const ODD_LENGTHS: [usize; 13] =
    [0, 1, 2, 16_383, 16_384, 16_385, 32_769, 65_543, 131_071, 262_145, 524_289, 1_048_577, 3_000_001];

/// The bytes of a file called `name`, `length_bytes` of them. Neighbouring records differ, and so do files of
/// different names, so that nothing can take another's place unnoticed.
#[must_use]
pub fn pattern(name: &str, length_bytes: usize) -> Vec<u8> {
    let mut state = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }) | 1;
    let mut bytes = Vec::with_capacity(length_bytes + 8);
    while bytes.len() < length_bytes {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(length_bytes);
    bytes
}

/// A folder to serve, removed when dropped.
#[derive(Debug)]
pub struct Site {
    folder: TempDir,
}

impl Site {
    /// An empty one.
    #[must_use]
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// One with a file `LENGTH.bin` for each of [`ODD_LENGTHS`], holding [`pattern`].
    #[must_use]
    pub fn of_odd_lengths() -> Self {
        let site = Self::empty();
        for length_bytes in ODD_LENGTHS {
            site.add_pattern(&Self::name_for(length_bytes), length_bytes);
        }
        site
    }

    /// The name of the file of that length.
    #[must_use]
    pub fn name_for(length_bytes: usize) -> String {
        format!("{length_bytes}.bin")
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file, and the folders it is in; returns its path.
    pub fn add(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder of the site");
        fs::write(&path, bytes).expect("a file of the site");
        path
    }

    /// Writes a file of `length_bytes` bytes that follow from its name ([`pattern`]), and returns them.
    pub fn add_pattern(&self, name: &str, length_bytes: usize) -> Vec<u8> {
        let bytes = pattern(name, length_bytes);
        self.add(name, &bytes);
        bytes
    }

    /// What is in a file now.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).expect("a file of the site")
    }

    /// Replaces a file as careful programs do: by renaming a new one over it.
    pub fn replace(&self, name: &str, bytes: &[u8]) {
        replace_file(&self.path().join(name), bytes);
    }
}

/// Writes `bytes` to a new file beside `path` and renames it over `path`.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) {
    let folder = path.parent().expect("a file is in a folder");
    let mut new = tempfile::NamedTempFile::new_in(folder).expect("a new file beside the old");
    new.write_all(bytes).expect("the new file's bytes");
    new.persist(path).expect("the rename");
}
