//! MOUNT version 3 (RFC 1813 section 5): from a path to a handle.

use super::status::{Status, Stop};
use crate::{Caller, FileSystem, Handle, Kind, Name, NameError, reply::Draft};
use linerate_rpc::xdr::Reader;

/// The longest path, in bytes (`MNTPATHLEN`).
const PATH_LIMIT_BYTES: usize = 1024;
/// The most exports that are told.
const EXPORTS_LIMIT: usize = 1000;

const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;

/// A procedure of MOUNT beside NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MountProcedure {
    Mount,
    /// What is mounted by whom, which is not kept.
    Dump,
    /// Nothing is kept that would have to end.
    Unmount,
    UnmountAll,
    Exports,
}

impl MountProcedure {
    pub(crate) const fn of(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Mount,
            2 => Self::Dump,
            3 => Self::Unmount,
            4 => Self::UnmountAll,
            5 => Self::Exports,
            _ => return None,
        })
    }

    /// Its name in the RFC.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Mount => "MNT",
            Self::Dump => "DUMP",
            Self::Unmount => "UMNT",
            Self::UnmountAll => "UMNTALL",
            Self::Exports => "EXPORT",
        }
    }
}

/// Evaluates a call of MOUNT. Its results are behind the draft's RPC header. Returns the status' name.
pub(crate) fn mount<F: FileSystem>(
    procedure: MountProcedure,
    files: &F,
    caller: &Caller<'_>,
    arguments: &[u8],
    draft: &mut Draft<F::File>,
) -> Result<&'static str, Stop> {
    match procedure {
        MountProcedure::Mount => match find(files, caller, arguments) {
            Ok(handle) => {
                draft.bytes.u32(Status::Ok.number());
                draft.bytes.opaque(handle.as_bytes());
                draft.bytes.u32(2);
                draft.bytes.u32(AUTH_SYS);
                draft.bytes.u32(AUTH_NONE);
            }
            Err(Stop::With(status)) => {
                draft.bytes.u32(for_mount(status).number());
                return Ok(status.label());
            }
            Err(stop) => return Err(stop),
        },
        MountProcedure::Dump => draft.bytes.boolean(false),
        MountProcedure::Unmount | MountProcedure::UnmountAll => {}
        MountProcedure::Exports => {
            let exports = match files.exports(caller).map_err(Stop::from) {
                Ok(exports) => exports,
                // There is no status: nothing is told.
                Err(Stop::With(_)) => Vec::new(),
                Err(stop) => return Err(stop),
            };
            let told = exports.iter().filter(|path| path.len() <= PATH_LIMIT_BYTES).take(EXPORTS_LIMIT);
            for path in told {
                draft.bytes.boolean(true);
                draft.bytes.opaque(path);
                draft.bytes.boolean(false); // no groups
            }
            draft.bytes.boolean(false);
        }
    }
    Ok(Status::Ok.label())
}

/// The directory that a path leads to.
fn find<F: FileSystem>(files: &F, caller: &Caller<'_>, arguments: &[u8]) -> Result<Handle, Stop> {
    let path = Reader::new(arguments).opaque(PATH_LIMIT_BYTES)?;
    let mut object = files.root(caller)?;
    for part in path.split(|byte| *byte == b'/') {
        match Name::new(part) {
            Ok(name) => object = files.look_up(caller, &object, name)?,
            Err(NameError::Empty | NameError::Itself) => {}
            Err(NameError::TooLong) => return Err(Status::NameTooLong.into()),
            Err(NameError::Parent | NameError::Character) => return Err(Status::Invalid.into()),
        }
    }
    if files.attributes(caller, &object)?.kind != Kind::Directory {
        return Err(Status::NotDirectory.into());
    }
    let handle = files.handle(&object);
    let fits = handle.as_bytes().len() <= Handle::V3_LIMIT_BYTES;
    if fits { Ok(handle) } else { Err(Status::ServerFault.into()) }
}

/// `mountstat3` has fewer than NFS.
const fn for_mount(status: Status) -> Status {
    match status {
        Status::Ok
        | Status::NotFound
        | Status::Failed
        | Status::Access
        | Status::NotDirectory
        | Status::Invalid
        | Status::NameTooLong => status,
        Status::Stale => Status::NotFound,
        _ => Status::ServerFault,
    }
}
