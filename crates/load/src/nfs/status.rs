//! The words for what a server answers instead of bytes.

/// `NFS4_OK`
pub(super) const OK: u32 = 0;
/// The server asks for patience: `NFS4ERR_DELAY`, and `NFS4ERR_GRACE` in the first minutes of knfsd.
pub(super) const ASKS_FOR_PATIENCE: [u32; 2] = [10008, 10013];

/// A status of version 4 by its name (RFC 8881 section 15), as far as a client that reads meets it.
pub(super) fn name(status: u32) -> String {
    let name = match status {
        1 => "PERM",
        2 => "NOENT",
        5 => "IO",
        13 => "ACCESS",
        20 => "NOTDIR",
        21 => "ISDIR",
        22 => "INVAL",
        63 => "NAMETOOLONG",
        70 => "STALE",
        10001 => "BADHANDLE",
        10004 => "NOTSUPP",
        10005 => "TOOSMALL",
        10006 => "SERVERFAULT",
        10008 => "DELAY",
        10013 => "GRACE",
        10016 => "WRONGSEC",
        10018 => "RESOURCE",
        10021 => "MINOR_VERS_MISMATCH",
        10022 => "STALE_CLIENTID",
        10036 => "BADXDR",
        10052 => "BADSESSION",
        10053 => "BADSLOT",
        10063 => "SEQ_MISORDERED",
        10065 => "REQ_TOO_BIG",
        10066 => "REP_TOO_BIG",
        10068 => "RETRY_UNCACHED_REP",
        10076 => "SEQ_FALSE_RETRY",
        10078 => "DEADSESSION",
        number => return format!("NFS4ERR {number}"),
    };
    format!("NFS4ERR_{name}")
}
