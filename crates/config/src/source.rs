//! Where the settings come from, so that they can be read again.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::rules::Draft;
use crate::{Error, Flags, Origin, Settings, file};

/// The largest configuration file that is read, in bytes.
const LIMIT_FILE_BYTES: u64 = 1 << 20;

/// A configuration file and the flags that win over it. A reload is another [`Source::load`].
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// The flags.
    pub flags: Flags,
}

impl Source {
    /// Reads the file and lays the flags over it. The files that the settings name are not looked at: that is
    /// [`Settings::verify_files`].
    ///
    /// # Errors
    /// [`Error::Unreadable`] and [`Error::TooLarge`] about the file itself, [`Error::Invalid`] with every fault of what
    /// was said.
    pub fn load(&self) -> Result<Settings, Error> {
        match &self.file {
            Some(path) => Settings::from_toml(path, &read(path)?, &self.flags),
            None => finished(Draft::new(Origin::Flag("DIR")), &self.flags),
        }
    }
}

impl Settings {
    /// Reads the text of a configuration file, `path` being what it is called in errors and what paths in it are
    /// relative to.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every fault: those of the syntax if there are some, else those of keys and values, else
    /// those between values.
    pub fn from_toml(path: &Path, text: &[u8], flags: &Flags) -> Result<Self, Error> {
        finished(file::read(path, text).map_err(|faults| Error::Invalid { faults })?, flags)
    }
}

fn finished(mut draft: Draft, flags: &Flags) -> Result<Settings, Error> {
    flags.apply(&mut draft).map_err(|fault| Error::Invalid { faults: vec![fault] })?;
    draft.finished().map_err(|faults| Error::Invalid { faults })
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let unreadable = |reason| Error::Unreadable { path: path.to_owned(), reason };
    let file = File::open(path).map_err(unreadable)?;
    let mut text = Vec::new();
    file.take(LIMIT_FILE_BYTES + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LIMIT_FILE_BYTES {
        return Err(Error::TooLarge { path: path.to_owned(), limit_bytes: LIMIT_FILE_BYTES });
    }
    Ok(text)
}
