//! Operations on the current object that open nothing: handles, names, attributes, permissions, links.

use super::{
    attributes::{READ_ERROR, SUPPORTED, WRITE_ONLY},
    evaluate::Evaluation,
    set::AttributeSet,
    status::{Status, Stop},
};
use crate::{Fault, FileSystem, Handle, Kind, Name, NameError};
use linerate_rpc::xdr::Writer;

const ACCESS_READ: u32 = 0x1;
const ACCESS_LOOK_UP: u32 = 0x2;
const ACCESS_EXECUTE: u32 = 0x20;
/// The three above, and what would write: MODIFY, EXTEND, DELETE. Nobody may do these, which is certain.
const ACCESS_KNOWN: u32 = 0x3f;

const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;

/// The longest attributes that a client may ask to be compared, in bytes.
const VERIFIED_LIMIT_BYTES: usize = 4096;

impl<F: FileSystem> Evaluation<'_, F> {
    pub(super) fn put_root(&mut self) -> Result<(), Stop> {
        self.current = Some(self.files.root(self.caller)?);
        Ok(())
    }

    pub(super) fn put_handle(&mut self) -> Result<(), Stop> {
        let handle = self.reader.opaque(Handle::LIMIT_BYTES)?;
        self.current = Some(self.files.resolve(self.caller, handle)?);
        Ok(())
    }

    pub(super) fn handle(&mut self) -> Result<(), Stop> {
        let handle = self.files.handle(self.object()?);
        self.draft.bytes.opaque(handle.as_bytes());
        Ok(())
    }

    pub(super) fn save(&mut self) -> Result<(), Stop> {
        self.saved = Some(self.object()?.clone());
        Ok(())
    }

    pub(super) fn restore(&mut self) -> Result<(), Stop> {
        self.current = Some(self.saved.clone().ok_or(Status::NoFileHandle)?);
        Ok(())
    }

    pub(super) fn look_up(&mut self) -> Result<(), Stop> {
        self.current = Some(self.named()?);
        Ok(())
    }

    /// The object of the name that follows in the current directory.
    pub(super) fn named(&mut self) -> Result<F::Object, Stop> {
        let bytes = self.reader.opaque(self.reader.rest().len())?;
        let directory = self.object()?;
        let name = Name::new(bytes).map_err(|error| match error {
            NameError::Empty => Status::Invalid,
            NameError::TooLong => Status::NameTooLong,
            NameError::Character => Status::BadCharacter,
            NameError::Itself | NameError::Parent => Status::BadName,
        })?;
        match self.files.look_up(self.caller, directory, name) {
            Err(Fault::NotDirectory) => Err(self.no_directory()?.into()),
            found => Ok(found?),
        }
    }

    pub(super) fn look_up_parent(&mut self) -> Result<(), Stop> {
        self.current = Some(match self.files.parent(self.caller, self.object()?) {
            Err(Fault::NotDirectory) => return Err(self.no_directory()?.into()),
            parent => parent?,
        });
        Ok(())
    }

    /// What is said of an object where a directory is needed.
    pub(super) fn no_directory(&self) -> Result<Status, Stop> {
        let is_link = self.kind(self.object()?)? == Kind::SymbolicLink;
        Ok(if is_link { Status::SymbolicLink } else { Status::NotDirectory })
    }

    /// What is said of an object where a regular file is needed.
    pub(super) fn no_file(&self, object: &F::Object) -> Result<Status, Stop> {
        Ok(match self.kind(object)? {
            Kind::SymbolicLink => Status::SymbolicLink,
            Kind::Directory => Status::IsDirectory,
            _ => Status::WrongType,
        })
    }

    fn kind(&self, object: &F::Object) -> Result<Kind, Fault> {
        Ok(self.files.attributes(self.caller, object)?.kind)
    }

    pub(super) fn attributes(&mut self) -> Result<(), Stop> {
        let wanted = AttributeSet::read(&mut self.reader)?;
        if !wanted.and(WRITE_ONLY).is_empty() {
            return Err(Status::Invalid.into());
        }
        let mut writer = std::mem::take(&mut self.draft.bytes);
        let result =
            self.subject().map_err(Stop::from).and_then(|subject| subject.write(wanted, &mut writer));
        self.draft.bytes = writer;
        result
    }

    /// VERIFY and NVERIFY: `otherwise` is what the one says of attributes that differ, and the other of those that are the same.
    pub(super) fn verify(&mut self, otherwise: Status) -> Result<(), Stop> {
        let asked = AttributeSet::read(&mut self.reader)?;
        let values = self.reader.opaque(VERIFIED_LIMIT_BYTES)?;
        let subject = self.subject()?;
        if !asked.and(WRITE_ONLY).is_empty() || asked.has(READ_ERROR) {
            return Err(Status::Invalid.into());
        }
        if !asked.without(SUPPORTED).is_empty() {
            return Err(Status::AttributeNotSupported.into());
        }
        let (mut ours, mut theirs) = (Writer::default(), Writer::default());
        subject.write(asked, &mut ours)?;
        asked.write(&mut theirs);
        theirs.opaque(values);
        let is_same = ours == theirs;
        if is_same == (otherwise == Status::Same) { Err(otherwise.into()) } else { Ok(()) }
    }

    pub(super) fn access(&mut self) -> Result<(), Stop> {
        let asked = self.reader.u32()? & ACCESS_KNOWN;
        let access = self.files.access(self.caller, self.object()?)?;
        let granted =
            [(access.read, ACCESS_READ), (access.look_up, ACCESS_LOOK_UP), (access.execute, ACCESS_EXECUTE)];
        let granted = granted.iter().filter(|(is, _)| *is).fold(0, |bits, (_, bit)| bits | bit);
        self.draft.bytes.u32(asked);
        self.draft.bytes.u32(asked & granted);
        Ok(())
    }

    pub(super) fn read_link(&mut self) -> Result<(), Stop> {
        let text = self.files.read_link(self.caller, self.object()?)?;
        self.draft.bytes.opaque(&text);
        Ok(())
    }

    /// SECINFO: the current object is used up (RFC 8881 section 18.29.3).
    pub(super) fn security_of_name(&mut self) -> Result<(), Stop> {
        self.named()?;
        self.flavours();
        Ok(())
    }

    pub(super) fn security(&mut self) -> Result<(), Stop> {
        let style = self.reader.u32()?;
        let object = self.object()?;
        match style {
            // SECINFO_STYLE4_CURRENT_FH
            0 => {}
            // SECINFO_STYLE4_PARENT
            1 => drop(self.files.parent(self.caller, object)?),
            _ => return Err(Status::BadXdr.into()),
        }
        self.flavours();
        Ok(())
    }

    fn flavours(&mut self) {
        self.current = None;
        self.draft.bytes.u32(2);
        self.draft.bytes.u32(AUTH_SYS);
        self.draft.bytes.u32(AUTH_NONE);
    }
}
