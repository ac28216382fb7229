//! Operations that make and end clients and sessions (RFC 8881 sections 18.34 to 18.37 and 18.50).

use super::{
    compound::Circumstances,
    operation::Operation,
    state::{Channel, ClientId, CreateSession, Exchange, Owner, SessionId},
    status::{Status, Stop},
};
use linerate_rpc::xdr::{Reader, Writer, XdrError};

/// The longest name of a client, and of a callback's principal (`NFS4_OPAQUE_LIMIT`).
const OPAQUE_LIMIT_BYTES: usize = 1024;
/// Ways of authentication for callbacks that are read. There are three flavours.
const CALLBACK_SECURITY_LIMIT: usize = 16;

const UPDATE_CONFIRMED: u32 = 0x4000_0000;
const CONFIRMED: u32 = 0x8000_0000;
const USE_NON_PNFS: u32 = 0x0001_0000;
/// Flags that a client may set: SUPP_MOVED_REFER, SUPP_MOVED_MIGR, BIND_PRINC_STATEID, the three of pNFS, and that of an update.
const CLIENT_FLAGS: u32 = 0x1 | 0x2 | 0x100 | 0x0007_0000 | UPDATE_CONFIRMED;
/// SUPP_FENCE_OPS, from minor version 2 on (RFC 7862 section 14.1).
const CLIENT_FLAGS_MINOR_2: u32 = 0x4;

/// Persistent, with a back channel, on RDMA.
const SESSION_FLAGS: u32 = 0x7;

/// Carries out one of the operations that need no session.
pub(super) fn carry_out(
    operation: Operation,
    minor_version: u32,
    reader: &mut Reader<'_>,
    circumstances: &Circumstances<'_>,
    writer: &mut Writer,
) -> Result<(), Stop> {
    match operation {
        Operation::ExchangeId => exchange_id(minor_version, reader, circumstances, writer),
        Operation::CreateSession => create_session(reader, circumstances, writer),
        Operation::DestroySession => {
            let id = SessionId(reader.array()?);
            Ok(circumstances.state.destroy_session(id)?)
        }
        Operation::DestroyClientId => {
            let client = ClientId(reader.u64()?);
            Ok(circumstances.state.destroy_client(client)?)
        }
        Operation::BindConnection => bind_connection(reader, circumstances, writer),
        _ => Err(Status::NotInSession.into()),
    }
}

fn exchange_id(
    minor_version: u32,
    reader: &mut Reader<'_>,
    circumstances: &Circumstances<'_>,
    writer: &mut Writer,
) -> Result<(), Stop> {
    let verifier = reader.array()?;
    let name = reader.opaque(OPAQUE_LIMIT_BYTES)?;
    let flags = reader.u32()?;
    match reader.u32()? {
        // SP4_NONE
        0 => {}
        // SP4_MACH_CRED needs RPCSEC_GSS; SP4_SSV needs ciphers.
        1 => return Err(Status::Invalid.into()),
        2 => return Err(Status::NoEncryption.into()),
        _ => return Err(Status::BadXdr.into()),
    }
    // The client's implementation: its domain, its name and its date.
    if reader.count(1)? == 1 {
        reader.opaque(OPAQUE_LIMIT_BYTES)?;
        reader.opaque(OPAQUE_LIMIT_BYTES)?;
        reader.i64()?;
        reader.u32()?;
    }
    let known = CLIENT_FLAGS | if minor_version >= 2 { CLIENT_FLAGS_MINOR_2 } else { 0 };
    if flags & !known != 0 {
        return Err(Status::Invalid.into());
    }
    let exchanged = circumstances.state.exchange_id(
        Exchange {
            owner: Owner { verifier, name },
            principal: *circumstances.principal,
            is_update: flags & UPDATE_CONFIRMED != 0,
        },
        circumstances.now,
    )?;
    writer.u64(exchanged.client.0);
    writer.u32(exchanged.next_sequence);
    writer.u32(USE_NON_PNFS | if exchanged.is_confirmed { CONFIRMED } else { 0 });
    writer.u32(0); // SP4_NONE
    // The server's owner: minor and major ID; its scope.
    writer.u64(0);
    writer.opaque(circumstances.server_name);
    writer.opaque(circumstances.server_name);
    writer.u32(0); // no word about the implementation
    Ok(())
}

fn create_session(
    reader: &mut Reader<'_>,
    circumstances: &Circumstances<'_>,
    writer: &mut Writer,
) -> Result<(), Stop> {
    let client = ClientId(reader.u64()?);
    let (sequence, flags) = (reader.u32()?, reader.u32()?);
    let asked = CreateSession { fore: channel(reader)?, back: channel(reader)? };
    let _callback_program = reader.u32()?;
    callback_security(reader)?;
    if flags & !SESSION_FLAGS != 0 {
        return Err(Status::Invalid.into());
    }
    let created = circumstances.state.create_session(
        client,
        sequence,
        &asked,
        circumstances.principal,
        circumstances.now,
    )?;
    writer.fixed(&created.id.0);
    writer.u32(created.sequence);
    // Not persistent, no back channel, no RDMA.
    writer.u32(0);
    for channel in [&created.fore, &created.back] {
        for value in [
            channel.header_padding_bytes,
            channel.longest_call_bytes,
            channel.longest_reply_bytes,
            channel.longest_cached_reply_bytes,
            channel.operations,
            channel.slots,
        ] {
            writer.u32(value);
        }
        writer.u32(0);
    }
    Ok(())
}

fn channel(reader: &mut Reader<'_>) -> Result<Channel, XdrError> {
    let channel = Channel {
        header_padding_bytes: reader.u32()?,
        longest_call_bytes: reader.u32()?,
        longest_reply_bytes: reader.u32()?,
        longest_cached_reply_bytes: reader.u32()?,
        operations: reader.u32()?,
        slots: reader.u32()?,
    };
    // Of RDMA.
    if reader.count(1)? == 1 {
        reader.u32()?;
    }
    Ok(channel)
}

/// `callback_sec_parms4`, which nobody uses here: nothing is ever called back.
pub(super) fn callback_security(reader: &mut Reader<'_>) -> Result<(), XdrError> {
    for _ in 0..reader.count(CALLBACK_SECURITY_LIMIT)? {
        match reader.u32()? {
            0 => {}
            1 => {
                reader.u32()?;
                reader.opaque(linerate_rpc::MACHINE_LIMIT_BYTES)?;
                reader.u32()?;
                reader.u32()?;
                for _ in 0..reader.count(linerate_rpc::GROUPS_LIMIT)? {
                    reader.u32()?;
                }
            }
            6 => {
                reader.u32()?;
                reader.opaque(OPAQUE_LIMIT_BYTES)?;
                reader.opaque(OPAQUE_LIMIT_BYTES)?;
            }
            _ => return Err(XdrError::Unknown),
        }
    }
    Ok(())
}

fn bind_connection(
    reader: &mut Reader<'_>,
    circumstances: &Circumstances<'_>,
    writer: &mut Writer,
) -> Result<(), Stop> {
    let id = SessionId(reader.array()?);
    let direction = reader.u32()?;
    let _on_rdma = reader.boolean()?;
    let session = circumstances.state.session(id, circumstances.now)?;
    match direction {
        // CDFC4_FORE, CDFC4_FORE_OR_BOTH
        1 | 3 => {}
        // CDFC4_BACK, CDFC4_BACK_OR_BOTH: there is no back channel.
        2 | 7 => return Err(Status::Invalid.into()),
        _ => return Err(Status::BadXdr.into()),
    }
    writer.fixed(&session.id().0);
    writer.u32(1); // CDFS4_FORE
    writer.boolean(false);
    Ok(())
}
