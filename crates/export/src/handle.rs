//! What a file handle says, and its bytes.
//!
//! ```text
//!  0        version, 1
//!  1..17    authenticator of all that follows
//! 17..21    export
//! 21..29    inode number
//! 29..33    tag of the time of birth
//! 33        ancestors that are named
//! 34..      two bytes of each, the export's root first
//! ```
//! At most 64 bytes, so that version 3 of the protocol can have it, too.

use crate::key::{AUTHENTICATOR_BYTES, HandleKey};
use linerate_nfs::Handle;

const VERSION: u8 = 1;
const FIXED_BYTES: usize = 34;
/// Ancestors that a handle names. The way to an object that is deeper is searched for from there on.
pub(crate) const ANCESTORS_LIMIT: usize = (Handle::V3_LIMIT_BYTES - FIXED_BYTES) / 2;

/// Which object of which export: the same as long as the object exists, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The export's number; 0 is the directory that lists the exports.
    pub(crate) export: u32,
    /// The inode number; 0 is the export's root, whichever directory that is.
    pub(crate) inode: u64,
    /// Tells an inode from the one that had its number before; 0 where the file system does not know when it was made.
    pub(crate) birth: u32,
}

/// What a handle says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) key: Key,
    /// Of the directories between the export's root and the object, the topmost first.
    pub(crate) ancestors: Vec<u16>,
    /// Whether these are all.
    pub(crate) is_whole: bool,
}

/// A few bits of a directory's inode number, which lead a search.
pub(crate) fn ancestor_tag(inode: u64) -> u16 {
    let mixed = inode.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    u16::try_from(mixed >> 48).unwrap_or_default()
}

impl Ticket {
    /// The handle. `None` never: it has a bound that handles have room for.
    pub(crate) fn seal(&self, key: &HandleKey) -> Option<Handle> {
        let mut said = Vec::with_capacity(Handle::V3_LIMIT_BYTES);
        said.extend(self.key.export.to_be_bytes());
        said.extend(self.key.inode.to_be_bytes());
        said.extend(self.key.birth.to_be_bytes());
        let ancestors = self.ancestors.get(..ANCESTORS_LIMIT).unwrap_or(&self.ancestors);
        let is_whole = self.is_whole && ancestors.len() == self.ancestors.len();
        // At most 15: the highest bit is free.
        said.push(u8::try_from(ancestors.len()).unwrap_or_default() | if is_whole { 0 } else { 0x80 });
        said.extend(ancestors.iter().flat_map(|tag| tag.to_be_bytes()));
        let mut bytes = vec![VERSION];
        bytes.extend(key.authenticator(&said));
        bytes.extend(said);
        Handle::new(&bytes)
    }

    /// What the handle says; `None` if this server has not made it.
    pub(crate) fn open(key: &HandleKey, handle: &[u8]) -> Option<Self> {
        let (&version, rest) = handle.split_first()?;
        let (authenticator, said) = rest.split_at_checked(AUTHENTICATOR_BYTES)?;
        if version != VERSION || !key.is_authentic(said, authenticator) {
            return None;
        }
        let (export, said) = said.split_first_chunk()?;
        let (inode, said) = said.split_first_chunk()?;
        let (birth, said) = said.split_first_chunk()?;
        let (count, said) = said.split_first()?;
        let ancestors: Vec<u16> = said.as_chunks().0.iter().copied().map(u16::from_be_bytes).collect();
        if usize::from(count & 0x7f) != ancestors.len() || said.len() != 2 * ancestors.len() {
            return None;
        }
        let key = Key {
            export: u32::from_be_bytes(*export),
            inode: u64::from_be_bytes(*inode),
            birth: u32::from_be_bytes(*birth),
        };
        Some(Self { key, ancestors, is_whole: count & 0x80 == 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(ancestors: usize) -> Ticket {
        Ticket {
            key: Key { export: 7, inode: u64::MAX - 3, birth: 99 },
            ancestors: (0..ancestors).map(|number| ancestor_tag(number as u64)).collect(),
            is_whole: true,
        }
    }

    #[test]
    fn what_was_sealed_is_opened_and_fits_version_3() {
        let key = HandleKey::ephemeral().unwrap();
        for ancestors in [0, 1, ANCESTORS_LIMIT] {
            let handle = ticket(ancestors).seal(&key).unwrap();
            assert!(handle.as_bytes().len() <= Handle::V3_LIMIT_BYTES);
            assert_eq!(Ticket::open(&key, handle.as_bytes()), Some(ticket(ancestors)));
        }
        let deep = Ticket::open(&key, ticket(ANCESTORS_LIMIT + 1).seal(&key).unwrap().as_bytes()).unwrap();
        assert_eq!((deep.ancestors.len(), deep.is_whole), (ANCESTORS_LIMIT, false));
    }

    /// INV-EXPORT-2.
    #[test]
    fn no_changed_byte_and_no_strangers_handle_is_taken() {
        let key = HandleKey::ephemeral().unwrap();
        let handle = ticket(3).seal(&key).unwrap();
        let bytes = handle.as_bytes();
        for index in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.to_vec();
                changed[index] ^= 1 << bit;
                assert_eq!(Ticket::open(&key, &changed), None, "bit {bit} of byte {index}");
            }
            assert_eq!(Ticket::open(&key, &bytes[..index]), None);
        }
        assert_eq!(Ticket::open(&key, &[bytes, &[0]].concat()), None);
        assert_eq!(Ticket::open(&HandleKey::ephemeral().unwrap(), bytes), None);
    }

    #[test]
    fn authentic_nonsense_is_no_handle() {
        let key = HandleKey::ephemeral().unwrap();
        for said in [&b""[..], &[0; 16], &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 1, 1]] {
            let bytes = [&[VERSION][..], &key.authenticator(said), said].concat();
            assert_eq!(Ticket::open(&key, &bytes), None);
        }
    }
}
