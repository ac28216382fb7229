//! The frame of a COMPOUND: what comes before its operations, and what those are that are carried out once, at its arrival.

use super::{
    establish,
    evaluate::Memory,
    operation::{ILLEGAL, Operation},
    state::{Claim, Entered, Fingerprint, Principal, SessionId, State},
    status::{Status, Stop},
};
use crate::{limits::Limits, reply::Draft};
use linerate_rpc::xdr::{Reader, Writer, XdrError};
use std::time::Duration;

/// The longest tag, in bytes. Linux sends none; the RFC sets no limit.
const TAG_LIMIT_BYTES: usize = 1024;
/// How many operations a compound may announce at all: each takes four bytes of a call.
const COUNT_LIMIT: usize = 1 << 16;

/// What precedes the operations (`COMPOUND4args`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<'a> {
    pub(super) tag: &'a [u8],
    pub(super) minor_version: u32,
    pub(super) operations: usize,
}

impl<'a> Header<'a> {
    /// How long a reply with SEQUENCE's result alone is: the header of RPC, the compound's, and 44 bytes.
    fn least_reply_bytes(&self) -> usize {
        24 + 12 + self.tag.len().next_multiple_of(4) + 44
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Ok(Self {
            tag: reader.opaque(TAG_LIMIT_BYTES)?,
            minor_version: reader.u32()?,
            operations: reader.count(COUNT_LIMIT)?,
        })
    }

    /// The whole of a reply without a result.
    fn write_alone(&self, status: Status, writer: &mut Writer) {
        writer.u32(status.number());
        writer.opaque(self.tag);
        writer.u32(0);
    }

    /// The whole of a reply with one result, whose body `write_body` adds.
    fn write_one(
        &self,
        operation: u32,
        status: Status,
        writer: &mut Writer,
        write_body: impl FnOnce(&mut Writer),
    ) {
        writer.u32(status.number());
        writer.opaque(self.tag);
        writer.u32(1);
        writer.u32(operation);
        writer.u32(status.number());
        write_body(writer);
    }
}

/// What is done with a compound when it arrives.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Its reply is whole, and in the draft.
    Answered,
    /// The operations behind SEQUENCE are to be evaluated.
    Claimed(Sequenced),
}

/// A compound whose SEQUENCE was accepted.
#[derive(Debug)]
pub(crate) struct Sequenced {
    pub(super) claim: Claim,
    pub(super) sequence: u32,
    pub(super) slot: u32,
    /// The client wants the reply to be kept.
    pub(super) is_kept: bool,
    /// When the call came, the client had said that it has claimed again all that it had before the server's start.
    pub(super) has_reclaimed: bool,
}

/// What `arrive` needs to know beside the compound.
pub(crate) struct Circumstances<'a> {
    pub(crate) state: &'a State,
    pub(crate) limits: &'a Limits,
    pub(crate) server_name: &'a [u8],
    pub(crate) principal: &'a Principal,
    pub(crate) call_bytes: usize,
    pub(crate) now: Duration,
}

/// Takes a compound: refuses it, carries out an operation that stands alone, or claims a session's slot for it.
/// `reader` is behind the header, and is left behind SEQUENCE.
pub(crate) fn arrive<F>(
    header: &Header<'_>,
    reader: &mut Reader<'_>,
    circumstances: &Circumstances<'_>,
    draft: &mut Draft<F>,
) -> Arrival {
    let writer = &mut draft.bytes;
    if !matches!(header.minor_version, 1 | 2) {
        header.write_alone(Status::MinorVersion, writer);
        return Arrival::Answered;
    }
    if header.operations == 0 {
        header.write_alone(Status::Ok, writer);
        return Arrival::Answered;
    }
    let Ok(number) = reader.u32() else {
        header.write_alone(Status::BadXdr, writer);
        return Arrival::Answered;
    };
    let Some(operation) = Operation::of(number, header.minor_version) else {
        header.write_one(ILLEGAL, Status::IllegalOperation, writer, |_| {});
        return Arrival::Answered;
    };
    if operation == Operation::Sequence {
        return sequence(header, reader, circumstances, writer);
    }
    let mut body = Writer::default();
    let result = if !operation.needs_no_session() {
        Err(Stop::With(Status::NotInSession))
    } else if header.operations > 1 {
        Err(Stop::With(Status::NotOnlyOperation))
    } else {
        establish::carry_out(operation, header.minor_version, reader, circumstances, &mut body)
    };
    let status = match result {
        Ok(()) => Status::Ok,
        Err(Stop::With(status)) => status,
        // None of these looks at a file.
        Err(Stop::WouldWait) => Status::Delay,
    };
    header.write_one(number, status, writer, |writer| {
        if status == Status::Ok {
            writer.fixed(body.as_bytes());
        }
    });
    Arrival::Answered
}

/// SEQUENCE (RFC 8881 section 18.46).
fn sequence(
    header: &Header<'_>,
    reader: &mut Reader<'_>,
    circumstances: &Circumstances<'_>,
    writer: &mut Writer,
) -> Arrival {
    let claimed = enter(header, reader, circumstances);
    match claimed {
        Ok((Entered::First(claim), sequence, slot, is_kept)) => {
            let has_reclaimed = claim.session().lease().has_reclaimed();
            Arrival::Claimed(Sequenced { claim, sequence, slot, is_kept, has_reclaimed })
        }
        Ok((Entered::Again(reply), ..)) => {
            writer.fixed(&reply);
            Arrival::Answered
        }
        Err(status) => {
            header.write_one(Operation::Sequence.number(), status, writer, |_| {});
            Arrival::Answered
        }
    }
}

type Place = (Entered, u32, u32, bool);

fn enter(
    header: &Header<'_>,
    reader: &mut Reader<'_>,
    circumstances: &Circumstances<'_>,
) -> Result<Place, Status> {
    let read = |reader: &mut Reader<'_>| -> Result<_, XdrError> {
        let id = SessionId(reader.array()?);
        let (sequence, slot, _highest_slot) = (reader.u32()?, reader.u32()?, reader.u32()?);
        Ok((id, sequence, slot, reader.boolean()?))
    };
    let (id, sequence, slot, is_kept) = read(reader).map_err(|_| Status::BadXdr)?;
    let session = circumstances.state.session(id, circumstances.now)?;
    let channel = session.fore();
    if circumstances.call_bytes > channel.longest_call_bytes as usize {
        return Err(Status::RequestTooBig);
    }
    if header.operations > channel.operations as usize {
        return Err(Status::TooManyOperations);
    }
    if header.least_reply_bytes() > channel.longest_reply_bytes as usize {
        return Err(Status::ReplyTooBig);
    }
    if is_kept && header.least_reply_bytes() > channel.longest_cached_reply_bytes as usize {
        return Err(Status::ReplyTooBigToCache);
    }
    // Not SEQUENCE itself: what it says of the highest slot in use may be another when a call is sent again.
    let operations = Fingerprint::of(reader.rest());
    Ok((session.enter(slot, sequence, operations)?, sequence, slot, is_kept))
}

/// Keeps the reply for a retry: if the client wants that, or if a second evaluation would find that its changes are made.
pub(crate) fn keep<F>(sequenced: &Sequenced, memories: &[Memory], draft: &Draft<F>) {
    if (sequenced.is_kept || !memories.is_empty())
        && let Some(results) = draft.results()
    {
        sequenced.claim.keep(results);
    }
}
