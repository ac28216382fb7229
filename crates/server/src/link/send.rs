//! Sending: the engine's turns, and the waits between them.

use super::{Link, Woken, secure, unsent::Unsent};
use crate::{
    ending::Ending,
    metrics::{Direction, Engine},
    watch::Stage,
};
use linerate_engine::{
    FileRange, Queue, Turn, plain,
    user::{Sealed, Sizing},
};
use linerate_os::{
    file::Fetch,
    kernel_tls::System,
    limits::is_without_descriptor,
    socket::{self, Follows},
};
use linerate_record::{KeySource, MAX_PLAINTEXT_BYTES, RecordError, Version};
use std::{io, os::fd::AsFd, time::Instant};
use tokio::io::Interest;

/// Segments that a fresh connection may send in its first round trip: the initial window is ten (RFC 6928), and the
/// handshake's tickets, which go before, fit one.
const OPENING_SEGMENTS: usize = 9;
/// Smaller responses fit an initial window of the smallest segments in use.
const LEAST_OPENING_BYTES: u64 = 8 << 10;

/// Bytes fetched at once where a file is cold.
const FETCH_BYTES: u64 = 2 << 20;

impl<K: KeySource> Link<K> {
    /// The engine that carries this connection's responses.
    pub(crate) fn engine(&self) -> Engine {
        match self.channel() {
            None => Engine::Plain,
            Some(channel) if channel.is_handed_over() => self.promoted_engine(),
            Some(_) => Engine::User,
        }
    }

    /// Sends all of `queue`, a response. Returns when the last byte is in the socket; `queue` tells how far it got otherwise.
    pub(crate) async fn send(&mut self, queue: &mut Queue) -> Result<(), Ending> {
        self.begin(Stage::Sending);
        self.taken_bytes = 0;
        self.batches.begin_response();
        self.has_room = true;
        self.begin_placement(queue.remaining_bytes());
        let result = self.send_placed(queue).await;
        self.end_placement(queue.remaining_bytes());
        result
    }

    async fn send_placed(&mut self, queue: &mut Queue) -> Result<(), Ending> {
        let quantum_bytes = self.workplace.tuning.get().quantum_bytes;
        let mut corked = false;
        let mut turn_bytes = 0;
        let mut last_cold = None;
        loop {
            self.receive_if_ready()?;
            if self.peer_closed && self.channel().is_some_and(|channel| channel.version() == Version::Tls12) {
                // RFC 5246 7.2.1: after the peer's close_notify pending writes are discarded. TLS 1.3 lets the peer
                // close its side and still read ours.
                return Err(Ending::PeerClosed);
            }
            if !self.unsent.is_empty() || self.has_control() {
                self.flush().await?;
            }
            if queue.is_done() {
                // An idle connection holds none (INV-MEMORY-1).
                self.unsent = Unsent::default();
                self.count_exactly();
                return if corked {
                    socket::hold_small_segments(&self.stream, false).map_err(Ending::Socket)
                } else {
                    Ok(())
                };
            }
            self.place(queue.remaining_bytes()).await?;
            self.allow_zero_copy()?;
            if !corked
                && self.engine() != Engine::User
                && queue.remaining_bytes() > plain::COPIED_BYTES as u64
            {
                corked = true;
                socket::hold_small_segments(&self.stream, true).map_err(Ending::Socket)?;
            }
            let timed = self.workplace.desk.begin_turn();
            let before_bytes = queue.remaining_bytes();
            let turn = self.turn(queue)?;
            if let Some(began) = timed {
                self.observe(began, before_bytes - queue.remaining_bytes(), &turn);
            }
            if let Turn::Sent(bytes) | Turn::Full(bytes) = turn {
                self.count_taken(bytes);
                if bytes > 0 {
                    self.begin(Stage::Sending);
                }
            }
            match turn {
                Turn::Sent(bytes) => {
                    turn_bytes += bytes;
                    if turn_bytes >= quantum_bytes && !queue.is_done() {
                        turn_bytes = 0;
                        tokio::task::yield_now().await;
                    }
                }
                Turn::Full(_) => {
                    turn_bytes = 0;
                    self.wait_for_room().await?;
                }
                Turn::Cold(range) => {
                    // What a quick fetch did not bring is read in full.
                    let again = last_cold.as_ref().is_some_and(|last| range.begins_like(last));
                    let how = if again { Fetch::Read } else { Fetch::Touch };
                    self.fetch(&range, how).await?;
                    last_cold = Some(range);
                    self.begin(Stage::Sending);
                }
                Turn::KeyUpdate => self.workplace.metrics.key_updates.of(Direction::Sent).increment(),
            }
        }
    }

    /// Bytes of the response under way, head and content, that the socket has taken: those of records that it has taken to
    /// their end, or that the kernel is to make.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Counts what the socket has taken: the log and the metrics both tell this figure, and no other (INV-LOG-2).
    pub(super) fn count_taken(&mut self, bytes: u64) {
        self.taken_bytes += bytes;
        self.sent_bytes += bytes;
        self.workplace.metrics.send(self.engine(), bytes);
    }

    /// Sends what is sealed and waits, before anything else is sealed (INV-ORDER-1).
    pub(crate) async fn flush(&mut self) -> Result<(), Ending> {
        while !self.unsent.is_empty() {
            match socket::send(&self.stream, self.unsent.bytes(), Follows::Nothing) {
                Ok(sent) => {
                    let taken_bytes = self.unsent.advance(sent);
                    self.count_taken(taken_bytes);
                    if self.unsent.is_empty() {
                        break;
                    }
                    self.begin(Stage::Sending);
                    // It was not all: the socket is full, and says when it is not.
                    self.wait_for_room().await?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room().await?,
                Err(error) => return Err(Ending::Socket(error)),
            }
        }
        self.flush_control().await
    }

    /// Waits until the socket takes bytes again; what arrives meanwhile is received.
    pub(super) async fn wait_for_room(&mut self) -> Result<(), Ending> {
        self.clear_readiness(Interest::WRITABLE);
        while self.wait(self.wants_to_receive(), true).await? == Woken::Readable {
            self.receive_ready()?;
        }
        self.has_room = true;
        Ok(())
    }

    /// A turn of the engine that carries the connection. Nothing may wait that was sealed before: it would be overtaken
    /// (INV-ORDER-1).
    pub(super) fn turn(&mut self, queue: &mut Queue) -> Result<Turn, Ending> {
        if !self.unsent.is_empty() || self.has_control() {
            return Err(Ending::Record(RecordError::Misuse("sealed bytes wait for the socket")));
        }
        match self.engine() {
            Engine::Plain => {
                let quantum_bytes = self.workplace.tuning.get().quantum_bytes;
                Ok(plain::turn(&System, self.stream.as_fd(), queue, quantum_bytes)?)
            }
            Engine::User => self.sealed_turn(queue),
            Engine::Kernel | Engine::Nic => self.kernel_turn(queue),
        }
    }

    /// What a turn cost, for placement to learn from. What the user engine sealed and the socket did not take is not paid
    /// for in full yet.
    fn observe(&self, began: Instant, bytes: u64, turn: &Turn) {
        let Some(engine) = self.engine().placed() else { return };
        let is_whole = engine != linerate_placement::Engine::User || matches!(turn, Turn::Sent(_));
        if let Some(combination) = self.combination().filter(|_| is_whole) {
            self.workplace.desk.observe(began, engine, combination.cipher, bytes);
        }
    }

    /// One batch: sealed, sent, and what did not fit kept.
    fn sealed_turn(&mut self, queue: &mut Queue) -> Result<Turn, Ending> {
        if !self.expects_room() {
            return Ok(Turn::Full(0));
        }
        let tuning = self.workplace.tuning.get();
        let largest_bytes = if queue.is_mapped() { tuning.map_batch_bytes } else { tuning.read_batch_bytes };
        let batch_bytes = if queue.remaining_bytes() <= MAX_PLAINTEXT_BYTES as u64 {
            // One record, with no need to ask where a batch should end.
            largest_bytes
        } else {
            self.batches.next_bytes(&self.stream, largest_bytes).map_err(Ending::Socket)?
        };
        let opening_bytes = self.opening_bytes(queue.remaining_bytes()).map_err(Ending::Socket)?;
        let sizing = Sizing { record_bytes: MAX_PLAINTEXT_BYTES, batch_bytes, opening_bytes };
        let channel = secure(&mut self.protection)?;
        let mut batch = self.workplace.batch.borrow_mut();
        let (before_bytes, updates_before) = (queue.remaining_bytes(), channel.key_updates_sent());
        if let Sealed::Cold(range) = batch.seal(channel, queue, sizing)? {
            return Ok(Turn::Cold(range));
        }
        self.workplace
            .metrics
            .key_updates
            .of(Direction::Sent)
            .add(channel.key_updates_sent() - updates_before);
        let sealed = batch.sealed();
        let sent = match socket::send(&self.stream, sealed, Follows::Nothing) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(Ending::Socket(error)),
        };
        self.has_room = false;
        if sent == sealed.len() {
            self.batches.taken_whole();
            return Ok(Turn::Sent(before_bytes - queue.remaining_bytes()));
        }
        self.batches.taken_in_part();
        if sent > 0 {
            // A peer that takes part of a record goes on.
            self.begin(Stage::Sending);
        }
        Ok(Turn::Full(self.unsent.keep(sealed, sent, batch.records())))
    }

    /// Whether the socket will take a batch. What is sealed before there is room has to be copied aside, and is no longer in
    /// the processor's cache when it leaves at last.
    fn expects_room(&mut self) -> bool {
        // Nothing waits in most cases, which is cheaper to learn than all that makes a socket writable.
        let has_room = self.has_room
            || socket::not_sent_bytes(&self.stream).is_none_or(|bytes| bytes == 0)
            || socket::is_writable(&self.stream);
        self.has_room = has_room;
        has_room
    }

    /// Where a record of the connection's first response has to end, so that the client can open what comes in the first
    /// round trip instead of waiting in the next for a record's end. 0 where all comes at once.
    fn opening_bytes(&mut self, remaining_bytes: u64) -> io::Result<usize> {
        if !self.placement.has_sent_nothing(remaining_bytes) || remaining_bytes < LEAST_OPENING_BYTES {
            return Ok(0);
        }
        Ok(OPENING_SEGMENTS * self.batches.segment_bytes(&self.stream)?)
    }

    /// Has a cold part of the file read on a thread that may wait for the disk (INV-COLD-1: a worker never does).
    pub(super) async fn fetch(&mut self, cold: &FileRange, how: Fetch) -> Result<(), Ending> {
        let FileRange { source, range } = cold;
        self.workplace.metrics.cold_reads.increment();
        self.begin_own_work();
        let read_ahead = self.workplace.read_ahead;
        let reserve = &self.workplace.reserve;
        let file =
            reserve.with(|| source.file().try_clone(), is_without_descriptor).map_err(Ending::Unreadable)?;
        let length_bytes = (range.end - range.start).max(FETCH_BYTES);
        let start = range.start;
        let fetched = tokio::task::spawn_blocking(move || read_ahead(&file, start, length_bytes, how)).await;
        self.watch.forget_pace();
        match fetched {
            Ok(result) => result.map_err(Ending::Unreadable),
            // The pool is shut down, or the read panicked: either way the bytes will not come.
            Err(error) => Err(Ending::Unreadable(io::Error::other(error))),
        }
    }
}
