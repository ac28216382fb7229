//! Sessions (RFC 8881 section 2.10).

use super::{
    client::{ClientId, Lease},
    slot::{Claim, Entered, Fingerprint, Slot},
};
use crate::{limits::Limits, v4::status::Status};
use std::sync::{Arc, Mutex, atomic::AtomicUsize};

/// A session's name (`sessionid4`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(pub(crate) [u8; 16]);

impl SessionId {
    pub(super) fn new(client: ClientId, unforeseen: u64) -> Self {
        let mut id = [0; 16];
        let bytes = client.0.to_be_bytes().into_iter().chain(unforeseen.to_be_bytes());
        id.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
        Self(id)
    }
}

/// What may be sent on one of a session's channels (`channel_attrs4`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Channel {
    pub(crate) header_padding_bytes: u32,
    pub(crate) longest_call_bytes: u32,
    pub(crate) longest_reply_bytes: u32,
    pub(crate) longest_cached_reply_bytes: u32,
    pub(crate) operations: u32,
    pub(crate) slots: u32,
}

/// The least that calls and replies need to be of any use: SEQUENCE and an operation.
const LEAST_BYTES: u32 = 256;

impl Channel {
    /// What is granted to a client that asks for this.
    pub(super) fn within(&self, limits: &Limits) -> Result<Self, Status> {
        if self.longest_call_bytes < LEAST_BYTES || self.longest_reply_bytes < LEAST_BYTES {
            return Err(Status::TooSmall);
        }
        if self.slots == 0 || self.operations == 0 {
            return Err(Status::Invalid);
        }
        Ok(Self {
            header_padding_bytes: 0,
            longest_call_bytes: self.longest_call_bytes.min(limits.call_bytes),
            longest_reply_bytes: self.longest_reply_bytes.min(limits.longest_reply_bytes()),
            longest_cached_reply_bytes: self.longest_cached_reply_bytes.min(limits.cached_reply_bytes),
            operations: self.operations.min(limits.operations),
            slots: self.slots.min(limits.slots),
        })
    }
}

/// What CREATE_SESSION asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateSession {
    pub(crate) fore: Channel,
    pub(crate) back: Channel,
}

/// What CREATE_SESSION answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CreatedSession {
    pub(crate) id: SessionId,
    pub(crate) sequence: u32,
    pub(crate) fore: Channel,
    pub(crate) back: Channel,
}

/// A session. It spans connections, and the threads that serve them.
#[derive(Debug)]
pub(crate) struct Session {
    created: CreatedSession,
    client: ClientId,
    lease: Arc<Lease>,
    slots: Mutex<Vec<Slot>>,
    /// Bytes of replies that all slots of all sessions keep.
    cached_bytes: Arc<AtomicUsize>,
    cached_limit_bytes: usize,
}

impl Session {
    pub(super) fn new(
        created: CreatedSession,
        client: ClientId,
        lease: Arc<Lease>,
        cached_bytes: Arc<AtomicUsize>,
        limits: &Limits,
    ) -> Self {
        Self {
            created,
            client,
            lease,
            slots: Mutex::new((0..created.fore.slots).map(|_| Slot::default()).collect()),
            cached_bytes,
            cached_limit_bytes: limits.cached_replies_bytes,
        }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.created.id
    }

    pub(crate) fn fore(&self) -> &Channel {
        &self.created.fore
    }

    pub(crate) fn client(&self) -> ClientId {
        self.client
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// A call comes with this number in this slot (RFC 8881 section 18.46.3).
    pub(crate) fn enter(
        self: &Arc<Self>,
        number: u32,
        sequence: u32,
        call: Fingerprint,
    ) -> Result<Entered, Status> {
        let mut slots = super::locked(&self.slots);
        let index = usize::try_from(number).map_err(|_| Status::BadSlot)?;
        let slot = slots.get_mut(index).ok_or(Status::BadSlot)?;
        match slot.enter(sequence, call)? {
            Some(reply) => Ok(Entered::Again(reply)),
            None => {
                slot.forget_reply(&self.cached_bytes);
                Ok(Entered::First(Claim::new(Arc::clone(self), index)))
            }
        }
    }

    /// What `change` does to a slot.
    pub(super) fn with_slot(&self, index: usize, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = super::locked(&self.slots).get_mut(index) {
            change(slot);
        }
    }

    pub(super) fn cached_bytes(&self) -> &AtomicUsize {
        &self.cached_bytes
    }

    pub(super) fn cached_limit_bytes(&self) -> usize {
        self.cached_limit_bytes
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let slots = std::mem::take(self.slots.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner));
        slots.into_iter().for_each(|mut slot| slot.forget_reply(&self.cached_bytes));
    }
}
