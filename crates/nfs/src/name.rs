//! One component of a path.

/// The longest name of a file, in bytes: what Linux file systems take (`NAME_MAX`).
pub const NAME_LIMIT_BYTES: usize = 255;

/// A name within a directory, as a client sent it: 1 to [`NAME_LIMIT_BYTES`] bytes, none of them a slash or zero, and neither
/// `.` nor `..`. The bytes need not be UTF-8: Linux' file systems and its client take any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<'a>(&'a [u8]);

/// Why bytes are no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// No byte at all.
    Empty,
    /// More than [`NAME_LIMIT_BYTES`].
    TooLong,
    /// A slash or a zero byte.
    Character,
    /// `.`: the directory itself.
    Itself,
    /// `..`: the directory above.
    Parent,
}

impl<'a> Name<'a> {
    /// # Errors
    /// What is wrong with it.
    pub fn new(bytes: &'a [u8]) -> Result<Self, NameError> {
        match bytes {
            b"" => Err(NameError::Empty),
            b"." => Err(NameError::Itself),
            b".." => Err(NameError::Parent),
            _ if bytes.len() > NAME_LIMIT_BYTES => Err(NameError::TooLong),
            _ if bytes.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(NameError::Character),
            _ => Ok(Self(bytes)),
        }
    }

    /// The name's bytes.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_component() {
        let longest = [b'n'; NAME_LIMIT_BYTES];
        for name in [b"a".as_slice(), b"...", b".hidden", b"a b", b"\xff\xfe", b"-\n", &longest] {
            assert_eq!(Name::new(name).map(Name::as_bytes), Ok(name));
        }
        for (bytes, error) in [
            (b"".as_slice(), NameError::Empty),
            (b".", NameError::Itself),
            (b"..", NameError::Parent),
            (b"/", NameError::Character),
            (b"a/b", NameError::Character),
            (b"a\0", NameError::Character),
            (&[b'n'; NAME_LIMIT_BYTES + 1], NameError::TooLong),
        ] {
            assert_eq!(Name::new(bytes), Err(error), "{}", bytes.escape_ascii());
        }
    }
}
