//! What became of a call (`nfsstat3`, RFC 1813 section 2.6).

use crate::Fault;
use linerate_rpc::xdr::XdrError;

/// The outcome of a call. The numbers of `mountstat3` (section 5.1.5) are the same, as far as it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok = 0,
    NotFound = 2,
    Failed = 5,
    Access = 13,
    NotDirectory = 20,
    IsDirectory = 21,
    Invalid = 22,
    ReadOnly = 30,
    NameTooLong = 63,
    Stale = 70,
    BadHandle = 10001,
    BadCookie = 10003,
    TooSmall = 10005,
    ServerFault = 10006,
    Later = 10008,
}

impl Status {
    pub(super) const fn number(self) -> u32 {
        self as u32
    }

    /// Its name in the RFC.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Ok => "NFS3_OK",
            Self::NotFound => "NFS3ERR_NOENT",
            Self::Failed => "NFS3ERR_IO",
            Self::Access => "NFS3ERR_ACCES",
            Self::NotDirectory => "NFS3ERR_NOTDIR",
            Self::IsDirectory => "NFS3ERR_ISDIR",
            Self::Invalid => "NFS3ERR_INVAL",
            Self::ReadOnly => "NFS3ERR_ROFS",
            Self::NameTooLong => "NFS3ERR_NAMETOOLONG",
            Self::Stale => "NFS3ERR_STALE",
            Self::BadHandle => "NFS3ERR_BADHANDLE",
            Self::BadCookie => "NFS3ERR_BAD_COOKIE",
            Self::TooSmall => "NFS3ERR_TOOSMALL",
            Self::ServerFault => "NFS3ERR_SERVERFAULT",
            Self::Later => "NFS3ERR_JUKEBOX",
        }
    }
}

/// Why a call does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is evaluated again, where waiting is allowed.
    WouldWait,
    /// Its arguments cannot be read.
    BadArguments,
    /// With this status.
    With(Status),
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::With(status)
    }
}

impl From<XdrError> for Stop {
    fn from(_: XdrError) -> Self {
        Self::BadArguments
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::With(match fault {
            Fault::WouldWait => return Self::WouldWait,
            Fault::NotFound => Status::NotFound,
            Fault::Stale => Status::Stale,
            Fault::BadHandle => Status::BadHandle,
            // There is no status for connections that are not good enough.
            Fault::Denied | Fault::WrongSecurity => Status::Access,
            Fault::NotDirectory => Status::NotDirectory,
            Fault::IsDirectory => Status::IsDirectory,
            Fault::NotFile | Fault::NotLink => Status::Invalid,
            Fault::NameTooLong => Status::NameTooLong,
            Fault::BadCookie => Status::BadCookie,
            Fault::Busy => Status::Later,
            Fault::Failed => Status::Failed,
        })
    }
}
