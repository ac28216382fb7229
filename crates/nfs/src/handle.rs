//! What a client keeps to name an object by.

use std::fmt;

/// A file handle: what [`crate::FileSystem::handle`] makes of an object, and a client sends back. Compared byte by byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    length_bytes: u8,
    bytes: [u8; Self::LIMIT_BYTES],
}

impl Handle {
    /// The longest handle of NFSv4 (`NFS4_FHSIZE`, RFC 8881 section 3.1).
    pub const LIMIT_BYTES: usize = 128;
    /// The longest handle of NFSv3 (`NFS3_FHSIZE`, RFC 1813 section 2.4).
    pub const V3_LIMIT_BYTES: usize = 64;

    /// `None`, if these are more than [`Self::LIMIT_BYTES`], or none at all: Linux' client takes no empty handle.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return None;
        }
        let mut handle =
            Self { length_bytes: u8::try_from(bytes.len()).ok()?, bytes: [0; Self::LIMIT_BYTES] };
        handle.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(handle)
    }

    /// The handle's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length_bytes.into()).unwrap_or_default()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Handle({})", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_keeps_its_bytes_up_to_the_limit() {
        for length in [1, 63, 64, Handle::LIMIT_BYTES] {
            let bytes: Vec<u8> = (1..=length).map(|byte| byte as u8).collect();
            assert_eq!(Handle::new(&bytes).unwrap().as_bytes(), bytes);
        }
        for length in [0, Handle::LIMIT_BYTES + 1, 255, 256, 1000] {
            assert_eq!(Handle::new(&vec![7; length]), None);
        }
    }
}
