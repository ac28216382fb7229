//! Comparing what arrives with its source, byte by byte.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use percent_encoding::percent_decode_str;

use crate::{LoadError, target::Target};

/// How much is read from the source at a time.
const READ_BYTES: usize = 64 * 1024;

/// The file that a URL stands for.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    file: File,
    pub(crate) length_bytes: u64,
}

/// How a comparison came out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    Same,
    /// The first byte that differs: its offset in the file, what stands there, and what came.
    Differs {
        offset: u64,
        wanted: Option<u8>,
        received: u8,
    },
}

impl Source {
    /// The source of `target`: `place` itself if that is a file, else the file below it that the URL's path names.
    ///
    /// # Errors
    /// [`LoadError::Source`]: there is no such file, or it cannot be read.
    pub(crate) fn open(place: &Path, target: &Target) -> Result<Self, LoadError> {
        Self::of(if place.is_dir() { below(place, target)? } else { place.to_owned() })
    }

    /// The source of a file of an NFS server: `place` itself if that is a file, else the file below it that these names lead to.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn at(place: &Path, names: &[String]) -> Result<Self, LoadError> {
        // No name is `..`, nor has a slash.
        Self::of(if place.is_dir() { place.join(names.join("/")) } else { place.to_owned() })
    }

    fn of(path: PathBuf) -> Result<Self, LoadError> {
        let opened = File::open(&path).and_then(|file| {
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
            }
            Ok((file, metadata.len()))
        });
        match opened {
            Ok((file, length_bytes)) => Ok(Self { path, file, length_bytes }),
            Err(source) => Err(LoadError::Source { file: path, source }),
        }
    }

    /// Compares `received` with what stands in the file from `offset` on.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub(crate) fn compare(
        &self,
        mut offset: u64,
        mut received: &[u8],
        scratch: &mut Vec<u8>,
    ) -> io::Result<Compared> {
        scratch.resize(READ_BYTES, 0);
        while !received.is_empty() {
            let wanted = &mut scratch[..received.len().min(READ_BYTES)];
            let count = self.file.read_at(wanted, offset)?;
            if count == 0 {
                return Ok(Compared::Differs { offset, wanted: None, received: received[0] });
            }
            let (now, later) = received.split_at(count);
            if now != &wanted[..count] {
                let at = now.iter().zip(&wanted[..count]).position(|(one, other)| one != other).unwrap_or(0);
                return Ok(Compared::Differs {
                    offset: offset + at as u64,
                    wanted: Some(wanted[at]),
                    received: now[at],
                });
            }
            received = later;
            offset += count as u64;
        }
        Ok(Compared::Same)
    }
}

/// The file below `folder` that the URL's path names.
fn below(folder: &Path, target: &Target) -> Result<PathBuf, LoadError> {
    let refused = |what: &str| LoadError::Source {
        file: folder.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidInput, format!("{target} names {what}")),
    };
    let path = target.path.split('?').next().unwrap_or_default();
    let decoded = percent_decode_str(path).decode_utf8().map_err(|_| refused("no file: it is not UTF-8"))?;
    let mut file = folder.to_owned();
    for segment in decoded.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
        if segment == ".." || segment.contains('\0') {
            return Err(refused("a file outside of the folder"));
        }
        file.push(segment);
    }
    if decoded.ends_with('/') {
        file.push("index.html");
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_differs_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..200_001u32).map(|number| (number % 251) as u8).collect();
        std::fs::create_dir(folder.path().join("a b")).unwrap();
        std::fs::write(folder.path().join("a b/f"), &bytes).unwrap();
        let target: Target = "https://h/a%20b/f?x".parse().unwrap();
        let source = Source::open(folder.path(), &target).unwrap();
        assert_eq!(source.length_bytes, 200_001);
        let mut scratch = Vec::new();
        for (offset, length) in [(0, 200_001), (7, 70_000), (65_535, 2), (200_000, 1), (9, 0)] {
            let mut part = bytes[offset..offset + length].to_vec();
            assert_eq!(source.compare(offset as u64, &part, &mut scratch).unwrap(), Compared::Same);
            if let Some(last) = part.last_mut() {
                *last ^= 0x80;
                let at = offset + length - 1;
                let expected = Compared::Differs {
                    offset: at as u64,
                    wanted: Some(bytes[at]),
                    received: bytes[at] ^ 0x80,
                };
                assert_eq!(source.compare(offset as u64, &part, &mut scratch).unwrap(), expected);
            }
        }
        let beyond = Compared::Differs { offset: 200_001, wanted: None, received: 2 };
        assert_eq!(source.compare(200_000, &[bytes[200_000], 2], &mut scratch).unwrap(), beyond);
    }

    #[test]
    fn urls_that_name_no_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["missing", "..%2fetc/passwd", "%2e%2e/x", "%ff", "", "%00"] {
            let target: Target = format!("https://h/{path}").parse().unwrap();
            assert!(matches!(Source::open(folder.path(), &target), Err(LoadError::Source { .. })), "{path}");
        }
        let target: Target = "https://h/whatever".parse().unwrap();
        std::fs::write(folder.path().join("one"), "1").unwrap();
        assert_eq!(Source::open(&folder.path().join("one"), &target).unwrap().length_bytes, 1);
    }
}
