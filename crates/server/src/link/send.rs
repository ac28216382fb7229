//! Sending: the engine's turns, and the waits between them.

use super::{Link, Protection, fetches::Fetches, secure::Secure, unsent::Unsent, wire::Wire};
use crate::{
    ending::Ending,
    metrics::{Direction, Engine},
    watch::Stage,
};
use linerate_engine::{
    Queue, Turn,
    plain::{self, LastPage},
    user::{Sealed, Sizing},
};
use linerate_os::{
    kernel_tls::System,
    socket::{self, Follows},
};
use linerate_record::{KeySource, MAX_PLAINTEXT_BYTES, RecordError, Version};
use std::{io, os::fd::AsFd, time::Instant};

/// Segments that a fresh connection may send in its first round trip: the initial window is ten (RFC 6928), and the
/// handshake's tickets, which go before, fit one.
const OPENING_SEGMENTS: usize = 9;
/// Smaller responses fit an initial window of the smallest segments in use.
const LEAST_OPENING_BYTES: u64 = 8 << 10;

impl<K: KeySource> Link<K> {
    /// Sends all of `queue`, a response. Returns when the last byte is in the socket; `queue` tells how far it got otherwise.
    pub(crate) async fn send(&mut self, queue: &mut Queue) -> Result<(), Ending> {
        self.begin(Stage::Sending);
        self.wire.taken_bytes = 0;
        if let Protection::Tls(secure) = &mut self.protection {
            secure.begin_response(&self.wire, queue.remaining_bytes());
        }
        let result = self.send_whole(queue).await;
        if let Protection::Tls(secure) = &mut self.protection {
            secure.end_placement(queue.remaining_bytes());
        }
        result
    }

    async fn send_whole(&mut self, queue: &mut Queue) -> Result<(), Ending> {
        let quantum_bytes = self.wire.workplace.tuning.get().quantum_bytes;
        let mut corked = false;
        let mut turn_bytes = 0;
        let mut fetches = Fetches::default();
        loop {
            self.receive_if_ready()?;
            if let Protection::Tls(secure) = &mut self.protection {
                secure.reach_boundary(&mut self.wire, queue.remaining_bytes()).await?;
            }
            if queue.is_done() {
                return if corked {
                    socket::hold_small_segments(&self.wire.stream, false).map_err(Ending::Socket)
                } else {
                    Ok(())
                };
            }
            if !corked && self.leaves_by_several_calls(queue.remaining_bytes()) {
                corked = true;
                socket::hold_small_segments(&self.wire.stream, true).map_err(Ending::Socket)?;
            }
            let turn = self.turn(queue)?;
            if let Turn::Sent(bytes) | Turn::Full(bytes) = turn {
                self.wire.count_taken(self.engine(), bytes);
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
                    fetches.bring(&self.wire, &range, queue.end_of(&range)).await?;
                    self.begin(Stage::Sending);
                }
                Turn::KeyUpdate => {
                    self.wire.workplace.metrics.key_updates.of(Direction::Sent).increment();
                }
            }
        }
    }

    /// Whether `sendfile` would be called more than once: each call but the last would end with a segment that is not full.
    fn leaves_by_several_calls(&self, left_bytes: u64) -> bool {
        match self.engine() {
            Engine::User => false,
            Engine::Plain => left_bytes > self.wire.workplace.tuning.get().quantum_bytes,
            // The end is a call of its own (`LastPage::Copied`).
            Engine::Kernel | Engine::Nic => left_bytes > plain::COPIED_BYTES as u64,
        }
    }

    /// A turn of the engine that carries the connection.
    pub(super) fn turn(&mut self, queue: &mut Queue) -> Result<Turn, Ending> {
        match &mut self.protection {
            Protection::Plain => {
                let quantum_bytes = self.wire.workplace.tuning.get().quantum_bytes;
                Ok(plain::turn(&System, self.wire.stream.as_fd(), queue, quantum_bytes, LastPage::InPlace)?)
            }
            Protection::Tls(secure) => secure.turn(&self.wire, queue),
        }
    }
}

impl<K: KeySource> Secure<K> {
    /// A response of so many bytes begins.
    fn begin_response(&mut self, wire: &Wire, response_bytes: u64) {
        self.batches.begin_response();
        self.has_room = true;
        self.begin_placement(wire, response_bytes);
    }

    /// Between two turns: what is sealed goes, and then the connection, at a record boundary, to the engine that is to carry
    /// the rest.
    async fn reach_boundary(&mut self, wire: &mut Wire, left_bytes: u64) -> Result<(), Ending> {
        if wire.peer_closed && self.channel.version() == Version::Tls12 {
            // RFC 5246 7.2.1: after the peer's close_notify pending writes are discarded. TLS 1.3 lets the peer
            // close its side and still read ours.
            return Err(Ending::PeerClosed);
        }
        if self.has_waiting() {
            // What the handshake left goes with the first response; what did not fit into the socket before goes alone.
            let is_first = self.engine() == Engine::User && self.placement.has_sent_nothing(left_bytes);
            self.flush(wire, if is_first { Follows::More } else { Follows::Nothing }).await?;
        }
        if left_bytes == 0 {
            // What is called the adapter's is the adapter's at its end, too.
            self.follow_the_adapter(wire)?;
            // An idle connection holds none (INV-MEMORY-1).
            self.unsent = Unsent::default();
            self.count_exactly(wire);
            return Ok(());
        }
        self.place(wire, left_bytes).await?;
        self.follow_the_adapter(wire)?;
        self.allow_zero_copy(wire)
    }

    /// A turn of the engine that carries the connection. Nothing may wait that was sealed before: it would be overtaken
    /// (INV-ORDER-1).
    fn turn(&mut self, wire: &Wire, queue: &mut Queue) -> Result<Turn, Ending> {
        if self.has_waiting() {
            return Err(Ending::Record(RecordError::Misuse("sealed bytes wait for the socket")));
        }
        let timed = wire.workplace.placer.begin_turn();
        let before_bytes = queue.remaining_bytes();
        let turn = if self.channel.is_handed_over() {
            self.kernel_turn(wire, queue)?
        } else {
            self.sealed_turn(wire, queue)?
        };
        if let Some(began) = timed {
            self.observe(wire, began, before_bytes - queue.remaining_bytes(), &turn);
        }
        Ok(turn)
    }

    /// What a turn cost, for placement to learn from. What the user engine sealed and the socket did not take is not paid
    /// for in full yet.
    fn observe(&self, wire: &Wire, began: Instant, bytes: u64, turn: &Turn) {
        if self.channel.is_handed_over() || matches!(turn, Turn::Sent(_)) {
            wire.workplace.placer.observe(began, self.placed(), self.channel.cipher(), bytes);
        }
    }

    /// One batch: sealed, sent, and what did not fit kept.
    fn sealed_turn(&mut self, wire: &Wire, queue: &mut Queue) -> Result<Turn, Ending> {
        if !self.expects_room(wire) {
            return Ok(Turn::Full(0));
        }
        let tuning = wire.workplace.tuning.get();
        let largest_bytes = if queue.is_mapped() { tuning.map_batch_bytes } else { tuning.read_batch_bytes };
        let batch_bytes = if queue.remaining_bytes() <= MAX_PLAINTEXT_BYTES as u64 {
            // One record, with no need to ask where a batch should end.
            largest_bytes
        } else {
            self.batches.next_bytes(&wire.stream, largest_bytes).map_err(Ending::Socket)?
        };
        let opening_bytes = self.opening_bytes(wire, queue.remaining_bytes()).map_err(Ending::Socket)?;
        let sizing = Sizing { record_bytes: MAX_PLAINTEXT_BYTES, batch_bytes, opening_bytes };
        let channel = &mut self.channel;
        let mut batch = wire.workplace.batch.borrow_mut();
        let (before_bytes, updates_before) = (queue.remaining_bytes(), channel.key_updates_sent());
        if let Sealed::Cold(range) = batch.seal(channel, queue, sizing)? {
            return Ok(Turn::Cold(range));
        }
        wire.workplace
            .metrics
            .key_updates
            .of(Direction::Sent)
            .add(channel.key_updates_sent() - updates_before);
        let sealed = batch.sealed();
        let follows = if self.ends_behind && queue.is_done() { Follows::More } else { Follows::Nothing };
        let sent = match socket::send(&wire.stream, sealed, follows) {
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
            wire.begin(Stage::Sending);
        }
        Ok(Turn::Full(self.unsent.keep(sealed, sent, batch.records())))
    }

    /// Whether the socket will take a batch. What is sealed before there is room has to be copied aside, and is no longer in
    /// the processor's cache when it leaves at last.
    fn expects_room(&mut self, wire: &Wire) -> bool {
        // Nothing waits in most cases, which is cheaper to learn than all that makes a socket writable.
        let has_room = self.has_room
            || socket::not_sent_bytes(&wire.stream).is_none_or(|bytes| bytes == 0)
            || socket::is_writable(&wire.stream);
        self.has_room = has_room;
        has_room
    }

    /// Where a record of the connection's first response has to end, so that the client can open what comes in the first
    /// round trip instead of waiting in the next for a record's end. 0 where all comes at once.
    fn opening_bytes(&mut self, wire: &Wire, remaining_bytes: u64) -> io::Result<usize> {
        if !self.placement.has_sent_nothing(remaining_bytes) || remaining_bytes < LEAST_OPENING_BYTES {
            return Ok(0);
        }
        Ok(OPENING_SEGMENTS * self.batches.segment_bytes(&wire.stream)?)
    }
}
