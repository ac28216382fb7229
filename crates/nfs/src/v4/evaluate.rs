//! The operations of a compound, one after the other, up to the first that fails.

use super::{
    COMPOUND_LABEL,
    attributes::Subject,
    compound::{Circumstances, Header, Sequenced},
    establish,
    operation::{ILLEGAL, Operation, Operations},
    state::{SessionId, State},
    status::{Status, Stop},
};
use crate::{Caller, FileSystem, Report, limits::Limits, reply::Draft};
use linerate_rpc::xdr::{Reader, Writer};

/// What an operation has answered that changes the server's own state. A compound that is evaluated again does not change it twice.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    index: usize,
    /// Of the compound's bytes, behind its arguments.
    left_bytes: usize,
    result: Result<Vec<u8>, Status>,
}

/// What remains free of the longest reply for the results behind a READ or a READDIR.
const RESERVE_BYTES: u64 = 64;

/// A compound that is being evaluated.
pub(super) struct Evaluation<'a, F: FileSystem> {
    pub(super) files: &'a F,
    pub(super) caller: &'a Caller<'a>,
    pub(super) limits: &'a Limits,
    pub(super) state: &'a State,
    pub(super) header: Header<'a>,
    pub(super) reader: Reader<'a>,
    pub(super) draft: &'a mut Draft<F::File>,
    pub(super) current: Option<F::Object>,
    pub(super) saved: Option<F::Object>,
    pub(super) sequenced: &'a Sequenced,
    memories: &'a mut Vec<Memory>,
    /// Of the operation that is being carried out.
    index: usize,
    operations: Operations,
}

/// A compound whose SEQUENCE was accepted.
pub(crate) struct Compound<'a> {
    pub(crate) header: Header<'a>,
    /// Behind SEQUENCE.
    pub(crate) reader: Reader<'a>,
    pub(crate) sequenced: &'a Sequenced,
    pub(crate) memories: &'a mut Vec<Memory>,
}

/// Evaluates what follows SEQUENCE. The draft is behind the reply's RPC header. `WouldWait` leaves a draft of no use.
pub(crate) fn evaluate<F: FileSystem>(
    files: &F,
    caller: &Caller<'_>,
    compound: Compound<'_>,
    circumstances: &Circumstances<'_>,
    draft: &mut Draft<F::File>,
) -> Result<Report, Stop> {
    let Compound { header, reader, sequenced, memories } = compound;
    Evaluation {
        files,
        caller,
        limits: circumstances.limits,
        state: circumstances.state,
        header,
        reader,
        draft,
        current: None,
        saved: None,
        sequenced,
        memories,
        index: 0,
        operations: Operations::default(),
    }
    .run(circumstances)
}

impl<F: FileSystem> Evaluation<'_, F> {
    fn run(mut self, circumstances: &Circumstances<'_>) -> Result<Report, Stop> {
        let status = self.draft.bytes.reserve_u32();
        self.draft.bytes.opaque(self.header.tag);
        let count = self.draft.bytes.reserve_u32();
        self.sequence_result();
        let mut outcome = Status::Ok;
        let mut done = 1;
        while outcome == Status::Ok && done < self.header.operations {
            self.index = done;
            outcome = self.next(circumstances)?;
            done += 1;
        }
        self.draft.bytes.fill(status, outcome.number());
        // At most as many as were announced.
        self.draft.bytes.fill(count, done as u32);
        Ok(Report { procedure: COMPOUND_LABEL, operations: self.operations, status: outcome.label() })
    }

    fn sequence_result(&mut self) {
        let session = self.sequenced.claim.session();
        let highest_slot = session.fore().slots.saturating_sub(1);
        let writer = &mut self.draft.bytes;
        writer.u32(Operation::Sequence.number());
        writer.u32(Status::Ok.number());
        writer.fixed(&session.id().0);
        writer.u32(self.sequenced.sequence);
        writer.u32(self.sequenced.slot);
        writer.u32(highest_slot);
        writer.u32(highest_slot);
        writer.u32(0); // nothing is wrong with the client's state
    }

    /// The next operation and its result.
    fn next(&mut self, circumstances: &Circumstances<'_>) -> Result<Status, Stop> {
        let Ok(number) = self.reader.u32() else {
            // There is no number to answer with.
            self.failed(ILLEGAL, Status::BadXdr, None);
            return Ok(Status::BadXdr);
        };
        let operation = Operation::of(number, self.header.minor_version);
        let Some(operation) = operation else {
            self.failed(ILLEGAL, Status::IllegalOperation, None);
            return Ok(Status::IllegalOperation);
        };
        self.operations.insert(operation);
        let before = self.draft.bytes.length_bytes();
        self.draft.bytes.u32(number);
        self.draft.bytes.u32(Status::Ok.number());
        let result = self.carry_out(operation, circumstances);
        let status = match result {
            Ok(()) if self.draft.length_bytes() > self.longest_reply_bytes() => Status::ReplyTooBig,
            Ok(()) if self.sequenced.is_kept && self.is_too_long_to_keep() => Status::ReplyTooBigToCache,
            Ok(()) => return Ok(Status::Ok),
            Err(Stop::WouldWait) => return Err(Stop::WouldWait),
            Err(Stop::With(status)) => status,
        };
        self.draft.truncate(before);
        self.failed(number, status, Some(operation));
        Ok(status)
    }

    fn failed(&mut self, number: u32, status: Status, operation: Option<Operation>) {
        self.draft.bytes.u32(number);
        self.draft.bytes.u32(status.number());
        // SETATTR4res names the attributes that were set in any case.
        if operation == Some(Operation::SetAttributes) {
            self.draft.bytes.u32(0);
        }
    }

    fn longest_reply_bytes(&self) -> u64 {
        self.sequenced.claim.session().fore().longest_reply_bytes.into()
    }

    fn is_too_long_to_keep(&self) -> bool {
        let longest = self.sequenced.claim.session().fore().longest_cached_reply_bytes;
        self.draft.length_bytes() > u64::from(longest)
    }

    /// What may still be written of this operation's result.
    pub(super) fn room_bytes(&self) -> u64 {
        let longest = self.longest_reply_bytes();
        let reserve_bytes = if self.index + 1 < self.header.operations { RESERVE_BYTES } else { 0 };
        longest.saturating_sub(self.draft.length_bytes()).saturating_sub(reserve_bytes)
    }

    /// The current object.
    pub(super) fn object(&self) -> Result<&F::Object, Status> {
        self.current.as_ref().ok_or(Status::NoFileHandle)
    }

    pub(super) fn subject(&self) -> Result<Subject<'_, F>, Status> {
        Ok(Subject { files: self.files, caller: self.caller, object: self.object()?, limits: self.limits })
    }

    fn carry_out(&mut self, operation: Operation, circumstances: &Circumstances<'_>) -> Result<(), Stop> {
        match operation {
            Operation::PutRootHandle | Operation::PutPublicHandle => self.put_root(),
            Operation::PutHandle => self.put_handle(),
            Operation::GetHandle => self.handle(),
            Operation::SaveHandle => self.save(),
            Operation::RestoreHandle => self.restore(),
            Operation::LookUp => self.look_up(),
            Operation::LookUpParent => self.look_up_parent(),
            Operation::GetAttributes => self.attributes(),
            Operation::Verify => self.verify(Status::NotSame),
            Operation::VerifyNot => self.verify(Status::Same),
            Operation::Access => self.access(),
            Operation::ReadLink => self.read_link(),
            Operation::SecurityOfName => self.security_of_name(),
            Operation::Security => self.security(),
            Operation::Read => self.read(),
            Operation::ReadDirectory => self.read_directory(),
            Operation::Open => self.open(),
            Operation::OpenDowngrade => self.open_downgrade(),
            Operation::Close => self.close(),
            Operation::Lock => self.lock(),
            Operation::LockTest => self.lock_test(),
            Operation::Unlock => self.unlock(),
            Operation::TestStateId => self.test_state_ids(),
            Operation::FreeStateId => self.free_state_id(),
            Operation::ReclaimComplete => self.reclaim_complete(),
            Operation::BackChannelControl => {
                let _program = self.reader.u32()?;
                Ok(establish::callback_security(&mut self.reader)?)
            }
            Operation::Sequence => Err(Status::SequencePosition.into()),
            Operation::BindConnection => Err(Status::NotOnlyOperation.into()),
            Operation::SetSsv => Err(Status::Invalid.into()),
            Operation::ExchangeId | Operation::CreateSession | Operation::DestroyClientId => {
                let minor_version = self.header.minor_version;
                self.once(|reader, writer| {
                    establish::carry_out(operation, minor_version, reader, circumstances, writer)
                })
            }
            Operation::DestroySession => self.destroy_session(),
            _ if operation.writes() => {
                self.object()?;
                if operation.needs_saved() && self.saved.is_none() {
                    return Err(Status::NoFileHandle.into());
                }
                Err(Status::ReadOnly.into())
            }
            _ => Err(Status::NotSupported.into()),
        }
    }

    /// Carries out what changes the server's own state, unless an evaluation before this one has done that (INV-SLOT-1).
    pub(super) fn once(
        &mut self,
        change: impl FnOnce(&mut Reader<'_>, &mut Writer) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let done = self.memories.iter().find(|memory| memory.index == self.index);
        let result = if let Some(memory) = done {
            let rest = self.reader.rest();
            let behind = rest.len().saturating_sub(memory.left_bytes);
            self.reader = Reader::new(rest.get(behind..).unwrap_or_default());
            memory.result.clone()
        } else {
            let mut body = Writer::default();
            let result = match change(&mut self.reader, &mut body) {
                Ok(()) => Ok(body.into_bytes()),
                Err(Stop::With(status)) => Err(status),
                Err(Stop::WouldWait) => return Err(Stop::WouldWait),
            };
            let (index, left_bytes) = (self.index, self.reader.rest().len());
            self.memories.push(Memory { index, left_bytes, result: result.clone() });
            result
        };
        self.draft.bytes.fixed(&result?);
        Ok(())
    }

    fn destroy_session(&mut self) -> Result<(), Stop> {
        let own = self.sequenced.claim.session().id();
        let is_last = self.index + 1 == self.header.operations;
        let state = self.state;
        self.once(|reader, _| {
            let id = SessionId(reader.array()?);
            if id == own && !is_last {
                return Err(Status::NotOnlyOperation.into());
            }
            Ok(state.destroy_session(id)?)
        })
    }

    fn reclaim_complete(&mut self) -> Result<(), Stop> {
        let session = self.sequenced.claim.session();
        let has_object = self.current.is_some();
        self.once(|reader, _| {
            // For one file system only: nothing was lost there, so there is nothing to end.
            if reader.boolean()? {
                return if has_object { Ok(()) } else { Err(Status::NoFileHandle.into()) };
            }
            Ok(State::reclaim_complete(session)?)
        })
    }
}
