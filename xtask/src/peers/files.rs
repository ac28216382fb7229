//! The file set: five files of pseudo-random bytes, the same on every machine, made once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use linerate_bench::random_file::{self, Generator};

/// One file of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Name below the document root.
    pub(crate) name: &'static str,
    /// Length in bytes (decimal units, as the figures "per GB" are).
    pub(crate) bytes: u64,
}

/// The 2 GB file of the bulk works.
pub(crate) const FILE_2GB: Sample = Sample { name: "2gb.bin", bytes: 2_000_000_000 };
/// The 10 MB file.
pub(crate) const FILE_10MB: Sample = Sample { name: "10mb.bin", bytes: 10_000_000 };
/// The 1 MB file.
pub(crate) const FILE_1MB: Sample = Sample { name: "1mb.bin", bytes: 1_000_000 };
/// The 100 kB file.
pub(crate) const FILE_100KB: Sample = Sample { name: "100kb.bin", bytes: 100_000 };
/// The 10 kB file.
pub(crate) const FILE_10KB: Sample = Sample { name: "10kb.bin", bytes: 10_000 };

/// The whole set.
pub(crate) const FILE_SET: [Sample; 5] = [FILE_2GB, FILE_10MB, FILE_1MB, FILE_100KB, FILE_10KB];

const CHUNK_BYTES: usize = 1 << 20;

impl Sample {
    /// The request target.
    pub(crate) fn url_path(&self) -> String {
        format!("/{}", self.name)
    }
}

/// Makes what is missing of the set in `folder` and returns the document root.
pub(crate) fn prepare(folder: &Path) -> Result<PathBuf> {
    let root = folder.join("files");
    fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
    for sample in &FILE_SET {
        let path = root.join(sample.name);
        if !is_complete(&path, sample) {
            println!("making {} ({} bytes)", path.display(), sample.bytes);
            write_sample(&path, sample).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(root)
}

/// Reads the whole set once, so that no server meets a cold page cache.
pub(crate) fn warm(root: &Path) -> Result<()> {
    for sample in &FILE_SET {
        let path = root.join(sample.name);
        let mut file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        io::copy(&mut file, &mut io::sink()).with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(())
}

/// A file of the right length whose first chunk is the generator's: the name is only given to finished files.
fn is_complete(path: &Path, sample: &Sample) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let right_length = file.metadata().is_ok_and(|metadata| metadata.len() == sample.bytes);
    let mut expected = vec![0; CHUNK_BYTES.min(sample.bytes as usize)];
    Generator::new(seed_of(sample)).fill(&mut expected);
    let mut found = vec![0; expected.len()];
    right_length && file.read_exact(&mut found).is_ok() && found == expected
}

fn write_sample(path: &Path, sample: &Sample) -> io::Result<()> {
    // Nobody interrupts it: a file is made within seconds.
    random_file::write(path, sample.bytes, seed_of(sample), &AtomicBool::new(false))
}

/// Its length, so that no file is the beginning of another.
fn seed_of(sample: &Sample) -> u64 {
    sample.bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_written_once_and_damage_is_noticed() {
        let folder = std::env::temp_dir().join(format!("xtask-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(FILE_10KB.name);
        assert!(!is_complete(&path, &FILE_10KB));
        write_sample(&path, &FILE_10KB).unwrap();
        assert!(is_complete(&path, &FILE_10KB));
        let mut bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, FILE_10KB.bytes);
        bytes[77] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(!is_complete(&path, &FILE_10KB));
        fs::remove_dir_all(&folder).unwrap();
    }
}
