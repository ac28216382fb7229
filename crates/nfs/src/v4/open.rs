//! OPEN, CLOSE, locks, and the stateids of these.
//!
//! Nothing is kept (`state`): a stateid is a number that was handed out.

use super::{
    evaluate::Evaluation,
    status::{Status, Stop},
};
use crate::{Fault, FileSystem};
use linerate_rpc::xdr::{Reader, XdrError};

/// The longest name of an owner of opens or locks (`NFS4_OPAQUE_LIMIT`).
const OWNER_LIMIT_BYTES: usize = 1024;
/// The longest attributes that an OPEN may set, in bytes.
const ATTRIBUTES_LIMIT_BYTES: usize = 4096;

const SHARE_READ: u32 = 1;
const SHARE_WRITE: u32 = 2;
/// What remains are wishes for delegations, and when to be told of them.
const SHARE_KNOWN: u32 = 0x3 | 0x0003_ff00;
const DENY_READ: u32 = 1;
const DENY_KNOWN: u32 = 3;

const READ_LOCKS: [u32; 2] = [1, 3];
const WRITE_LOCKS: [u32; 2] = [2, 4];

/// OPEN4_RESULT_LOCKTYPE_POSIX: locks are of ranges of bytes.
const LOCKTYPE_POSIX: u32 = 4;

/// A stateid (`stateid4`).
#[derive(Clone, Copy, Debug)]
pub(super) struct StateId {
    pub(super) sequence: u32,
    pub(super) other: [u8; 12],
}

impl StateId {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        Ok(Self { sequence: reader.u32()?, other: reader.array()? })
    }

    /// The current object's stateid, or one that means none (RFC 8881 section 8.2.3).
    fn is_special(&self) -> bool {
        self.other == [0; 12] || self.other == [0xff; 12]
    }
}

impl<F: FileSystem> Evaluation<'_, F> {
    fn write_state_id(&mut self, sequence: u32, other: [u8; 12]) {
        self.draft.bytes.u32(sequence);
        self.draft.bytes.fixed(&other);
    }

    /// OPEN (RFC 8881 section 18.16).
    pub(super) fn open(&mut self) -> Result<(), Stop> {
        let _sequence = self.reader.u32()?;
        let (access, deny) = (self.reader.u32()?, self.reader.u32()?);
        let _client = self.reader.u64()?;
        let _owner = self.reader.opaque(OWNER_LIMIT_BYTES)?;
        let creation = self.creation()?;
        let claim = self.reader.u32()?;
        self.object()?;
        if access & !SHARE_KNOWN != 0
            || !matches!(access & (SHARE_READ | SHARE_WRITE), 1..=3)
            || deny & !DENY_KNOWN != 0
        {
            return Err(Status::Invalid.into());
        }
        let target = match claim {
            // CLAIM_NULL: a name in the current directory.
            0 => match self.named() {
                Err(Stop::With(Status::NotFound)) if creation != Creation::None => {
                    return Err(Status::ReadOnly.into());
                }
                found => found?,
            },
            // CLAIM_PREVIOUS: what the client had open before the server's start.
            1 => {
                let _delegation = self.reader.u32()?;
                if self.sequenced.has_reclaimed {
                    return Err(Status::NoGrace.into());
                }
                self.object()?.clone()
            }
            // CLAIM_FH
            4 => self.object()?.clone(),
            // Those of delegations, of which there are none.
            2 | 3 | 5 | 6 => return Err(Status::NotSupported.into()),
            _ => return Err(Status::BadXdr.into()),
        };
        if creation == Creation::Exclusive {
            return Err(Status::Exists.into());
        }
        let opened = match self.files.open(self.caller, &target) {
            Err(Fault::NotFile) => return Err(self.no_file(&target)?.into()),
            opened => opened,
        };
        if access & SHARE_WRITE != 0 {
            return Err(Status::ReadOnly.into());
        }
        drop(opened?);
        // Readers are not known here, so nobody can be promised that there are none. That nobody writes is certain.
        if deny & DENY_READ != 0 {
            return Err(Status::ShareDenied.into());
        }
        let change = self.files.attributes(self.caller, self.object()?)?.change;
        self.current = Some(target);
        let other = self.state.new_state_id();
        self.write_state_id(1, other);
        // The directory did not change.
        self.draft.bytes.boolean(true);
        self.draft.bytes.u64(change);
        self.draft.bytes.u64(change);
        self.draft.bytes.u32(LOCKTYPE_POSIX);
        self.draft.bytes.u32(0); // no attributes were set
        self.draft.bytes.u32(0); // OPEN_DELEGATE_NONE
        Ok(())
    }

    /// `openflag4`
    fn creation(&mut self) -> Result<Creation, Stop> {
        match self.reader.u32()? {
            0 => return Ok(Creation::None),
            1 => {}
            _ => return Err(Status::BadXdr.into()),
        }
        let how = self.reader.u32()?;
        // EXCLUSIVE4, EXCLUSIVE4_1
        if matches!(how, 2 | 3) {
            self.reader.u64()?;
        }
        // All but EXCLUSIVE4
        if matches!(how, 0 | 1 | 3) {
            super::set::AttributeSet::read(&mut self.reader)?;
            self.reader.opaque(ATTRIBUTES_LIMIT_BYTES)?;
        }
        match how {
            0 => Ok(Creation::IfAbsent),
            1..=3 => Ok(Creation::Exclusive),
            _ => Err(Status::BadXdr.into()),
        }
    }

    /// OPEN_DOWNGRADE: from reading to reading.
    pub(super) fn open_downgrade(&mut self) -> Result<(), Stop> {
        let state_id = StateId::read(&mut self.reader)?;
        let (_sequence, access, _deny) = (self.reader.u32()?, self.reader.u32()?, self.reader.u32()?);
        self.object()?;
        if access & (SHARE_READ | SHARE_WRITE) != SHARE_READ {
            return Err(Status::Invalid.into());
        }
        self.write_state_id(state_id.sequence.wrapping_add(1), state_id.other);
        Ok(())
    }

    /// CLOSE: a stateid that is of no use any more is the answer (RFC 8881 section 18.2.4).
    pub(super) fn close(&mut self) -> Result<(), Stop> {
        let _sequence = self.reader.u32()?;
        StateId::read(&mut self.reader)?;
        self.object()?;
        self.write_state_id(u32::MAX, [0; 12]);
        Ok(())
    }

    /// LOCK: locks of readers never conflict, and there are no others.
    pub(super) fn lock(&mut self) -> Result<(), Stop> {
        let kind = self.reader.u32()?;
        let _is_reclaimed = self.reader.boolean()?;
        let (offset, length) = (self.reader.u64()?, self.reader.u64()?);
        let before = if self.reader.boolean()? {
            let _open_sequence = self.reader.u32()?;
            StateId::read(&mut self.reader)?;
            let _lock_sequence = self.reader.u32()?;
            let _client = self.reader.u64()?;
            self.reader.opaque(OWNER_LIMIT_BYTES)?;
            None
        } else {
            let state_id = StateId::read(&mut self.reader)?;
            let _lock_sequence = self.reader.u32()?;
            Some(state_id)
        };
        self.lockable(kind, offset, length)?;
        if WRITE_LOCKS.contains(&kind) {
            return Err(Status::OpenMode.into());
        }
        let (sequence, other) = match before {
            Some(state_id) => (state_id.sequence.wrapping_add(1), state_id.other),
            None => (1, self.state.new_state_id()),
        };
        self.write_state_id(sequence, other);
        Ok(())
    }

    /// LOCKT: nothing that is known here is in the way.
    pub(super) fn lock_test(&mut self) -> Result<(), Stop> {
        let kind = self.reader.u32()?;
        let (offset, length) = (self.reader.u64()?, self.reader.u64()?);
        let _client = self.reader.u64()?;
        self.reader.opaque(OWNER_LIMIT_BYTES)?;
        self.lockable(kind, offset, length)
    }

    /// LOCKU
    pub(super) fn unlock(&mut self) -> Result<(), Stop> {
        let kind = self.reader.u32()?;
        let _sequence = self.reader.u32()?;
        let state_id = StateId::read(&mut self.reader)?;
        let (offset, length) = (self.reader.u64()?, self.reader.u64()?);
        self.lockable(kind, offset, length)?;
        self.write_state_id(state_id.sequence.wrapping_add(1), state_id.other);
        Ok(())
    }

    fn lockable(&self, kind: u32, offset: u64, length: u64) -> Result<(), Stop> {
        let object = self.object()?;
        if !READ_LOCKS.contains(&kind) && !WRITE_LOCKS.contains(&kind) {
            return Err(Status::BadXdr.into());
        }
        // All ones: up to the end, wherever that is.
        if length == 0 || length != u64::MAX && offset.checked_add(length).is_none() {
            return Err(Status::Invalid.into());
        }
        match self.files.attributes(self.caller, object)?.kind {
            crate::Kind::File => Ok(()),
            _ => Err(self.no_file(object)?.into()),
        }
    }

    pub(super) fn test_state_ids(&mut self) -> Result<(), Stop> {
        // Sixteen bytes each, so that as many as are announced are there.
        let count = self.reader.count(self.reader.rest().len() / 16)?;
        self.draft.bytes.count(count);
        for _ in 0..count {
            let state_id = StateId::read(&mut self.reader)?;
            let status = self.known(state_id);
            self.draft.bytes.u32(status.number());
        }
        Ok(())
    }

    pub(super) fn free_state_id(&mut self) -> Result<(), Stop> {
        let state_id = StateId::read(&mut self.reader)?;
        match self.known(state_id) {
            Status::Ok => Ok(()),
            status => Err(status.into()),
        }
    }

    fn known(&self, state_id: StateId) -> Status {
        let is_known = !state_id.is_special() && self.state.is_own_state_id(&state_id.other);
        if is_known { Status::Ok } else { Status::BadStateId }
    }
}

/// Whether a file is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Creation {
    None,
    /// If there is none.
    IfAbsent,
    /// There must not be one.
    Exclusive,
}
