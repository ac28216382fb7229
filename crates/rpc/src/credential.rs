//! What a call says about the user that makes it.

use crate::xdr::{Reader, XdrError};

/// The most that a credential or a verifier may hold (RFC 5531 section 8.2).
pub(crate) const BODY_LIMIT_BYTES: usize = 400;
/// The most groups that AUTH_SYS has room for, beside the first (RFC 5531, appendix A).
pub const GROUPS_LIMIT: usize = 16;
/// The longest name of a machine in AUTH_SYS, in bytes.
pub const MACHINE_LIMIT_BYTES: usize = 255;

pub(crate) const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;
const AUTH_TLS: u32 = 7;

/// A credential of a flavour that a server can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential<'a> {
    /// AUTH_NONE: no user.
    None,
    /// AUTH_SYS: numbers that nobody vouches for.
    System(SystemCredential<'a>),
    /// AUTH_TLS: the question whether TLS may begin (RFC 9289 section 4.1). Only the procedure NULL is asked with it.
    Tls,
}

/// The body of AUTH_SYS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemCredential<'a> {
    /// Any number.
    pub stamp: u32,
    /// The name of the client's machine.
    pub machine: &'a [u8],
    /// The user.
    pub user: u32,
    /// The user's first group.
    pub group: u32,
    /// Further groups, at most [`GROUPS_LIMIT`].
    pub groups: Vec<u32>,
}

impl<'a> Credential<'a> {
    /// Reads a credential: its flavour and its body. The outer error is that of the message, the inner one that of a credential that a server
    /// refuses.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Result<Self, Unacceptable>, XdrError> {
        let flavour = reader.u32()?;
        let mut body = Reader::new(reader.opaque(BODY_LIMIT_BYTES)?);
        let credential = match flavour {
            AUTH_NONE => Ok(Self::None),
            AUTH_SYS => system(&mut body).map(Self::System).map_err(|_| Unacceptable),
            // Its body has no bytes.
            AUTH_TLS if body.rest().is_empty() => Ok(Self::Tls),
            _ => Err(Unacceptable),
        };
        Ok(credential)
    }
}

/// A credential of an unknown flavour, or whose body is malformed.
pub(crate) struct Unacceptable;

fn system<'a>(body: &mut Reader<'a>) -> Result<SystemCredential<'a>, XdrError> {
    let stamp = body.u32()?;
    let machine = body.opaque(MACHINE_LIMIT_BYTES)?;
    let (user, group) = (body.u32()?, body.u32()?);
    let groups = (0..body.count(GROUPS_LIMIT)?).map(|_| body.u32()).collect::<Result<_, _>>()?;
    if !body.rest().is_empty() {
        return Err(XdrError::TooLong);
    }
    Ok(SystemCredential { stamp, machine, user, group, groups })
}
