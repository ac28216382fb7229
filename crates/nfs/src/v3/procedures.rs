//! The procedures of version 3.

use super::{
    attributes::{write, write_if_known},
    status::{Status, Stop},
};
use crate::{
    Attributes, Caller, Fault, FileSystem, Handle, NAME_LIMIT_BYTES, Name, NameError,
    limits::Limits,
    reply::Draft,
    v4::attributes::{LARGEST_FILE_BYTES, LINKS_LIMIT},
};
use linerate_rpc::xdr::{Reader, Writer};

/// A procedure that looks at files, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Procedure {
    GetAttributes,
    LookUp,
    Access,
    ReadLink,
    Read,
    ReadDirectory,
    ReadDirectoryPlus,
    Space,
    Information,
    PathLimits,
    /// One that would change something. Its failure names the attributes of so many objects, each of before and after
    /// (`wcc_data`) or of after alone (`post_op_attr`).
    Write {
        label: &'static str,
        before_and_after: u32,
        after: u32,
    },
}

impl Procedure {
    pub(crate) fn of(number: u32) -> Option<Self> {
        let write = |label, before_and_after, after| Self::Write { label, before_and_after, after };
        Some(match number {
            1 => Self::GetAttributes,
            2 => write("SETATTR", 1, 0),
            3 => Self::LookUp,
            4 => Self::Access,
            5 => Self::ReadLink,
            6 => Self::Read,
            7 => write("WRITE", 1, 0),
            8 => write("CREATE", 1, 0),
            9 => write("MKDIR", 1, 0),
            10 => write("SYMLINK", 1, 0),
            11 => write("MKNOD", 1, 0),
            12 => write("REMOVE", 1, 0),
            13 => write("RMDIR", 1, 0),
            14 => write("RENAME", 2, 0),
            15 => write("LINK", 1, 1),
            16 => Self::ReadDirectory,
            17 => Self::ReadDirectoryPlus,
            18 => Self::Space,
            19 => Self::Information,
            20 => Self::PathLimits,
            21 => write("COMMIT", 1, 0),
            _ => return None,
        })
    }

    /// Its name in the RFC.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::GetAttributes => "GETATTR",
            Self::LookUp => "LOOKUP",
            Self::Access => "ACCESS",
            Self::ReadLink => "READLINK",
            Self::Read => "READ",
            Self::ReadDirectory => "READDIR",
            Self::ReadDirectoryPlus => "READDIRPLUS",
            Self::Space => "FSSTAT",
            Self::Information => "FSINFO",
            Self::PathLimits => "PATHCONF",
            Self::Write { label, .. } => label,
        }
    }
}

const ACCESS_READ: u32 = 0x1;
const ACCESS_LOOK_UP: u32 = 0x2;
const ACCESS_EXECUTE: u32 = 0x20;

/// FSF3_LINK, FSF3_SYMLINK, FSF3_HOMOGENEOUS
const PROPERTIES: u32 = 0x1 | 0x2 | 0x8;
/// What lengths of reads and writes should be multiples of, in bytes.
const MULTIPLE_BYTES: u32 = 4096;

/// A call that is being evaluated.
pub(super) struct Evaluation<'a, F: FileSystem> {
    pub(super) files: &'a F,
    pub(super) caller: &'a Caller<'a>,
    pub(super) limits: &'a Limits,
    pub(super) reader: Reader<'a>,
    pub(super) draft: &'a mut Draft<F::File>,
}

/// Evaluates a call. Its results are behind the draft's RPC header. Returns the status' name.
pub(crate) fn call<F: FileSystem>(
    procedure: Procedure,
    files: &F,
    caller: &Caller<'_>,
    limits: &Limits,
    arguments: &[u8],
    draft: &mut Draft<F::File>,
) -> Result<&'static str, Stop> {
    let mut evaluation = Evaluation { files, caller, limits, reader: Reader::new(arguments), draft };
    if let Procedure::Write { before_and_after, after, .. } = procedure {
        return Ok(evaluation.refuse_to_write(before_and_after, after));
    }
    let before = evaluation.draft.bytes.length_bytes();
    let object = match evaluation.object() {
        Ok(object) => object,
        Err(Stop::With(status)) => return Ok(evaluation.failed(procedure, status, None)),
        Err(stop) => return Err(stop),
    };
    match evaluation.carry_out(procedure, &object) {
        Ok(()) => Ok(Status::Ok.label()),
        Err(Stop::With(status)) => {
            evaluation.draft.truncate(before);
            let attributes = evaluation.if_known(&object)?;
            Ok(evaluation.failed(procedure, status, attributes.as_ref()))
        }
        Err(stop) => Err(stop),
    }
}

impl<F: FileSystem> Evaluation<'_, F> {
    fn object(&mut self) -> Result<F::Object, Stop> {
        let handle = self.reader.opaque(Handle::V3_LIMIT_BYTES)?;
        Ok(self.files.resolve(self.caller, handle)?)
    }

    /// The attributes that accompany most results. A client does without, if need be.
    pub(super) fn if_known(&self, object: &F::Object) -> Result<Option<Attributes>, Stop> {
        match self.files.attributes(self.caller, object) {
            Ok(attributes) => Ok(Some(attributes)),
            Err(Fault::WouldWait) => Err(Stop::WouldWait),
            Err(_) => Ok(None),
        }
    }

    fn failed(
        &mut self,
        procedure: Procedure,
        status: Status,
        attributes: Option<&Attributes>,
    ) -> &'static str {
        self.draft.bytes.u32(status.number());
        if procedure != Procedure::GetAttributes {
            write_if_known(attributes, &mut self.draft.bytes);
        }
        status.label()
    }

    fn refuse_to_write(&mut self, before_and_after: u32, after: u32) -> &'static str {
        self.draft.bytes.u32(Status::ReadOnly.number());
        for _ in 0..2 * before_and_after + after {
            self.draft.bytes.boolean(false);
        }
        Status::ReadOnly.label()
    }

    fn carry_out(&mut self, procedure: Procedure, object: &F::Object) -> Result<(), Stop> {
        match procedure {
            Procedure::GetAttributes => {
                let attributes = self.files.attributes(self.caller, object)?;
                self.draft.bytes.u32(Status::Ok.number());
                write(&attributes, &mut self.draft.bytes);
                Ok(())
            }
            Procedure::LookUp => self.look_up(object),
            Procedure::Access => self.access(object),
            Procedure::ReadLink => self.read_link(object),
            Procedure::Read => self.read(object),
            Procedure::ReadDirectory => self.read_directory(object),
            Procedure::ReadDirectoryPlus => self.read_directory_plus(object),
            Procedure::Space => self.space(object),
            Procedure::Information => self.information(object),
            Procedure::PathLimits => self.path_limits(object),
            Procedure::Write { .. } => Err(Status::ReadOnly.into()),
        }
    }

    /// That it went well, and the attributes of the object that it was done to.
    pub(super) fn ok(&mut self, object: &F::Object) -> Result<(), Stop> {
        let attributes = self.if_known(object)?;
        self.draft.bytes.u32(Status::Ok.number());
        write_if_known(attributes.as_ref(), &mut self.draft.bytes);
        Ok(())
    }

    pub(super) fn handle(&self, object: &F::Object) -> Result<Handle, Stop> {
        let handle = self.files.handle(object);
        let fits = handle.as_bytes().len() <= Handle::V3_LIMIT_BYTES;
        if fits { Ok(handle) } else { Err(Status::ServerFault.into()) }
    }

    fn look_up(&mut self, directory: &F::Object) -> Result<(), Stop> {
        let bytes = self.reader.opaque(self.reader.rest().len())?;
        let found = match Name::new(bytes) {
            Ok(name) => self.files.look_up(self.caller, directory, name)?,
            Err(NameError::Itself) => directory.clone(),
            Err(NameError::Parent) => self.parent(directory)?,
            Err(NameError::TooLong) => return Err(Status::NameTooLong.into()),
            Err(NameError::Empty | NameError::Character) => return Err(Status::Invalid.into()),
        };
        let handle = self.handle(&found)?;
        let (attributes, of_directory) = (self.if_known(&found)?, self.if_known(directory)?);
        let writer = &mut self.draft.bytes;
        writer.u32(Status::Ok.number());
        writer.opaque(handle.as_bytes());
        write_if_known(attributes.as_ref(), writer);
        write_if_known(of_directory.as_ref(), writer);
        Ok(())
    }

    /// The directory above; the root is its own.
    pub(super) fn parent(&self, directory: &F::Object) -> Result<F::Object, Stop> {
        match self.files.parent(self.caller, directory) {
            Err(Fault::NotFound) => Ok(directory.clone()),
            parent => Ok(parent?),
        }
    }

    fn access(&mut self, object: &F::Object) -> Result<(), Stop> {
        let asked = self.reader.u32()?;
        let access = self.files.access(self.caller, object)?;
        let granted =
            [(access.read, ACCESS_READ), (access.look_up, ACCESS_LOOK_UP), (access.execute, ACCESS_EXECUTE)];
        let granted = granted.iter().filter(|(is, _)| *is).fold(0, |bits, (_, bit)| bits | bit);
        self.ok(object)?;
        self.draft.bytes.u32(asked & granted);
        Ok(())
    }

    fn read_link(&mut self, object: &F::Object) -> Result<(), Stop> {
        let text = self.files.read_link(self.caller, object)?;
        self.ok(object)?;
        self.draft.bytes.opaque(&text);
        Ok(())
    }

    /// READ: the result's bytes are a range of the file.
    fn read(&mut self, object: &F::Object) -> Result<(), Stop> {
        let (offset, count) = (self.reader.u64()?, self.reader.u32()?);
        let opened = self.files.open(self.caller, object)?;
        let length_bytes = opened.size_bytes.saturating_sub(offset);
        let length_bytes = length_bytes.min(count.into()).min(self.limits.read_bytes.into());
        let end = offset.saturating_add(length_bytes);
        self.ok(object)?;
        // At most `count`.
        self.draft.bytes.u32(length_bytes as u32);
        self.draft.bytes.boolean(end >= opened.size_bytes);
        self.draft.bytes.u32(length_bytes as u32);
        self.draft.file(opened.file, offset..end);
        Ok(())
    }

    /// FSSTAT
    fn space(&mut self, object: &F::Object) -> Result<(), Stop> {
        let space = self.files.space(self.caller, object)?;
        self.ok(object)?;
        for value in [
            space.total_bytes,
            space.free_bytes,
            space.available_bytes,
            space.total_files,
            space.free_files,
            space.available_files,
        ] {
            self.draft.bytes.u64(value);
        }
        // It may be another any moment.
        self.draft.bytes.u32(0);
        Ok(())
    }

    /// FSINFO
    fn information(&mut self, object: &F::Object) -> Result<(), Stop> {
        self.ok(object)?;
        let (read, write) = (self.limits.read_bytes, self.limits.call_bytes / 2);
        let writer: &mut Writer = &mut self.draft.bytes;
        for value in [read, read, MULTIPLE_BYTES, write, write, MULTIPLE_BYTES, self.limits.reply_bytes] {
            writer.u32(value);
        }
        writer.u64(LARGEST_FILE_BYTES);
        // Times are of a nanosecond.
        writer.u32(0);
        writer.u32(1);
        writer.u32(PROPERTIES);
        Ok(())
    }

    /// PATHCONF
    fn path_limits(&mut self, object: &F::Object) -> Result<(), Stop> {
        self.ok(object)?;
        let writer = &mut self.draft.bytes;
        writer.u32(LINKS_LIMIT);
        writer.u32(NAME_LIMIT_BYTES as u32);
        // Names are not cut; owners are not given away; case matters, and is preserved.
        for is in [true, true, false, true] {
            writer.boolean(is);
        }
        Ok(())
    }
}
