//! The files that are served: made once, kept in the cache folder, warmed or dropped from the page cache.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::Advice;

use crate::definition::Workload;
use crate::error::{Error, Result};
use crate::random_file;

/// What is left free on the disk beside the files, in bytes.
const SPARE_BYTES: u64 = 256 << 20;

const CHUNK_BYTES: usize = 1 << 20;

/// The folder of the files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// The servers' document root.
    pub(crate) root: PathBuf,
}

impl Files {
    /// The files below `cache`.
    pub(crate) fn in_cache(cache: &Path) -> Result<Self> {
        let root = cache.join("files");
        fs::create_dir_all(&root).map_err(Error::file("cannot create", &root))?;
        let root = root.canonicalize().map_err(Error::file("cannot resolve", &root))?;
        Ok(Self { root })
    }

    /// The names of a load's files, below the root.
    pub(crate) fn names(workload: &Workload) -> Vec<String> {
        (0..workload.files).map(|index| format!("{}-{index}.bin", workload.file_bytes)).collect()
    }

    /// Bytes that would have to be written for this load.
    pub(crate) fn missing_bytes(&self, workload: &Workload) -> u64 {
        let missing =
            Self::names(workload).iter().filter(|name| !self.is_there(name, workload.file_bytes)).count();
        missing as u64 * workload.file_bytes
    }

    /// Writes what is missing for this load.
    ///
    /// # Errors
    /// Where there is not enough room, said before anything is written, or the disk fails.
    pub(crate) fn make(&self, workload: &Workload, interrupted: &AtomicBool) -> Result<()> {
        let missing_bytes = self.missing_bytes(workload);
        if missing_bytes == 0 {
            return Ok(());
        }
        let free_bytes = self.free_bytes()?;
        if free_bytes < missing_bytes + SPARE_BYTES {
            return Err(Error::Machine(format!(
                "{}: the files need {missing_bytes} bytes there, and {free_bytes} are free; make room, or choose another \
                 folder with --cache",
                self.root.display()
            )));
        }
        for (index, name) in Self::names(workload).iter().enumerate() {
            if !self.is_there(name, workload.file_bytes) {
                self.write(name, workload.file_bytes, index as u64, interrupted)?;
            }
        }
        Ok(())
    }

    fn is_there(&self, name: &str, bytes: u64) -> bool {
        fs::metadata(self.root.join(name)).is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes)
    }

    fn free_bytes(&self) -> Result<u64> {
        let status = rustix::fs::statvfs(&self.root)
            .map_err(|error| Error::file("cannot ask for the free space of", &self.root)(error.into()))?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }

    fn write(&self, name: &str, bytes: u64, index: u64, interrupted: &AtomicBool) -> Result<()> {
        let path = self.root.join(name);
        match random_file::write(&path, bytes, bytes ^ (index << 48), interrupted) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(Error::Interrupted),
            written => written.map_err(Error::file("cannot write", &path)),
        }
    }

    /// Reads a load's files, so that they are in the page cache.
    pub(crate) fn warm(&self, workload: &Workload) -> Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        for name in Self::names(workload) {
            let path = self.root.join(name);
            let mut file = File::open(&path).map_err(Error::file("cannot read", &path))?;
            while file.read(&mut chunk).map_err(Error::file("cannot read", &path))? > 0 {}
        }
        Ok(())
    }

    /// Drops a load's files from the page cache. Pages that some process has mapped stay, so no server may be running.
    pub(crate) fn drop_cached(&self, workload: &Workload) -> Result<()> {
        for name in Self::names(workload) {
            let path = self.root.join(name);
            let file = File::open(&path).map_err(Error::file("cannot read", &path))?;
            // What has not been written to disk yet cannot be dropped.
            file.sync_data().map_err(Error::file("cannot write to disk", &path))?;
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)
                .map_err(|error| Error::file("cannot drop from the page cache", &path)(error.into()))?;
        }
        Ok(())
    }

    /// Why files here cannot be cold, if they cannot.
    pub(crate) fn always_cached(&self) -> Option<String> {
        const TMPFS_MAGIC: u32 = 0x0102_1994;
        const RAMFS_MAGIC: u32 = 0x8584_58f6;
        let kind = rustix::fs::statfs(&self.root).ok()?.f_type as u32;
        [TMPFS_MAGIC, RAMFS_MAGIC].contains(&kind).then(|| {
            format!(
                "{} is in memory, files there are never cold; choose a folder on a disk with --cache",
                self.root.display()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_made_once_whole_and_different() {
        let cache = tempfile::tempdir().unwrap();
        let files = Files::in_cache(cache.path()).unwrap();
        let workload = Workload { file_bytes: 3_000_001, files: 2, ..Workload::default() };
        let go_on = AtomicBool::new(false);
        assert_eq!(files.missing_bytes(&workload), 6_000_002);
        files.make(&workload, &go_on).unwrap();
        assert_eq!(files.missing_bytes(&workload), 0);
        let read = |index: usize| fs::read(files.root.join(&Files::names(&workload)[index])).unwrap();
        assert!(read(0) != read(1) && read(0).len() == 3_000_001);
        let made = fs::metadata(files.root.join("3000001-0.bin")).unwrap().modified().unwrap();
        files.make(&workload, &go_on).unwrap();
        assert_eq!(fs::metadata(files.root.join("3000001-0.bin")).unwrap().modified().unwrap(), made);
        files.warm(&workload).unwrap();
        files.drop_cached(&workload).unwrap();
    }

    #[test]
    fn what_is_broken_off_leaves_nothing_behind() {
        let cache = tempfile::tempdir().unwrap();
        let files = Files::in_cache(cache.path()).unwrap();
        let workload = Workload { file_bytes: 5_000_000, ..Workload::default() };
        let error = files.make(&workload, &AtomicBool::new(true)).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{error}");
        assert_eq!(fs::read_dir(&files.root).unwrap().count(), 0);
    }

    #[test]
    fn a_full_disk_is_told_before_anything_is_written() {
        let cache = tempfile::tempdir().unwrap();
        let files = Files::in_cache(cache.path()).unwrap();
        let workload = Workload { file_bytes: 1_000_000_000_000, files: 10_000, ..Workload::default() };
        let error = files.make(&workload, &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.contains("are free; make room"), "{error}");
        assert_eq!(fs::read_dir(&files.root).unwrap().count(), 0);
    }
}
