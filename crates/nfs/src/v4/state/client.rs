//! Records of clients (RFC 8881 sections 2.4 and 18.35).

use super::{CreatedSession, SessionId};
use crate::{limits::Limits, v4::status::Status};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// A client's number (`clientid4`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientId(pub(crate) u64);

/// What a client calls itself (`client_owner4`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner<'a> {
    /// Another one after each start of the client.
    pub(crate) verifier: [u8; 8],
    /// Always the same.
    pub(crate) name: &'a [u8],
}

/// As which user a client made its record. Not on which connection: one client of Linux may come with TLS and without, for two
/// mounts, and calls itself the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Principal {
    /// AUTH_NONE
    Nobody,
    /// AUTH_SYS
    User(u32),
}

/// What EXCHANGE_ID asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange<'a> {
    pub(crate) owner: Owner<'a>,
    pub(crate) principal: Principal,
    /// The client says that its record is there already (EXCHGID4_FLAG_UPD_CONFIRMED_REC_A).
    pub(crate) is_update: bool,
}

/// What EXCHANGE_ID answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchanged {
    pub(crate) client: ClientId,
    /// What the next CREATE_SESSION has to bring.
    pub(crate) next_sequence: u32,
    pub(crate) is_confirmed: bool,
}

/// When a client was last heard of, and how far it has come.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    seen_ms: AtomicU64,
    has_reclaimed: AtomicBool,
}

impl Lease {
    pub(crate) fn renew(&self, now: Duration) {
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.seen_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    /// Whether that was said for the first time.
    pub(crate) fn complete_reclaims(&self) -> bool {
        !self.has_reclaimed.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn has_reclaimed(&self) -> bool {
        self.has_reclaimed.load(Ordering::Relaxed)
    }

    fn silence(&self, now: Duration) -> Duration {
        now.saturating_sub(Duration::from_millis(self.seen_ms.load(Ordering::Relaxed)))
    }
}

#[derive(Debug)]
struct Record {
    name: Arc<[u8]>,
    verifier: [u8; 8],
    principal: Principal,
    is_confirmed: bool,
    /// What the next CREATE_SESSION has to bring.
    next_sequence: u32,
    /// What the last CREATE_SESSION was answered with.
    last_created: Option<CreatedSession>,
    sessions: Vec<SessionId>,
    lease: Arc<Lease>,
}

/// The records of a client's name: one that a session has confirmed, and one that is to take its place.
#[derive(Debug, Default)]
struct Records {
    confirmed: Option<ClientId>,
    unconfirmed: Option<ClientId>,
}

#[derive(Debug)]
pub(super) struct Clients {
    boot: u32,
    next: u32,
    by_id: HashMap<ClientId, Record>,
    by_name: HashMap<Arc<[u8]>, Records>,
}

impl Clients {
    pub(super) fn new(boot: u32) -> Self {
        Self { boot, next: 1, by_id: HashMap::new(), by_name: HashMap::new() }
    }

    pub(super) fn count(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_full(&self, limits: &Limits) -> bool {
        self.by_id.len() >= limits.clients
    }

    /// Removes what has been silent for longer than this. Returns the sessions.
    pub(super) fn expire(&mut self, longest: Duration, now: Duration) -> Vec<SessionId> {
        let silent = self.by_id.iter().filter(|(_, record)| record.lease.silence(now) > longest);
        let ids: Vec<_> = silent.map(|(&id, _)| id).collect();
        ids.into_iter().flat_map(|id| self.remove(id)).collect()
    }

    /// The cases of RFC 8881 section 18.35.4. Returns the sessions of records that are gone, too.
    pub(super) fn exchange(
        &mut self,
        exchange: Exchange<'_>,
        limits: &Limits,
        now: Duration,
    ) -> Result<(Exchanged, Vec<SessionId>), Status> {
        let Exchange { owner, principal, is_update } = exchange;
        let records = self.by_name.get(owner.name);
        let confirmed_id = records.and_then(|records| records.confirmed);
        let unconfirmed_id = records.and_then(|records| records.unconfirmed);
        let mut gone = Vec::new();
        match confirmed_id.and_then(|id| Some((id, self.by_id.get(&id)?))) {
            // 7
            None if is_update => return Err(Status::NotFound),
            // 1 and 4
            None => {}
            Some((id, record)) => {
                let is_same_start = record.verifier == owner.verifier;
                let is_same_principal = record.principal == principal;
                match (is_update, is_same_start, is_same_principal) {
                    // 8
                    (true, false, _) => return Err(Status::NotSame),
                    // 9
                    (true, true, false) => return Err(Status::NotPermitted),
                    // 2 and 6
                    (_, true, true) => {
                        record.lease.renew(now);
                        let next_sequence = record.next_sequence;
                        if let (false, Some(unconfirmed)) = (is_update, unconfirmed_id) {
                            gone.extend(self.remove(unconfirmed));
                        }
                        return Ok((Exchanged { client: id, next_sequence, is_confirmed: true }, gone));
                    }
                    // 3: another client's, whose lease still runs
                    (false, _, false)
                        if !record.sessions.is_empty() && record.lease.silence(now) <= limits.lease =>
                    {
                        return Err(Status::ClientInUse);
                    }
                    // 3: another client's, whose lease is over
                    (false, _, false) => gone.extend(self.remove(id)),
                    // 5: the client was started anew. Its old record goes when this one is confirmed.
                    (false, false, true) => {}
                }
            }
        }
        if let Some(unconfirmed) = unconfirmed_id {
            gone.extend(self.remove(unconfirmed));
        }
        if self.is_full(limits) {
            // A record without a session is the cheapest to make, for an attacker, too, and to lose: its client begins again.
            let unconfirmed = self.by_id.iter().filter(|(_, record)| !record.is_confirmed);
            let eldest = unconfirmed.max_by_key(|(_, record)| record.lease.silence(now)).map(|(&id, _)| id);
            gone.extend(self.remove(eldest.ok_or(Status::Delay)?));
        }
        Ok((self.add(owner, principal, now), gone))
    }

    fn add(&mut self, owner: Owner<'_>, principal: Principal, now: Duration) -> Exchanged {
        let client = ClientId(u64::from(self.boot) << 32 | u64::from(self.next));
        self.next = self.next.wrapping_add(1);
        let name: Arc<[u8]> = Arc::from(owner.name);
        let lease = Arc::new(Lease::default());
        lease.renew(now);
        let record = Record {
            name: Arc::clone(&name),
            verifier: owner.verifier,
            principal,
            is_confirmed: false,
            next_sequence: 1,
            last_created: None,
            sessions: Vec::new(),
            lease,
        };
        self.by_id.insert(client, record);
        self.by_name.entry(name).or_default().unconfirmed = Some(client);
        Exchanged { client, next_sequence: 1, is_confirmed: false }
    }

    /// The reply to a CREATE_SESSION that was answered before.
    pub(super) fn retried(
        &mut self,
        client: ClientId,
        sequence: u32,
        limits: &Limits,
        now: Duration,
    ) -> Result<Option<CreatedSession>, Status> {
        let record = self.by_id.get(&client).ok_or(Status::StaleClient)?;
        // A record that nothing has confirmed is worth a lease (RFC 8881 section 18.35.4).
        if !record.is_confirmed && record.lease.silence(now) > limits.lease {
            self.remove(client);
            return Err(Status::StaleClient);
        }
        if sequence == record.next_sequence {
            return Ok(None);
        }
        match record.last_created {
            Some(created) if created.sequence == sequence => Ok(Some(created)),
            _ => Err(Status::Misordered),
        }
    }

    /// A session was created. The client's record is confirmed by that, and another of its name is gone with its sessions, which
    /// are returned.
    pub(super) fn created(
        &mut self,
        client: ClientId,
        principal: &Principal,
        created: CreatedSession,
        limits: &Limits,
        now: Duration,
    ) -> Result<Vec<SessionId>, Status> {
        let record = self.by_id.get_mut(&client).ok_or(Status::StaleClient)?;
        if !record.is_confirmed && record.principal != *principal {
            return Err(Status::ClientInUse);
        }
        if record.sessions.len() >= limits.sessions_per_client {
            return Err(Status::NoSpace);
        }
        record.sessions.push(created.id);
        record.last_created = Some(created);
        record.next_sequence = record.next_sequence.wrapping_add(1);
        record.lease.renew(now);
        let mut gone = Vec::new();
        if !record.is_confirmed {
            record.is_confirmed = true;
            let records = self.by_name.entry(Arc::clone(&record.name)).or_default();
            records.unconfirmed = None;
            let before = records.confirmed.replace(client);
            gone = before.map(|before| self.remove(before)).unwrap_or_default();
        }
        Ok(gone)
    }

    pub(super) fn lease(&self, client: ClientId) -> Option<Arc<Lease>> {
        self.by_id.get(&client).map(|record| Arc::clone(&record.lease))
    }

    pub(super) fn lost_session(&mut self, client: ClientId, session: SessionId) {
        if let Some(record) = self.by_id.get_mut(&client) {
            record.sessions.retain(|id| *id != session);
        }
    }

    pub(super) fn destroy(&mut self, client: ClientId) -> Result<(), Status> {
        let record = self.by_id.get(&client).ok_or(Status::StaleClient)?;
        if !record.sessions.is_empty() {
            return Err(Status::ClientBusy);
        }
        self.remove(client);
        Ok(())
    }

    fn remove(&mut self, client: ClientId) -> Vec<SessionId> {
        let Some(record) = self.by_id.remove(&client) else { return Vec::new() };
        if let Some(records) = self.by_name.get_mut(&record.name) {
            for id in [&mut records.confirmed, &mut records.unconfirmed] {
                id.take_if(|id| *id == client);
            }
            if records.confirmed.is_none() && records.unconfirmed.is_none() {
                self.by_name.remove(&record.name);
            }
        }
        record.sessions
    }
}
