//! The operations of versions 4.1 and 4.2 by their numbers (RFC 8881 section 16.2, RFC 7862 section 15, RFC 8276 section 8.4).

use std::fmt;

macro_rules! operations {
    ($($name:ident = $number:literal, $label:literal;)*) => {
        /// An operation of a COMPOUND that this server knows by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Operation {
            $($name = $number,)*
        }

        impl Operation {
            const fn known(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its name in the RFC.
            pub(crate) const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

operations! {
    Access = 3, "ACCESS";
    Close = 4, "CLOSE";
    Commit = 5, "COMMIT";
    Create = 6, "CREATE";
    DelegationPurge = 7, "DELEGPURGE";
    DelegationReturn = 8, "DELEGRETURN";
    GetAttributes = 9, "GETATTR";
    GetHandle = 10, "GETFH";
    Link = 11, "LINK";
    Lock = 12, "LOCK";
    LockTest = 13, "LOCKT";
    Unlock = 14, "LOCKU";
    LookUp = 15, "LOOKUP";
    LookUpParent = 16, "LOOKUPP";
    VerifyNot = 17, "NVERIFY";
    Open = 18, "OPEN";
    OpenAttributes = 19, "OPENATTR";
    OpenConfirm = 20, "OPEN_CONFIRM";
    OpenDowngrade = 21, "OPEN_DOWNGRADE";
    PutHandle = 22, "PUTFH";
    PutPublicHandle = 23, "PUTPUBFH";
    PutRootHandle = 24, "PUTROOTFH";
    Read = 25, "READ";
    ReadDirectory = 26, "READDIR";
    ReadLink = 27, "READLINK";
    Remove = 28, "REMOVE";
    Rename = 29, "RENAME";
    Renew = 30, "RENEW";
    RestoreHandle = 31, "RESTOREFH";
    SaveHandle = 32, "SAVEFH";
    SecurityOfName = 33, "SECINFO";
    SetAttributes = 34, "SETATTR";
    SetClientId = 35, "SETCLIENTID";
    SetClientIdConfirm = 36, "SETCLIENTID_CONFIRM";
    Verify = 37, "VERIFY";
    Write = 38, "WRITE";
    ReleaseLockOwner = 39, "RELEASE_LOCKOWNER";
    BackChannelControl = 40, "BACKCHANNEL_CTL";
    BindConnection = 41, "BIND_CONN_TO_SESSION";
    ExchangeId = 42, "EXCHANGE_ID";
    CreateSession = 43, "CREATE_SESSION";
    DestroySession = 44, "DESTROY_SESSION";
    FreeStateId = 45, "FREE_STATEID";
    DirectoryDelegation = 46, "GET_DIR_DELEGATION";
    DeviceInformation = 47, "GETDEVICEINFO";
    DeviceList = 48, "GETDEVICELIST";
    LayoutCommit = 49, "LAYOUTCOMMIT";
    LayoutGet = 50, "LAYOUTGET";
    LayoutReturn = 51, "LAYOUTRETURN";
    Security = 52, "SECINFO_NO_NAME";
    Sequence = 53, "SEQUENCE";
    SetSsv = 54, "SET_SSV";
    TestStateId = 55, "TEST_STATEID";
    WantDelegation = 56, "WANT_DELEGATION";
    DestroyClientId = 57, "DESTROY_CLIENTID";
    ReclaimComplete = 58, "RECLAIM_COMPLETE";
    Allocate = 59, "ALLOCATE";
    Copy = 60, "COPY";
    CopyNotify = 61, "COPY_NOTIFY";
    Deallocate = 62, "DEALLOCATE";
    IoAdvise = 63, "IO_ADVISE";
    LayoutError = 64, "LAYOUTERROR";
    LayoutStatistics = 65, "LAYOUTSTATS";
    OffloadCancel = 66, "OFFLOAD_CANCEL";
    OffloadStatus = 67, "OFFLOAD_STATUS";
    ReadPlus = 68, "READ_PLUS";
    Seek = 69, "SEEK";
    WriteSame = 70, "WRITE_SAME";
    Clone = 71, "CLONE";
    GetExtendedAttribute = 72, "GETXATTR";
    SetExtendedAttribute = 73, "SETXATTR";
    ListExtendedAttributes = 74, "LISTXATTRS";
    RemoveExtendedAttribute = 75, "REMOVEXATTR";
}

/// The number in the result of an operation that there is not (`OP_ILLEGAL`).
pub(crate) const ILLEGAL: u32 = 10044;
/// The last operation of version 4.1.
const LAST_OF_MINOR_1: u32 = 58;

impl Operation {
    /// The operation with this number, if the minor version has it.
    pub(crate) const fn of(number: u32, minor_version: u32) -> Option<Self> {
        if number > LAST_OF_MINOR_1 && minor_version < 2 { None } else { Self::known(number) }
    }

    pub(crate) const fn number(self) -> u32 {
        self as u32
    }

    /// Whether it may stand alone in a compound without SEQUENCE (RFC 8881 section 2.10.2.3 and 16.2.3).
    pub(crate) const fn needs_no_session(self) -> bool {
        matches!(
            self,
            Self::ExchangeId
                | Self::CreateSession
                | Self::DestroySession
                | Self::DestroyClientId
                | Self::BindConnection
        )
    }

    /// Whether it is about the saved object, too.
    pub(crate) const fn needs_saved(self) -> bool {
        matches!(self, Self::Link | Self::Rename | Self::Copy | Self::Clone)
    }

    /// Whether it would change a file or a directory.
    pub(crate) const fn writes(self) -> bool {
        matches!(
            self,
            Self::Commit
                | Self::Create
                | Self::Link
                | Self::Remove
                | Self::Rename
                | Self::SetAttributes
                | Self::Write
                | Self::Allocate
                | Self::Copy
                | Self::Deallocate
                | Self::WriteSame
                | Self::Clone
                | Self::SetExtendedAttribute
                | Self::RemoveExtendedAttribute
        )
    }
}

/// Which operations a COMPOUND holds beside SEQUENCE.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Operations(u128);

impl Operations {
    pub(crate) fn insert(&mut self, operation: Operation) {
        self.0 |= 1 << operation.number();
    }

    /// Their names in the RFC, in the order of their numbers.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let has = move |number: &u32| self.0 >> number & 1 == 1;
        (0..u128::BITS).filter(has).filter_map(Operation::known).map(Operation::label)
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.names()).finish()
    }
}
