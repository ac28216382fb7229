//! What is known about an object without reading it. The same for version 3 and version 4 of the protocol.

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file with content.
    File,
    /// A directory.
    Directory,
    /// A device that is read in blocks.
    BlockDevice,
    /// A device that is read in characters.
    CharacterDevice,
    /// A symbolic link.
    SymbolicLink,
    /// A socket.
    Socket,
    /// A named pipe.
    Pipe,
}

/// A moment: seconds since 1970-01-01T00:00:00Z, and nanoseconds (0 to 999,999,999) that are added to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Whole seconds; negative before 1970.
    pub seconds: i64,
    /// The rest, always forward.
    pub nanoseconds: u32,
}

/// The file system that an object is in. Clients take a directory whose identifier is another than its parent's for a mount point,
/// so each export and the pseudo root have one of their own. It stays the same across restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileSystemId {
    /// First half. Version 3 has the XOR of both.
    pub major: u64,
    /// Second half.
    pub minor: u64,
}

/// The numbers of a device, zero for anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The driver.
    pub major: u32,
    /// The device.
    pub minor: u32,
}

/// What is known about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// What it is.
    pub kind: Kind,
    /// Permissions, set-user-id, set-group-id and sticky bit: the lower 12 bits of `st_mode`.
    pub mode: u32,
    /// Names that it has.
    pub links: u32,
    /// The owner's number.
    pub user: u32,
    /// The number of the owner's group.
    pub group: u32,
    /// Its length. Of a symbolic link the length of its text.
    pub size_bytes: u64,
    /// What it takes on the disk.
    pub used_bytes: u64,
    /// Which device it is.
    pub device: Device,
    /// The file system that it is in.
    pub file_system: FileSystemId,
    /// Its number, unique in its file system and the same as long as the object exists: the inode number.
    pub number: u64,
    /// For the root of an export, the number that its parent's listing has for it; for everything else `number`.
    pub mounted_on_number: u64,
    /// A value that is another one whenever content or attributes have changed. Clients throw away what they have cached when it differs
    /// from the one that they have. The time of the last change in nanoseconds does, where the file system has no better.
    pub change: u64,
    /// When it was last read.
    pub accessed: Time,
    /// When its content was last changed.
    pub modified: Time,
    /// When its attributes were last changed.
    pub attributes_changed: Time,
}

/// Room in a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Its size.
    pub total_bytes: u64,
    /// What is unused.
    pub free_bytes: u64,
    /// What of that an ordinary user may use.
    pub available_bytes: u64,
    /// How many files it can hold.
    pub total_files: u64,
    /// How many more it can hold.
    pub free_files: u64,
    /// How many of these an ordinary user may make.
    pub available_files: u64,
}
