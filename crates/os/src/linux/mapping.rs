//! Flags of mappings that Linux alone has.

use rustix::mm::MapFlags;

/// The mapping counts for nothing where the system limits what it promises.
pub(crate) const RESERVES_NOTHING: MapFlags = MapFlags::NORESERVE;
