//! What the protocol asks of the files that it serves.

use crate::{Attributes, Caller, Handle, Kind, Name, Space};
use std::error::Error;
use std::fmt;

/// The files that are served: exports, below a root that lists them.
///
/// The tree that a client sees has one root ([`Self::root`]). Which exports are below it, and whether the root is itself an export or a
/// pseudo file system that lists them (RFC 8881 section 7.3), is the implementation's business, and may differ from client to
/// client. Where one file system ends and another begins is told by [`Attributes::file_system`] alone.
///
/// # Calls are evaluated more than once
/// The protocol is read-only, so any sequence of calls of these methods may be repeated. A method that would have to wait for a
/// disk, while [`Caller::waiting`] forbids it, says [`Fault::WouldWait`]. What has been evaluated so far is thrown away, and all
/// of it is evaluated again where waiting is allowed. Methods change nothing that a client could see.
///
/// # Who may see what
/// Every method that is given a [`Caller`] decides for itself whether this client may have what it asks for. A handle is no proof:
/// [`Self::resolve`] refuses one of an export that this client may not use (any more), and methods that take an object check what the
/// user may do with it. Rules about users (squashing, permission by AUTH_SYS numbers) are the implementation's.
///
/// # Threads
/// The protocol needs nothing of these types. A server that evaluates calls on several threads needs `Self: Send + Sync`, and
/// [`Self::File`] to be `Send`. Objects never leave the evaluation that has made them.
pub trait FileSystem {
    /// An object, found: as long as it is kept, methods reach the same file or directory by it, whatever happens to its
    /// names. Cloned often: an `Arc` of an open descriptor, for example.
    type Object: Clone;

    /// A file to send ranges of. It goes into the reply ([`Opened::file`]), and the protocol never looks at it.
    type File;

    /// The root of the tree (PUTROOTFH).
    ///
    /// # Errors
    /// [`Fault::WrongSecurity`] and [`Fault::Denied`], if this client may see nothing at all.
    fn root(&self, caller: &Caller<'_>) -> Result<Self::Object, Fault>;

    /// The object that a client's handle names. `handle` is whatever the client sent, 0 to [`Handle::LIMIT_BYTES`] bytes.
    ///
    /// # Errors
    /// [`Fault::BadHandle`], if this server cannot have made it (its authenticator is wrong);
    /// [`Fault::Stale`], if it has, and the object is gone, or its export is.
    fn resolve(&self, caller: &Caller<'_>, handle: &[u8]) -> Result<Self::Object, Fault>;

    /// The object's handle: authenticated, so that a client cannot make one up, and always the same for the same object, across restarts.
    /// Version 3 has room for [`Handle::V3_LIMIT_BYTES`] only: it answers `NFS3ERR_SERVERFAULT` for a longer one.
    fn handle(&self, object: &Self::Object) -> Handle;

    /// The object of this name in `directory`. Not followed, if it is a symbolic link. A name of an export gives the export's
    /// root.
    ///
    /// # Errors
    /// [`Fault::NotFound`]; [`Fault::NotDirectory`], if `directory` is none; [`Fault::Denied`], if the user may not search it;
    /// [`Fault::NameTooLong`].
    fn look_up(
        &self,
        caller: &Caller<'_>,
        directory: &Self::Object,
        name: Name<'_>,
    ) -> Result<Self::Object, Fault>;

    /// The directory above `directory`. Above an export's root that is the directory in which the root of the tree leads to it: never one of the
    /// server's that is not exported.
    ///
    /// # Errors
    /// [`Fault::NotFound`] for the root of the tree; [`Fault::NotDirectory`].
    fn parent(&self, caller: &Caller<'_>, directory: &Self::Object) -> Result<Self::Object, Fault>;

    /// What is known about the object now.
    ///
    /// # Errors
    /// [`Fault::Stale`], if it is gone.
    fn attributes(&self, caller: &Caller<'_>, object: &Self::Object) -> Result<Attributes, Fault>;

    /// What a listing tells of the entry of this name in `directory`: [`Self::look_up`], [`Self::attributes`] and [`Self::handle`] in
    /// one. A file system may have a shorter way: thousands of entries are asked for at a time.
    ///
    /// # Errors
    /// As [`Self::look_up`] and [`Self::attributes`].
    fn describe(
        &self,
        caller: &Caller<'_>,
        directory: &Self::Object,
        name: Name<'_>,
    ) -> Result<Described, Fault> {
        let object = self.look_up(caller, directory, name)?;
        Ok(Described { attributes: self.attributes(caller, &object)?, handle: self.handle(&object) })
    }

    /// Room in the file system that the object is in.
    ///
    /// # Errors
    /// As [`Self::attributes`].
    fn space(&self, caller: &Caller<'_>, object: &Self::Object) -> Result<Space, Fault>;

    /// What the user may do with the object. Nobody may write, so that is not asked.
    ///
    /// # Errors
    /// As [`Self::attributes`]. That the user may do nothing is no error.
    fn access(&self, caller: &Caller<'_>, object: &Self::Object) -> Result<Access, Fault>;

    /// Opens a file for reading, as every READ does anew: what the caches of the implementation hold should make this cheap.
    ///
    /// Whether the file's *content* is cached is no question here: a cold file is opened all the same.
    ///
    /// # Errors
    /// [`Fault::IsDirectory`]; [`Fault::NotFile`] for a symbolic link, a device, a socket or a pipe (which is never opened);
    /// [`Fault::Denied`].
    fn open(&self, caller: &Caller<'_>, object: &Self::Object) -> Result<Opened<Self::File>, Fault>;

    /// The text of a symbolic link, as it is.
    ///
    /// # Errors
    /// [`Fault::NotLink`], if it is none.
    fn read_link(&self, caller: &Caller<'_>, object: &Self::Object) -> Result<Vec<u8>, Fault>;

    /// Entries of a directory, without `.` and `..`. In any order, which need only stay the same as far as [`Entry::cookie`] says.
    ///
    /// # Errors
    /// [`Fault::NotDirectory`]; [`Fault::Denied`], if the user may not read it; [`Fault::BadCookie`], if nothing can be said about
    /// what follows [`ListingRequest::after`] any more (the client begins again). A directory that only has changed is no reason for that.
    fn list(
        &self,
        caller: &Caller<'_>,
        directory: &Self::Object,
        request: ListingRequest,
    ) -> Result<Listing, Fault>;

    /// The exports that this client may mount, as paths from the root of the tree (`/media`; `/` if the root itself is one). For
    /// `showmount -e` alone (MOUNT's EXPORT). At most the first thousand are told to the client.
    ///
    /// # Errors
    /// As [`Self::root`].
    fn exports(&self, caller: &Caller<'_>) -> Result<Vec<Vec<u8>>, Fault>;
}

/// What a user may do with an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Read a file's content, or a directory's entries.
    pub read: bool,
    /// Look up names in a directory.
    pub look_up: bool,
    /// Run a file.
    pub execute: bool,
}

/// What a listing tells of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// As [`FileSystem::attributes`] tells them.
    pub attributes: Attributes,
    /// As [`FileSystem::handle`] makes it.
    pub handle: Handle,
}

/// A file that may be read.
#[derive(Clone, Copy, Debug)]
pub struct Opened<F> {
    /// What to send ranges of.
    pub file: F,
    /// How long it is now. A READ is cut to this, and its reply is announced by it: a file that turns out to be shorter when its
    /// range is sent ends the connection (INV-FILE-1).
    pub size_bytes: u64,
}

/// Eight bytes that a listing's cookies belong to (`cookieverf`).
pub type Verifier = [u8; 8];

/// Which entries of a directory are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListingRequest {
    /// Those that follow the entry with this cookie. Zero: from the beginning on.
    pub after: u64,
    /// The verifier that came with that cookie: [`Listing::verifier`]. Of no meaning if `after` is zero, and zeros from clients
    /// that keep none.
    pub verifier: Verifier,
    /// At most so many: at least one. Fewer are no sign of the end.
    pub limit_entries: usize,
}

/// A part of a directory's entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// What the cookies belong to. All zeros, if they need nothing.
    pub verifier: Verifier,
    /// The entries.
    pub entries: Vec<Entry>,
    /// The last of these is the directory's last. If there are none, this must be so.
    pub is_end: bool,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name. What is no [`Name`] is not shown to the client.
    pub name: Vec<u8>,
    /// Where the listing goes on behind it. Not 0, 1 or 2, which mean the beginning, `.` and `..` (RFC 8881 section 18.23.3). It
    /// should find its place again in a directory that was changed meanwhile: no entry that was there all the time is left out
    /// or told twice. It is kept by clients across a server's restart.
    pub cookie: u64,
    /// The object's number ([`Attributes::mounted_on_number`]), as `readdir` has it.
    pub number: u64,
    /// What the object is, if the directory tells it. [`FileSystem::describe`] is asked otherwise, which may find that the entry is
    /// not to be shown. Linux' client asks for it with every name since 6.8.
    pub kind: Option<Kind>,
}

/// Why a file system does not do what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Not without waiting for a disk: all is asked again where [`Caller::waiting`] allows that.
    WouldWait,
    /// No object of that name.
    NotFound,
    /// The object that the handle named is gone.
    Stale,
    /// Bytes that are no handle of this server's.
    BadHandle,
    /// The user may not do that, or the client may not at all.
    Denied,
    /// The client may, but not on such a connection: it needs TLS, or a certificate.
    WrongSecurity,
    /// A directory was needed.
    NotDirectory,
    /// A directory was not expected.
    IsDirectory,
    /// A file with content was needed.
    NotFile,
    /// A symbolic link was needed.
    NotLink,
    /// Longer than this file system takes.
    NameTooLong,
    /// A cookie that leads nowhere any more.
    BadCookie,
    /// Not now: the server has run out of something (descriptors, memory). The client asks again, later.
    Busy,
    /// The disk, or what takes its place, has failed.
    Failed,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::WouldWait => "it is not in the kernel's caches",
            Self::NotFound => "there is nothing of that name",
            Self::Stale => "the object is gone",
            Self::BadHandle => "the handle is not this server's",
            Self::Denied => "not permitted",
            Self::WrongSecurity => "the connection needs TLS, or a client certificate",
            Self::NotDirectory => "it is no directory",
            Self::IsDirectory => "it is a directory",
            Self::NotFile => "it is no regular file",
            Self::NotLink => "it is no symbolic link",
            Self::NameTooLong => "the name is too long",
            Self::BadCookie => "the listing cannot be continued from there",
            Self::Busy => "the server has run out of something",
            Self::Failed => "the disk has failed",
        })
    }
}

impl Error for Fault {}
