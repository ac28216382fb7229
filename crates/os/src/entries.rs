//! Entries of a directory in the kernel's own order, with its own cookies: a directory can be read on from any of them, by another
//! descriptor, too.

pub use crate::system::entries::Entries;
