//! Attributes as version 4 has them (RFC 8881 section 5).

use super::{set::AttributeSet, status::Stop};
use crate::{
    Attributes, Caller, Entry, FileSystem, Handle, Kind, NAME_LIMIT_BYTES, Space, Time, limits::Limits,
};
use linerate_rpc::xdr::Writer;

pub(super) const SUPPORTED_ATTRIBUTES: u8 = 0;
pub(super) const TYPE: u8 = 1;
pub(super) const HANDLE_EXPIRY: u8 = 2;
pub(super) const CHANGE: u8 = 3;
pub(super) const SIZE: u8 = 4;
pub(super) const LINK_SUPPORT: u8 = 5;
pub(super) const SYMBOLIC_LINK_SUPPORT: u8 = 6;
pub(super) const NAMED_ATTRIBUTES: u8 = 7;
pub(super) const FILE_SYSTEM: u8 = 8;
pub(super) const UNIQUE_HANDLES: u8 = 9;
pub(super) const LEASE_TIME: u8 = 10;
pub(super) const READ_ERROR: u8 = 11;
pub(super) const ACL_SUPPORT: u8 = 13;
pub(super) const CAN_SET_TIME: u8 = 15;
pub(super) const CASE_INSENSITIVE: u8 = 16;
pub(super) const CASE_PRESERVING: u8 = 17;
pub(super) const OWNER_CHANGE_RESTRICTED: u8 = 18;
pub(super) const HANDLE: u8 = 19;
pub(super) const FILE_NUMBER: u8 = 20;
pub(super) const FILES_AVAILABLE: u8 = 21;
pub(super) const FILES_FREE: u8 = 22;
pub(super) const FILES_TOTAL: u8 = 23;
pub(super) const HOMOGENEOUS: u8 = 26;
pub(super) const LARGEST_FILE: u8 = 27;
pub(super) const MOST_LINKS: u8 = 28;
pub(super) const LONGEST_NAME: u8 = 29;
pub(super) const MOST_READ: u8 = 30;
pub(super) const MOST_WRITTEN: u8 = 31;
pub(super) const MODE: u8 = 33;
pub(super) const NO_TRUNCATION: u8 = 34;
pub(super) const LINKS: u8 = 35;
pub(super) const OWNER: u8 = 36;
pub(super) const OWNER_GROUP: u8 = 37;
pub(super) const DEVICE: u8 = 41;
pub(super) const SPACE_AVAILABLE: u8 = 42;
pub(super) const SPACE_FREE: u8 = 43;
pub(super) const SPACE_TOTAL: u8 = 44;
pub(super) const SPACE_USED: u8 = 45;
pub(super) const TIME_ACCESSED: u8 = 47;
const SET_TIME_ACCESSED: u8 = 48;
pub(super) const TIME_STEP: u8 = 51;
pub(super) const TIME_ATTRIBUTES_CHANGED: u8 = 52;
pub(super) const TIME_MODIFIED: u8 = 53;
const SET_TIME_MODIFIED: u8 = 54;
pub(super) const MOUNTED_ON_NUMBER: u8 = 55;
pub(super) const SET_AT_EXCLUSIVE_CREATE: u8 = 75;

/// What this server can tell.
pub(super) const SUPPORTED: AttributeSet = AttributeSet::of(&[
    SUPPORTED_ATTRIBUTES,
    TYPE,
    HANDLE_EXPIRY,
    CHANGE,
    SIZE,
    LINK_SUPPORT,
    SYMBOLIC_LINK_SUPPORT,
    NAMED_ATTRIBUTES,
    FILE_SYSTEM,
    UNIQUE_HANDLES,
    LEASE_TIME,
    READ_ERROR,
    ACL_SUPPORT,
    CAN_SET_TIME,
    CASE_INSENSITIVE,
    CASE_PRESERVING,
    OWNER_CHANGE_RESTRICTED,
    HANDLE,
    FILE_NUMBER,
    FILES_AVAILABLE,
    FILES_FREE,
    FILES_TOTAL,
    HOMOGENEOUS,
    LARGEST_FILE,
    MOST_LINKS,
    LONGEST_NAME,
    MOST_READ,
    MOST_WRITTEN,
    MODE,
    NO_TRUNCATION,
    LINKS,
    OWNER,
    OWNER_GROUP,
    DEVICE,
    SPACE_AVAILABLE,
    SPACE_FREE,
    SPACE_TOTAL,
    SPACE_USED,
    TIME_ACCESSED,
    TIME_STEP,
    TIME_ATTRIBUTES_CHANGED,
    TIME_MODIFIED,
    MOUNTED_ON_NUMBER,
    SET_AT_EXCLUSIVE_CREATE,
]);

/// What can only be set, and is not to be asked for.
pub(super) const WRITE_ONLY: AttributeSet = AttributeSet::of(&[SET_TIME_ACCESSED, SET_TIME_MODIFIED]);

/// What is of the file system that an object is in.
pub(super) const SPACE: AttributeSet =
    AttributeSet::of(&[FILES_AVAILABLE, FILES_FREE, FILES_TOTAL, SPACE_AVAILABLE, SPACE_FREE, SPACE_TOTAL]);

/// An object of which attributes are asked, with what is needed to tell them.
pub(super) struct Subject<'a, F: FileSystem> {
    pub(super) files: &'a F,
    pub(super) caller: &'a Caller<'a>,
    pub(super) object: &'a F::Object,
    pub(super) limits: &'a Limits,
}

impl<F: FileSystem> Subject<'_, F> {
    /// Writes what is wanted and can be told (`fattr4`).
    pub(super) fn write(&self, wanted: AttributeSet, writer: &mut Writer) -> Result<(), Stop> {
        let told = wanted.and(SUPPORTED);
        let attributes = self.files.attributes(self.caller, self.object)?;
        let space = if told.and(SPACE).is_empty() {
            Space::default()
        } else {
            self.files.space(self.caller, self.object)?
        };
        let handle = told.has(HANDLE).then(|| self.files.handle(self.object));
        Known { attributes, handle, space, limits: self.limits }.write(told, writer);
        Ok(())
    }
}

/// What is known of an object.
pub(super) struct Known<'a> {
    pub(super) attributes: Attributes,
    /// Where it is asked for.
    pub(super) handle: Option<Handle>,
    pub(super) space: Space,
    pub(super) limits: &'a Limits,
}

impl Known<'_> {
    /// Writes what of it is wanted.
    pub(super) fn write(&self, wanted: AttributeSet, writer: &mut Writer) {
        let told = wanted.and(SUPPORTED);
        told.write(writer);
        let length = writer.reserve_u32();
        let before = writer.length_bytes();
        for number in told.numbers() {
            self.value(number, writer);
        }
        let length_bytes = writer.length_bytes() - before;
        // Some hundred bytes.
        writer.fill(length, length_bytes as u32);
    }

    fn value(&self, number: u8, writer: &mut Writer) {
        let Self { attributes, space, .. } = self;
        match number {
            SUPPORTED_ATTRIBUTES => SUPPORTED.write(writer),
            TYPE => writer.u32(kind_number(attributes.kind)),
            // FH4_PERSISTENT; NFS4_OK
            HANDLE_EXPIRY | READ_ERROR => writer.u32(0),
            CHANGE => writer.u64(attributes.change),
            SIZE => writer.u64(attributes.size_bytes),
            LINK_SUPPORT
            | SYMBOLIC_LINK_SUPPORT
            | UNIQUE_HANDLES
            | CASE_PRESERVING
            | HOMOGENEOUS
            | NO_TRUNCATION
            | OWNER_CHANGE_RESTRICTED => writer.boolean(true),
            NAMED_ATTRIBUTES | CASE_INSENSITIVE | CAN_SET_TIME => writer.boolean(false),
            FILE_SYSTEM => {
                writer.u64(attributes.file_system.major);
                writer.u64(attributes.file_system.minor);
            }
            LEASE_TIME => writer.u32(u32::try_from(self.limits.lease.as_secs()).unwrap_or(u32::MAX)),
            // None.
            ACL_SUPPORT => writer.u32(0),
            HANDLE => writer.opaque(self.handle.as_ref().map_or(&[], Handle::as_bytes)),
            FILE_NUMBER => writer.u64(attributes.number),
            FILES_AVAILABLE => writer.u64(space.available_files),
            FILES_FREE => writer.u64(space.free_files),
            FILES_TOTAL => writer.u64(space.total_files),
            LARGEST_FILE => writer.u64(LARGEST_FILE_BYTES),
            MOST_LINKS => writer.u32(LINKS_LIMIT),
            LONGEST_NAME => writer.u32(NAME_LIMIT_BYTES as u32),
            MOST_READ => writer.u64(self.limits.read_bytes.into()),
            // Nothing is ever written; clients make no sense of zero.
            MOST_WRITTEN => writer.u64((self.limits.call_bytes / 2).into()),
            MODE => writer.u32(attributes.mode & MODE_BITS),
            LINKS => writer.u32(attributes.links),
            OWNER => decimal(attributes.user, writer),
            OWNER_GROUP => decimal(attributes.group, writer),
            DEVICE => {
                writer.u32(attributes.device.major);
                writer.u32(attributes.device.minor);
            }
            SPACE_AVAILABLE => writer.u64(space.available_bytes),
            SPACE_FREE => writer.u64(space.free_bytes),
            SPACE_TOTAL => writer.u64(space.total_bytes),
            SPACE_USED => writer.u64(attributes.used_bytes),
            TIME_ACCESSED => time(attributes.accessed, writer),
            TIME_STEP => time(Time { seconds: 0, nanoseconds: 1 }, writer),
            TIME_ATTRIBUTES_CHANGED => time(attributes.attributes_changed, writer),
            TIME_MODIFIED => time(attributes.modified, writer),
            MOUNTED_ON_NUMBER => writer.u64(attributes.mounted_on_number),
            SET_AT_EXCLUSIVE_CREATE => AttributeSet::default().write(writer),
            // Not of SUPPORTED.
            _ => {}
        }
    }
}

/// A user's or group's number as a string of digits (RFC 8881 section 5.9). Without memory of its own: a listing has thousands.
fn decimal(mut number: u32, writer: &mut Writer) {
    let mut digits = [0; 10];
    let mut first = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        first -= 1;
        if number == 0 {
            break;
        }
    }
    writer.opaque(digits.get(first..).unwrap_or_default());
}

/// The largest length of a file that Linux has.
pub(crate) const LARGEST_FILE_BYTES: u64 = i64::MAX as u64;
/// More names of an object than file systems let it have are not promised to be counted.
pub(crate) const LINKS_LIMIT: u32 = 65_000;
/// The bits of a mode that are permissions.
pub(crate) const MODE_BITS: u32 = 0o7777;

/// Writes attributes of an entry whose own cannot be told.
pub(super) fn write_error(status: super::status::Status, writer: &mut Writer) {
    AttributeSet::of(&[READ_ERROR]).write(writer);
    writer.u32(4);
    writer.u32(status.number());
}

/// Writes what is wanted of an entry, if a listing knows it without looking the entry up. Whether it does.
pub(super) fn write_listed(wanted: AttributeSet, entry: &Entry, writer: &mut Writer) -> bool {
    let kind = entry.kind.filter(|_| wanted.has(TYPE));
    if !wanted.without(LISTED).is_empty() || wanted.has(TYPE) && kind.is_none() {
        return false;
    }
    wanted.write(writer);
    let has_error = wanted.has(READ_ERROR);
    let number = wanted.has(MOUNTED_ON_NUMBER).then_some(entry.number);
    writer.u32(4 * u32::from(kind.is_some()) + 4 * u32::from(has_error) + 8 * u32::from(number.is_some()));
    // In the order of their numbers (RFC 8881 section 3.3.9).
    if let Some(kind) = kind {
        writer.u32(kind_number(kind));
    }
    if has_error {
        writer.u32(0);
    }
    if let Some(number) = number {
        writer.u64(number);
    }
    true
}

/// What a listing may know of an entry without looking it up.
pub(super) const LISTED: AttributeSet = AttributeSet::of(&[TYPE, READ_ERROR, MOUNTED_ON_NUMBER]);

/// `nfs_ftype4`, whose first seven numbers are `ftype3`'s.
pub(crate) const fn kind_number(kind: Kind) -> u32 {
    match kind {
        Kind::File => 1,
        Kind::Directory => 2,
        Kind::BlockDevice => 3,
        Kind::CharacterDevice => 4,
        Kind::SymbolicLink => 5,
        Kind::Socket => 6,
        Kind::Pipe => 7,
    }
}

/// `nfstime4`
fn time(time: Time, writer: &mut Writer) {
    writer.i64(time.seconds);
    writer.u32(time.nanoseconds);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_users_are_told_in_digits() {
        for number in [0, 9, 10, 1000, 65_534, u32::MAX] {
            let (mut told, mut expected) = (Writer::default(), Writer::default());
            decimal(number, &mut told);
            expected.opaque(number.to_string().as_bytes());
            assert_eq!(told.as_bytes(), expected.as_bytes());
        }
    }
}
