//! Flags of mappings: FreeBSD reserves nothing for a private mapping that is only read.

use rustix::mm::MapFlags;

/// The mapping counts for nothing where the system limits what it promises.
pub(crate) const RESERVES_NOTHING: MapFlags = MapFlags::empty();
