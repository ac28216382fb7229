//! A slot of a session: one call at a time, each with the number that follows its predecessor's (RFC 8881 section 2.10.6).
//!
//! A client that has lost its connection sends a call again, with the same number. A reply that it asked to be kept is kept, if there is
//! room. Every other call is evaluated again. It is answered with what is so now, which the client cannot tell from a reply
//! that was late: nothing was changed by the first.

use super::session::Session;
use crate::v4::status::Status;
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// What calls are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// Of a call's operations.
    pub(crate) fn of(operations: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        operations.hash(&mut hasher);
        Self(hasher.finish())
    }
}

#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Of the last call.
    sequence: u32,
    call: Option<Fingerprint>,
    is_busy: bool,
    reply: Option<Box<[u8]>>,
}

impl Slot {
    /// `None`, if the call is to be evaluated (INV-SLOT-1).
    pub(super) fn enter(&mut self, sequence: u32, call: Fingerprint) -> Result<Option<Box<[u8]>>, Status> {
        if sequence == self.sequence.wrapping_add(1) {
            if self.is_busy {
                // The client has given up a call that is still evaluated, and may not use the slot yet.
                return Err(Status::Delay);
            }
            self.sequence = sequence;
            self.call = Some(call);
        } else if sequence == self.sequence && self.call.is_some() {
            if self.is_busy {
                return Err(Status::Delay);
            }
            if self.call != Some(call) {
                return Err(Status::FalseRetry);
            }
            if self.reply.is_some() {
                return Ok(self.reply.clone());
            }
        } else {
            return Err(Status::Misordered);
        }
        self.is_busy = true;
        Ok(None)
    }

    pub(super) fn forget_reply(&mut self, cached_bytes: &AtomicUsize) {
        if let Some(reply) = self.reply.take() {
            cached_bytes.fetch_sub(reply.len(), Ordering::Relaxed);
        }
    }
}

/// What becomes of a call that comes with a slot's number.
#[derive(Debug)]
pub(crate) enum Entered {
    /// It is to be evaluated.
    First(Claim),
    /// It was answered before, with this.
    Again(Box<[u8]>),
}

/// A slot, as long as its call is evaluated. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    session: Arc<Session>,
    index: usize,
}

impl Claim {
    pub(super) const fn new(session: Arc<Session>, index: usize) -> Self {
        Self { session, index }
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Keeps the reply for a retry, if there is room.
    pub(crate) fn keep(&self, reply: &[u8]) {
        let (cached_bytes, limit_bytes) = (self.session.cached_bytes(), self.session.cached_limit_bytes());
        let room = |bytes: usize| bytes.checked_add(reply.len()).filter(|bytes| *bytes <= limit_bytes);
        if cached_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok() {
            self.session.with_slot(self.index, |slot| {
                slot.forget_reply(cached_bytes);
                slot.reply = Some(reply.into());
            });
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.session.with_slot(self.index, |slot| slot.is_busy = false);
    }
}
