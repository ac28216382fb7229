//! Replies, each a record of one fragment.

use crate::{RPC_VERSION, xdr::Writer};
use std::error::Error;
use std::fmt;

const REPLY: u32 = 1;
const MSG_ACCEPTED: u32 = 0;
const MSG_DENIED: u32 = 1;
const AUTH_NONE: u32 = 0;

/// The record mark: a fragment's header, which is in front of every reply.
pub const MARK_BYTES: usize = 4;
/// What [`accepted`] writes, the mark included. The program's results follow.
pub const ACCEPTED_BYTES: usize = MARK_BYTES + 24;

/// What a server that can speak TLS says (RFC 9289 section 4.1).
const STARTTLS: &[u8; 8] = b"STARTTLS";

/// Why the arguments of a call were not looked at, or not understood (`accept_stat`, RFC 5531 section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// PROG_UNAVAIL
    NoSuchProgram,
    /// PROG_MISMATCH: these versions of the program there are.
    NoSuchVersion {
        /// The lowest.
        lowest: u32,
        /// The highest.
        highest: u32,
    },
    /// PROC_UNAVAIL
    NoSuchProcedure,
    /// GARBAGE_ARGS
    BadArguments,
    /// SYSTEM_ERR
    Failed,
}

/// Why a call was not accepted (`reject_stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// RPC_MISMATCH: only version 2 is known.
    RpcVersion,
    /// AUTH_ERROR
    Authentication(AuthenticationError),
}

/// What is wrong with a credential (`auth_stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticationError {
    /// AUTH_BADCRED: it is malformed, or of an unknown flavour.
    BadCredential,
    /// AUTH_BADVERF: its verifier is.
    BadVerifier,
    /// AUTH_TOOWEAK: the call needs a stronger one, or a connection with TLS.
    TooWeak,
}

impl AuthenticationError {
    const fn number(self) -> u32 {
        match self {
            Self::BadCredential => 1,
            Self::BadVerifier => 3,
            Self::TooWeak => 5,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::RpcVersion => "a call of a version of RPC other than 2",
            Self::Authentication(AuthenticationError::BadCredential) => {
                "a credential is malformed, or of an unknown flavour"
            }
            Self::Authentication(AuthenticationError::BadVerifier) => {
                "a credential's verifier is not AUTH_NONE"
            }
            Self::Authentication(AuthenticationError::TooWeak) => {
                "the call needs TLS, a client certificate, or another flavour"
            }
        })
    }
}

impl Error for Denial {}

/// A reply is longer than a record of one fragment can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Begins the reply to a call that is carried out: the results follow.
pub fn accepted(writer: &mut Writer, transaction: u32) {
    begin(writer, transaction, MSG_ACCEPTED);
    writer.u32(AUTH_NONE);
    writer.u32(0);
    writer.u32(0); // SUCCESS
}

/// Sets the record mark of the reply in `writer`. `further_bytes` follow behind its bytes.
///
/// # Errors
/// [`TooLong`], and the mark is not set.
pub fn finish(writer: &mut Writer, further_bytes: u64) -> Result<(), TooLong> {
    let behind_mark = writer.length_bytes().checked_sub(MARK_BYTES).ok_or(TooLong)?;
    let length = u64::try_from(behind_mark).ok().and_then(|bytes| bytes.checked_add(further_bytes));
    let length = length.and_then(|length| u32::try_from(length).ok()).ok_or(TooLong)?;
    if length & LAST_FRAGMENT != 0 {
        return Err(TooLong);
    }
    writer.fill_first(LAST_FRAGMENT | length);
    Ok(())
}

const LAST_FRAGMENT: u32 = 1 << 31;

/// The whole reply to a call whose program, version, procedure or arguments are wrong.
#[must_use]
pub fn failed(transaction: u32, error: CallError) -> Vec<u8> {
    let mut writer = Writer::default();
    begin(&mut writer, transaction, MSG_ACCEPTED);
    writer.u32(AUTH_NONE);
    writer.u32(0);
    match error {
        CallError::NoSuchProgram => writer.u32(1),
        CallError::NoSuchVersion { lowest, highest } => {
            writer.u32(2);
            writer.u32(lowest);
            writer.u32(highest);
        }
        CallError::NoSuchProcedure => writer.u32(3),
        CallError::BadArguments => writer.u32(4),
        CallError::Failed => writer.u32(5),
    }
    whole(writer)
}

/// The whole reply to a call that is refused.
#[must_use]
pub fn denied(transaction: u32, denial: Denial) -> Vec<u8> {
    let mut writer = Writer::default();
    begin(&mut writer, transaction, MSG_DENIED);
    match denial {
        Denial::RpcVersion => {
            writer.u32(0);
            writer.u32(RPC_VERSION);
            writer.u32(RPC_VERSION);
        }
        Denial::Authentication(error) => {
            writer.u32(1);
            writer.u32(error.number());
        }
    }
    whole(writer)
}

/// The whole reply to [`crate::Credential::Tls`] of a server that will speak TLS: the handshake begins behind it.
#[must_use]
pub fn start_tls(transaction: u32) -> Vec<u8> {
    let mut writer = Writer::default();
    begin(&mut writer, transaction, MSG_ACCEPTED);
    writer.u32(AUTH_NONE);
    writer.opaque(STARTTLS);
    writer.u32(0); // SUCCESS
    whole(writer)
}

fn begin(writer: &mut Writer, transaction: u32, status: u32) {
    writer.truncate(0);
    writer.u32(0); // the record mark
    writer.u32(transaction);
    writer.u32(REPLY);
    writer.u32(status);
}

fn whole(mut writer: Writer) -> Vec<u8> {
    // Forty bytes are never too long.
    let _ = finish(&mut writer, 0);
    writer.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_the_bytes_of_the_rfc() {
        let denied = |denial| denied(0x0102_0304, denial);
        let failed = |error| failed(0x0102_0304, error);
        let auth = |error| denied(Denial::Authentication(error));
        for (reply, expected) in [
            // RFC 5531 section 9: xid, REPLY, reply_stat, and what follows it.
            (
                denied(Denial::RpcVersion),
                b"\x80\0\0\x18\x01\x02\x03\x04\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x02".as_slice(),
            ),
            (
                auth(AuthenticationError::BadCredential),
                b"\x80\0\0\x14\x01\x02\x03\x04\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01",
            ),
            (
                auth(AuthenticationError::BadVerifier),
                b"\x80\0\0\x14\x01\x02\x03\x04\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x03",
            ),
            (
                auth(AuthenticationError::TooWeak),
                b"\x80\0\0\x14\x01\x02\x03\x04\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x05",
            ),
            (
                failed(CallError::NoSuchProgram),
                b"\x80\0\0\x18\x01\x02\x03\x04\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01",
            ),
            (
                failed(CallError::NoSuchVersion { lowest: 3, highest: 4 }),
                b"\x80\0\0\x20\x01\x02\x03\x04\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x03\0\0\0\x04",
            ),
            (
                failed(CallError::NoSuchProcedure),
                b"\x80\0\0\x18\x01\x02\x03\x04\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03",
            ),
            (
                failed(CallError::BadArguments),
                b"\x80\0\0\x18\x01\x02\x03\x04\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04",
            ),
            (
                failed(CallError::Failed),
                b"\x80\0\0\x18\x01\x02\x03\x04\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05",
            ),
            // RFC 9289 section 4.1: the verifier is AUTH_NONE, and its body says STARTTLS.
            (
                start_tls(0x0102_0304),
                b"\x80\0\0\x20\x01\x02\x03\x04\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x08STARTTLS\0\0\0\0",
            ),
        ] {
            assert_eq!(reply, expected, "{}", reply.escape_ascii());
        }
    }

    #[test]
    fn the_mark_counts_what_follows_the_writer() {
        let mut writer = Writer::default();
        writer.u32(99);
        accepted(&mut writer, 7);
        assert_eq!(writer.length_bytes(), ACCEPTED_BYTES);
        writer.u32(0xabcd);
        finish(&mut writer, 0x10_0000).unwrap();
        let expected: &[u8] =
            b"\x80\x10\0\x1c\0\0\0\x07\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xab\xcd";
        assert_eq!(writer.as_bytes(), expected);
        let most = u64::from(LAST_FRAGMENT - 1) - 28;
        assert_eq!(finish(&mut writer, most), Ok(()));
        for further_bytes in [most + 1, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(finish(&mut writer, further_bytes), Err(TooLong));
        }
        assert_eq!(finish(&mut Writer::default(), 0), Err(TooLong));
    }
}
