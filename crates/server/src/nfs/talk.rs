//! Calls and replies on one connection, in any order.

use super::{
    call::{self, Job, Outcome, Pieces},
    outgoing::Outgoing,
    service::NfsService,
    warmth::{first_cold, next_ahead},
};
use crate::{
    ending::Ending,
    exchange::Service,
    link::Link,
    metrics::{NfsCall, NfsTls},
    watch::{Expiry, Stage},
};
use linerate_export::{OpenFile, Refusal};
use linerate_nfs::Client;
use linerate_record::{KeySource, RecordError};
use linerate_rpc::Records;
use std::{collections::VecDeque, io, ops::Range, sync::Arc};
use tokio::task::JoinSet;

/// Calls that are not answered yet; no more are taken from the socket until some are.
const CALLS_LIMIT: usize = 256;
/// The longest call. Nobody writes here, and no other call is nearly as long.
const CALL_LIMIT_BYTES: usize = 64 << 10;
/// Replies in memory; no more calls are taken while there are more bytes.
const REPLIES_LIMIT_BYTES: u64 = 1 << 20;
/// Waiting threads that one connection may have at a time: others have calls that wait, too (INV-COLD-1).
const WAITING_LIMIT: usize = 4;
/// A connection is kept idle at least so long: clients renew their leases less often than browsers ask.
const LEAST_IDLE_MS: u64 = 360_000;
/// What a reply's records may lack of being full, beside the last: a batch ends where it ends.
const RECORD_BYTES_AT_LEAST: u64 = 4096;

/// How answering ended.
pub(super) enum End {
    /// The client was told to begin its handshake.
    StartTls,
    /// The connection is over.
    Over(Ending),
}

/// What a waiting thread does for a connection.
enum Work {
    /// Evaluates a call.
    Evaluate(Job),
    /// Brings a range of a file into memory, for this reply.
    Fetch { file: Arc<OpenFile>, range: Range<u64>, reply: Pieces },
    /// Brings a range of a file into memory for calls that will come.
    Ahead { file: Arc<OpenFile>, range: Range<u64> },
}

/// What came of it.
enum Done {
    Evaluated(Option<Pieces>),
    Fetched(Pieces),
}

/// A connection that answers calls.
pub(super) struct Talk<'a, K> {
    link: &'a mut Link<K>,
    service: &'a Service,
    client: Arc<Client>,
    records: Records,
    /// The time for the rest of a record runs.
    is_midway: bool,
    /// What is done when all replies are sent.
    start_tls: Option<Vec<u8>>,
    /// The snapshot by which the client was judged last, and whether nothing is for it.
    generation: Option<u64>,
    refusal: Option<Refusal>,
    outgoing: Outgoing,
    /// Work for waiting threads, and that which they do.
    queued: VecDeque<Work>,
    waiting: JoinSet<Done>,
}

impl<'a, K: KeySource> Talk<'a, K> {
    pub(super) fn new(link: &'a mut Link<K>, service: &'a Service, client: Arc<Client>) -> Self {
        Self {
            link,
            service,
            client,
            records: Records::new(CALL_LIMIT_BYTES),
            is_midway: false,
            start_tls: None,
            generation: None,
            refusal: None,
            outgoing: Outgoing::default(),
            queued: VecDeque::new(),
            waiting: JoinSet::new(),
        }
    }

    /// Answers until the connection ends.
    pub(super) async fn run(mut self) -> End {
        loop {
            match self.turn().await {
                Ok(Next::Call) => {}
                Ok(Next::StartTls) => return End::StartTls,
                Err(ending) => return End::Over(ending),
            }
        }
    }

    async fn turn(&mut self) -> Result<Next, Ending> {
        self.take_calls()?;
        self.hand_over_work();
        while let Some(done) = self.waiting.try_join_next() {
            self.take_done(done)?;
        }
        if !self.outgoing.is_empty() {
            self.send().await?;
            if !(self.outgoing.is_empty() && self.link.arrived().is_empty()) {
                // A client that asks as fast as it is answered lets others go first.
                tokio::task::yield_now().await;
            }
            return Ok(Next::Call);
        }
        let is_quiet = self.waiting.is_empty() && self.queued.is_empty();
        if is_quiet && let Some(answer) = self.start_tls.take() {
            let mut queue = [linerate_engine::Piece::Bytes(answer)].into_iter().collect();
            self.link.send(&mut queue).await?;
            return Ok(Next::StartTls);
        }
        if is_quiet && !self.records.is_midway() && self.service.workplace.watches.is_draining() {
            return Err(Ending::Expired(Expiry::Drain));
        }
        self.begin_waiting(is_quiet);
        tokio::select! {
            biased;
            Some(done) = self.waiting.join_next(), if !is_quiet => self.take_done(done)?,
            received = self.link.receive_some(), if self.has_room() => match received {
                Ok(true) => {}
                // The peer has left, or the key is used up.
                Ok(false) if self.link.can_send() => return Err(Ending::PeerClosed),
                Ok(false) => return Err(Ending::Record(RecordError::KeyExhausted)),
                Err(ending) => return Err(ending),
            },
        }
        Ok(Next::Call)
    }

    /// What is waited for, and how long.
    fn begin_waiting(&mut self, is_quiet: bool) {
        let was_midway = std::mem::replace(&mut self.is_midway, self.records.is_midway());
        if !is_quiet {
            self.link.begin_own_work();
            // The peer's time runs anew when it is waited for again.
            self.is_midway = false;
        } else if !self.is_midway {
            let idle_ms = self.service.workplace.time_limits.get().idle_ms;
            self.link.begin_for(Stage::Idle, idle_ms.max(LEAST_IDLE_MS));
        } else if !was_midway {
            // It runs from the record's first bytes, however slowly the others come.
            self.link.begin(Stage::Head);
        }
    }

    /// Whether another call may be taken.
    fn has_room(&self) -> bool {
        self.start_tls.is_none()
            && self.outgoing.len() + self.queued.len() + self.waiting.len() < CALLS_LIMIT
            && self.outgoing.memory_bytes() < REPLIES_LIMIT_BYTES
    }

    /// Takes the calls that have arrived.
    fn take_calls(&mut self) -> Result<(), Ending> {
        let arrived = std::mem::take(self.link.arrived());
        let mut rest = arrived.as_slice();
        let snapshot = self.service.snapshots.load();
        // A listener that is given up has its connections served to their end.
        let Some(nfs) = snapshot.nfs.clone() else { return Err(Ending::Expired(Expiry::Drain)) };
        if self.generation.replace(snapshot.generation) != Some(snapshot.generation) {
            self.refusal = self.judge(&nfs);
        }
        while !rest.is_empty() && self.has_room() {
            let taken = self.records.take(rest).map_err(|_| Ending::BadRequest)?;
            rest = rest.get(taken.consumed_bytes..).unwrap_or_default();
            let Some(record) = taken.record else { continue };
            let outcome = call::take(&nfs, &self.client, self.refusal.is_some(), record);
            if let (Outcome::Denied(_), Some(refusal)) = (&outcome, self.refusal) {
                nfs.exports.count(refusal);
            }
            self.take_outcome(outcome)?;
        }
        if !rest.is_empty() {
            let behind = std::mem::replace(self.link.arrived(), rest.to_vec());
            self.link.arrived().extend(behind);
        }
        Ok(())
    }

    /// Why nothing is for this client, if that is so. The operator is told.
    fn judge(&self, nfs: &NfsService) -> Option<Refusal> {
        let (export, refusal) = nfs.refusal(&self.client)?;
        // One in the clear may be about to ask for TLS.
        if refusal != Refusal::NoTls {
            nfs.complain(self.client.address, &format!("refused: {export}: {refusal}"));
        }
        Some(refusal)
    }

    fn take_outcome(&mut self, outcome: Outcome) -> Result<(), Ending> {
        let count = |call| self.service.workplace.metrics.nfs_calls.of(call).increment();
        match outcome {
            Outcome::Answered(reply) => {
                count(NfsCall::Answered);
                self.put(reply);
            }
            Outcome::WouldWait(job) => {
                count(NfsCall::Waited);
                self.queued.push_back(Work::Evaluate(job));
            }
            Outcome::Denied(reply) => {
                count(NfsCall::Denied);
                self.put(reply);
            }
            Outcome::StartTls(answer) => {
                self.service.workplace.metrics.nfs_tls.of(NfsTls::Begun).increment();
                self.start_tls = Some(answer);
            }
            Outcome::TlsDeclined(reply) => {
                self.service.workplace.metrics.nfs_tls.of(NfsTls::Declined).increment();
                self.put(reply);
            }
            Outcome::Malformed => {
                count(NfsCall::Malformed);
                return Err(Ending::BadRequest);
            }
        }
        Ok(())
    }

    /// A reply is made: it is sent, once what it sends is in memory.
    fn put(&mut self, reply: Pieces) {
        match first_cold(&reply) {
            None => {
                if self.queued.len() < CALLS_LIMIT
                    && let Some((file, range)) = next_ahead(&reply)
                {
                    self.queued.push_back(Work::Ahead { file, range });
                }
                self.outgoing.push(reply);
            }
            Some((file, range)) => {
                self.service.workplace.metrics.cold_reads.increment();
                self.queued.push_back(Work::Fetch { file, range, reply });
            }
        }
    }

    fn hand_over_work(&mut self) {
        while self.waiting.len() < WAITING_LIMIT
            && let Some(work) = self.queued.pop_front()
        {
            let read_ahead = self.service.workplace.read_ahead;
            self.waiting.spawn_blocking(move || match work {
                Work::Evaluate(job) => Done::Evaluated(job.run()),
                // What cannot be read is told by the engine that reads it.
                Work::Fetch { file, range, reply } => {
                    let _ = read_ahead(file.file(), range.start, range.end - range.start);
                    Done::Fetched(reply)
                }
                Work::Ahead { file, range } => {
                    let _ = read_ahead(file.file(), range.start, range.end - range.start);
                    Done::Evaluated(None)
                }
            });
        }
    }

    fn take_done(&mut self, done: Result<Done, tokio::task::JoinError>) -> Result<(), Ending> {
        match done {
            Ok(Done::Evaluated(Some(reply))) => self.put(reply),
            // What is missing even now is fetched by the link.
            Ok(Done::Fetched(reply)) => self.outgoing.push(reply),
            Ok(Done::Evaluated(None)) => {}
            // The pool is shut down, or the work panicked: the client waits for ever on a connection that stays.
            Err(error) => return Err(Ending::Unreadable(io::Error::other(error))),
        }
        Ok(())
    }

    /// Sends what is next.
    async fn send(&mut self) -> Result<(), Ending> {
        // In the clear the kernel sends from the file itself.
        let mappings = self.link.is_tls().then_some((&self.service.mappings, &*self.service.workplace));
        let mut queue = self.outgoing.next(mappings).map_err(Ending::Unreadable)?;
        let bytes = queue.remaining_bytes();
        // No key update may come (INV-NFS-1): the connection ends before a reply that the key has no room for.
        let records = bytes / RECORD_BYTES_AT_LEAST + 8;
        if !self.link.can_send() || self.link.records_left().is_some_and(|left| left < records) {
            return Err(Ending::Record(RecordError::KeyExhausted));
        }
        self.link.send(&mut queue).await?;
        // If a record is waited for next, its time runs anew.
        self.is_midway = false;
        if let Some(decision) = self.link.decision() {
            self.service.workplace.metrics.place(&decision);
        }
        Ok(())
    }
}

enum Next {
    Call,
    StartTls,
}
