//! Which program on which machine asks.

use std::net::SocketAddr;

/// All that a file system is told about a call.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// What is known about the peer of the connection.
    pub client: &'a Client,
    /// As which user the call says that it comes.
    pub identity: &'a Identity,
    /// Whether a method may wait for a disk.
    pub waiting: Waiting,
    /// MOUNT of version 3 asks, for a handle. Linux' client calls it in the clear, whatever it mounts with then
    /// (fs/nfs/mount_clnt.c knows no `xprtsec`). So what the connection lacks, TLS or a certificate, is no reason for a refusal
    /// here. Who has the handle has to use it on a connection that is good enough.
    pub is_mount: bool,
}

/// Whether a method may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// On a worker's thread, which thousands of connections share: what is not in the kernel's caches is
    /// [`crate::Fault::WouldWait`].
    Forbidden,
    /// On a thread that is there to wait. [`crate::Fault::WouldWait`] is no answer here.
    Allowed,
}

/// The peer of a connection. The same value for all calls of a connection, except that `tls` is set when its handshake is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its address and port, as the kernel reports them.
    pub address: SocketAddr,
    /// What TLS says about it (RFC 9289). `None` in the clear.
    pub tls: Option<Tls>,
}

/// What is known about the peer of a connection with TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificate that it has proved to own, and that verifies. `None`, if it has sent none or one that does not
    /// verify.
    pub certificate: Option<Certificate>,
}

/// A client's certificate, verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Its names: DNS names and addresses of `subjectAltName`, as text.
    pub names: Vec<String>,
}

/// As which user a call comes. Nobody vouches for it but the client (RFC 5531 section 14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// AUTH_NONE: nobody in particular.
    Nobody,
    /// AUTH_SYS: a user of the client's system.
    System(System),
}

/// What AUTH_SYS says (RFC 5531, appendix A).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// The user's number.
    pub user: u32,
    /// The number of the user's first group.
    pub group: u32,
    /// Further groups: at most 16.
    pub groups: Vec<u32>,
}
