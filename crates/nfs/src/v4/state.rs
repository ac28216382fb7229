//! What is kept about clients: their records, their sessions, and what their sessions' slots have answered.
//!
//! Opens are not kept. Nobody may write, so nothing that a client has open can be in another's way, and any stateid is as good as
//! another for reading, also one of before a restart.

mod client;
mod session;
mod slot;

pub(crate) use client::{ClientId, Exchange, Exchanged, Owner, Principal};
pub(crate) use session::{Channel, CreateSession, CreatedSession, Session, SessionId};
pub(crate) use slot::{Claim, Entered, Fingerprint};

use super::status::Status;
use crate::limits::Limits;
use client::Clients;
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// All clients of a server, shared by its threads.
#[derive(Debug)]
pub(crate) struct State {
    limits: Limits,
    seed: u128,
    table: Mutex<Table>,
    /// Bytes of replies that slots keep.
    cached_bytes: Arc<AtomicUsize>,
    next_state_id: AtomicU64,
}

/// How much is kept about clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Clients that are known, those without a session included.
    pub clients: usize,
    /// Their sessions.
    pub sessions: usize,
    /// Replies that are kept for retries, in bytes.
    pub kept_replies_bytes: usize,
}

#[derive(Debug)]
struct Table {
    clients: Clients,
    sessions: HashMap<SessionId, Arc<Session>>,
    next_session: u64,
    /// When those are looked for that have been silent for too long.
    next_sweep: Duration,
}

/// Takes a lock, also behind a thread that has panicked: what it guards is whole between any two statements.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// `seed` is another one after each start of the server, and nobody else knows it.
    pub(crate) fn new(limits: Limits, seed: u128) -> Self {
        // Client IDs of an earlier start are known by their first half, but for one in 2^32.
        let boot = (hash(seed, 0) >> 32) as u32;
        Self {
            limits,
            seed,
            table: Mutex::new(Table {
                clients: Clients::new(boot),
                sessions: HashMap::new(),
                next_session: 1,
                next_sweep: Duration::ZERO,
            }),
            cached_bytes: Arc::default(),
            next_state_id: AtomicU64::new(1),
        }
    }

    /// EXCHANGE_ID (RFC 8881 section 18.35.4).
    pub(crate) fn exchange_id(&self, exchange: Exchange<'_>, now: Duration) -> Result<Exchanged, Status> {
        let mut table = locked(&self.table);
        let table = &mut *table;
        if now >= table.next_sweep {
            table.next_sweep = now.saturating_add(self.limits.lease);
            table.expire(self.limits.silence.max(self.limits.lease), now);
        }
        if table.clients.is_full(&self.limits) {
            table.expire(self.limits.lease, now);
        }
        let (exchanged, gone) = table.clients.exchange(exchange, &self.limits, now)?;
        table.forget(&gone);
        Ok(exchanged)
    }

    /// CREATE_SESSION (RFC 8881 section 18.36.4).
    pub(crate) fn create_session(
        &self,
        client: ClientId,
        sequence: u32,
        asked: &CreateSession,
        principal: &Principal,
        now: Duration,
    ) -> Result<CreatedSession, Status> {
        let mut table = locked(&self.table);
        let table = &mut *table;
        if let Some(created) = table.clients.retried(client, sequence, &self.limits, now)? {
            return Ok(created);
        }
        let created = CreatedSession {
            id: SessionId::new(client, hash(self.seed, table.next_session)),
            sequence,
            fore: asked.fore.within(&self.limits)?,
            back: asked.back,
        };
        table.next_session += 1;
        let gone = table.clients.created(client, principal, created, &self.limits, now)?;
        table.forget(&gone);
        let lease = table.clients.lease(client).ok_or(Status::StaleClient)?;
        let session = Session::new(created, client, lease, Arc::clone(&self.cached_bytes), &self.limits);
        table.sessions.insert(created.id, Arc::new(session));
        Ok(created)
    }

    /// The session, which has just been used.
    pub(crate) fn session(&self, id: SessionId, now: Duration) -> Result<Arc<Session>, Status> {
        let session = locked(&self.table).sessions.get(&id).map(Arc::clone).ok_or(Status::BadSession)?;
        session.lease().renew(now);
        Ok(session)
    }

    /// DESTROY_SESSION.
    pub(crate) fn destroy_session(&self, id: SessionId) -> Result<(), Status> {
        let mut table = locked(&self.table);
        let session = table.sessions.remove(&id).ok_or(Status::BadSession)?;
        table.clients.lost_session(session.client(), id);
        Ok(())
    }

    /// DESTROY_CLIENTID.
    pub(crate) fn destroy_client(&self, client: ClientId) -> Result<(), Status> {
        locked(&self.table).clients.destroy(client)
    }

    /// RECLAIM_COMPLETE for all file systems.
    pub(crate) fn reclaim_complete(session: &Session) -> Result<(), Status> {
        if session.lease().complete_reclaims() { Ok(()) } else { Err(Status::CompleteAlready) }
    }

    /// A stateid's part that names it: of this start of the server, and not the last one's.
    pub(crate) fn new_state_id(&self) -> [u8; 12] {
        let number = self.next_state_id.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; 12];
        for (place, byte) in id.iter_mut().zip(self.state_id_mark().into_iter().chain(number.to_be_bytes())) {
            *place = byte;
        }
        id
    }

    /// Whether a stateid may be one that this start of the server has handed out.
    pub(crate) fn is_own_state_id(&self, id: &[u8; 12]) -> bool {
        let Some((mark, number)) = id.split_first_chunk::<4>() else { return false };
        let Some(number) = number.first_chunk() else { return false };
        *mark == self.state_id_mark()
            && (1..self.next_state_id.load(Ordering::Relaxed)).contains(&u64::from_be_bytes(*number))
    }

    fn state_id_mark(&self) -> [u8; 4] {
        (hash(self.seed, u64::MAX) as u32).to_be_bytes()
    }

    pub(crate) fn sizes(&self) -> Sizes {
        let table = locked(&self.table);
        Sizes {
            clients: table.clients.count(),
            sessions: table.sessions.len(),
            kept_replies_bytes: self.cached_bytes.load(Ordering::Relaxed),
        }
    }
}

impl Table {
    fn expire(&mut self, longest: Duration, now: Duration) {
        let gone = self.clients.expire(longest, now);
        self.forget(&gone);
    }

    fn forget(&mut self, sessions: &[SessionId]) {
        for id in sessions {
            self.sessions.remove(id);
        }
    }
}

/// Numbers that cannot be foreseen without the seed. An identifier is no secret in NFS: where sessions are not tied to their
/// client by stronger means (SP4_NONE), any client that sees one may use it. This only keeps them from being counted through.
fn hash(seed: u128, number: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, number).hash(&mut hasher);
    hasher.finish()
}
