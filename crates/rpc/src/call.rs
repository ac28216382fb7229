//! The header of a call.

use crate::{
    credential::{AUTH_NONE, BODY_LIMIT_BYTES, Credential},
    reply::{AuthenticationError, Denial},
    xdr::{Reader, XdrError},
};
use std::error::Error;
use std::fmt;

/// The version of RPC.
pub const RPC_VERSION: u32 = 2;

const CALL: u32 = 0;

/// A call of a procedure.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The number by which the client will know the reply (`xid`).
    pub transaction: u32,
    /// The program's number.
    pub program: u32,
    /// The program's version.
    pub version: u32,
    /// The procedure's number.
    pub procedure: u32,
    /// As which user.
    pub credential: Credential<'a>,
    /// What the procedure is given.
    pub arguments: Reader<'a>,
}

/// A record that is no call which a server can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCall {
    /// To be answered with this ([`crate::reply::denied`]); the connection goes on.
    Denied {
        /// The call's number.
        transaction: u32,
        /// What is wrong.
        denial: Denial,
    },
    /// Not a call at all: the connection is to be ended.
    Malformed,
}

impl fmt::Display for NoCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied { denial, .. } => denial.fmt(formatter),
            Self::Malformed => formatter.write_str("a record is no call of RPC"),
        }
    }
}

impl Error for NoCall {}

impl From<XdrError> for NoCall {
    fn from(_: XdrError) -> Self {
        Self::Malformed
    }
}

impl<'a> Call<'a> {
    /// Reads the header of the call in `record` (RFC 5531 section 9).
    ///
    /// # Errors
    /// [`NoCall`].
    pub fn parse(record: &'a [u8]) -> Result<Self, NoCall> {
        let mut reader = Reader::new(record);
        let transaction = reader.u32()?;
        if reader.u32()? != CALL {
            return Err(NoCall::Malformed);
        }
        let denied = |denial| NoCall::Denied { transaction, denial };
        if reader.u32()? != RPC_VERSION {
            return Err(denied(Denial::RpcVersion));
        }
        let (program, version, procedure) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let credential = Credential::read(&mut reader)?;
        let verifier_flavour = reader.u32()?;
        let verifier = reader.opaque(BODY_LIMIT_BYTES)?;
        let Ok(credential) = credential else {
            return Err(denied(Denial::Authentication(AuthenticationError::BadCredential)));
        };
        // No flavour of these has another verifier (RFC 5531 section 10.1 and appendix A, RFC 9289 section 4.1).
        if verifier_flavour != AUTH_NONE || !verifier.is_empty() {
            return Err(denied(Denial::Authentication(AuthenticationError::BadVerifier)));
        }
        Ok(Self { transaction, program, version, procedure, credential, arguments: reader })
    }
}
