//! What became of an operation (`nfsstat4`, RFC 8881 section 15.1).

use crate::Fault;
use linerate_rpc::xdr::XdrError;

macro_rules! statuses {
    ($($name:ident = $number:literal, $label:literal;)*) => {
        /// The outcome of an operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Status {
            $($name = $number,)*
        }

        impl Status {
            /// Its name in the RFC.
            pub(crate) const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

statuses! {
    Ok = 0, "NFS4_OK";
    NotFound = 2, "NFS4ERR_NOENT";
    Failed = 5, "NFS4ERR_IO";
    Access = 13, "NFS4ERR_ACCESS";
    Exists = 17, "NFS4ERR_EXIST";
    NotDirectory = 20, "NFS4ERR_NOTDIR";
    IsDirectory = 21, "NFS4ERR_ISDIR";
    Invalid = 22, "NFS4ERR_INVAL";
    NoSpace = 28, "NFS4ERR_NOSPC";
    ReadOnly = 30, "NFS4ERR_ROFS";
    NameTooLong = 63, "NFS4ERR_NAMETOOLONG";
    Stale = 70, "NFS4ERR_STALE";
    BadHandle = 10001, "NFS4ERR_BADHANDLE";
    BadCookie = 10003, "NFS4ERR_BAD_COOKIE";
    NotSupported = 10004, "NFS4ERR_NOTSUPP";
    TooSmall = 10005, "NFS4ERR_TOOSMALL";
    Delay = 10008, "NFS4ERR_DELAY";
    Same = 10009, "NFS4ERR_SAME";
    ShareDenied = 10015, "NFS4ERR_SHARE_DENIED";
    WrongSecurity = 10016, "NFS4ERR_WRONGSEC";
    ClientInUse = 10017, "NFS4ERR_CLID_INUSE";
    NoFileHandle = 10020, "NFS4ERR_NOFILEHANDLE";
    MinorVersion = 10021, "NFS4ERR_MINOR_VERS_MISMATCH";
    StaleClient = 10022, "NFS4ERR_STALE_CLIENTID";
    BadStateId = 10025, "NFS4ERR_BAD_STATEID";
    NotSame = 10027, "NFS4ERR_NOT_SAME";
    SymbolicLink = 10029, "NFS4ERR_SYMLINK";
    AttributeNotSupported = 10032, "NFS4ERR_ATTRNOTSUPP";
    NoGrace = 10033, "NFS4ERR_NO_GRACE";
    BadXdr = 10036, "NFS4ERR_BADXDR";
    OpenMode = 10038, "NFS4ERR_OPENMODE";
    BadCharacter = 10040, "NFS4ERR_BADCHAR";
    BadName = 10041, "NFS4ERR_BADNAME";
    IllegalOperation = 10044, "NFS4ERR_OP_ILLEGAL";
    BadSession = 10052, "NFS4ERR_BADSESSION";
    BadSlot = 10053, "NFS4ERR_BADSLOT";
    CompleteAlready = 10054, "NFS4ERR_COMPLETE_ALREADY";
    Misordered = 10063, "NFS4ERR_SEQ_MISORDERED";
    SequencePosition = 10064, "NFS4ERR_SEQUENCE_POS";
    RequestTooBig = 10065, "NFS4ERR_REQ_TOO_BIG";
    ReplyTooBig = 10066, "NFS4ERR_REP_TOO_BIG";
    ReplyTooBigToCache = 10067, "NFS4ERR_REP_TOO_BIG_TO_CACHE";
    TooManyOperations = 10070, "NFS4ERR_TOO_MANY_OPS";
    NotInSession = 10071, "NFS4ERR_OP_NOT_IN_SESSION";
    ClientBusy = 10074, "NFS4ERR_CLIENTID_BUSY";
    FalseRetry = 10076, "NFS4ERR_SEQ_FALSE_RETRY";
    NotOnlyOperation = 10081, "NFS4ERR_NOT_ONLY_OP";
    WrongType = 10083, "NFS4ERR_WRONG_TYPE";
    NotPermitted = 1, "NFS4ERR_PERM";
    NoEncryption = 10079, "NFS4ERR_ENCR_ALG_UNSUPP";
}

impl Status {
    pub(crate) const fn number(self) -> u32 {
        self as u32
    }
}

/// Why an operation does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The whole compound is evaluated again, where waiting is allowed.
    WouldWait,
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
        Self::With(Status::BadXdr)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::With(match fault {
            Fault::WouldWait => return Self::WouldWait,
            Fault::NotFound => Status::NotFound,
            Fault::Stale => Status::Stale,
            Fault::BadHandle => Status::BadHandle,
            Fault::Denied => Status::Access,
            Fault::WrongSecurity => Status::WrongSecurity,
            Fault::NotDirectory => Status::NotDirectory,
            Fault::IsDirectory => Status::IsDirectory,
            Fault::NotFile | Fault::NotLink => Status::WrongType,
            Fault::NameTooLong => Status::NameTooLong,
            Fault::BadCookie => Status::BadCookie,
            Fault::Busy => Status::Delay,
            Fault::Failed => Status::Failed,
        })
    }
}
