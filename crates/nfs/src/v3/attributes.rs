//! Attributes as version 3 has them (`fattr3`, RFC 1813 section 2.6).

use crate::{
    Attributes, Time,
    v4::attributes::{MODE_BITS, kind_number},
};
use linerate_rpc::xdr::Writer;

/// `fattr3`
pub(super) fn write(attributes: &Attributes, writer: &mut Writer) {
    writer.u32(kind_number(attributes.kind));
    writer.u32(attributes.mode & MODE_BITS);
    writer.u32(attributes.links);
    writer.u32(attributes.user);
    writer.u32(attributes.group);
    writer.u64(attributes.size_bytes);
    writer.u64(attributes.used_bytes);
    writer.u32(attributes.device.major);
    writer.u32(attributes.device.minor);
    writer.u64(attributes.file_system.major ^ attributes.file_system.minor);
    writer.u64(attributes.number);
    for moment in [attributes.accessed, attributes.modified, attributes.attributes_changed] {
        time(moment, writer);
    }
}

/// `post_op_attr`
pub(super) fn write_if_known(attributes: Option<&Attributes>, writer: &mut Writer) {
    writer.boolean(attributes.is_some());
    if let Some(attributes) = attributes {
        write(attributes, writer);
    }
}

/// `nfstime3`, which begins in 1970 and ends in 2106.
fn time(time: Time, writer: &mut Writer) {
    let seconds = time.seconds.clamp(0, u32::MAX.into());
    writer.u32(u32::try_from(seconds).unwrap_or(u32::MAX));
    writer.u32(time.nanoseconds);
}
