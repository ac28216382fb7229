//! A connection as HTTP sees it: bytes in, responses out, with or without TLS in between.
//!
//! The link owns the socket ([`Wire`]) and, with TLS, the half that makes and opens records ([`Secure`]). Memory for batches
//! and for receiving belongs to the worker and is borrowed for the length of a system call: an idle connection holds
//! neither (INV-MEMORY-1).

mod behind;
mod close;
mod fetches;
mod kernel;
mod placement;
mod receive;
mod secure;
mod send;
#[cfg(test)]
mod tests;
mod unsent;
mod wire;

pub(crate) use close::Linger;

use crate::{
    ending::Ending,
    metrics::Engine,
    view::Recent,
    watch::{Stage, Watch},
    workplace::Workplace,
};
use linerate_placement::{Combination, Decision};
use linerate_record::{Channel, KeySource};
use secure::Secure;
use std::rc::Rc;
use tokio::net::TcpStream;
use wire::Wire;

pub(crate) struct Link<K> {
    wire: Wire,
    protection: Protection<K>,
}

/// How the bytes on the socket are protected.
enum Protection<K> {
    /// Not at all.
    Plain,
    /// By TLS records.
    Tls(Box<Secure<K>>),
}

impl<K: KeySource> Link<K> {
    /// A connection in the clear.
    pub(crate) fn plain(stream: TcpStream, watch: Rc<Watch>, workplace: Rc<Workplace>) -> Self {
        Self { wire: Wire::new(stream, watch, workplace), protection: Protection::Plain }
    }

    /// Takes over a connection after its handshake; [`Link::take_records`] gives it what came behind that. `unsent` is what
    /// the handshake has not sent.
    pub(crate) fn tls(
        stream: TcpStream,
        watch: Rc<Watch>,
        workplace: Rc<Workplace>,
        channel: Channel<K>,
        unsent: Vec<u8>,
    ) -> Self {
        let protection = Protection::Tls(Box::new(Secure::new(channel, unsent)));
        Self { wire: Wire::new(stream, watch, workplace), protection }
    }

    /// The half that a connection with TLS has.
    fn secure(&self) -> Option<&Secure<K>> {
        match &self.protection {
            Protection::Plain => None,
            Protection::Tls(secure) => Some(secure),
        }
    }

    /// Whether there is TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.secure().is_some()
    }

    /// The engine that carries this connection's responses.
    pub(crate) fn engine(&self) -> Engine {
        self.secure().map_or(Engine::Plain, Secure::engine)
    }

    /// Version and cipher; `None` without TLS.
    pub(crate) fn combination(&self) -> Option<Combination> {
        self.secure().map(Secure::combination)
    }

    /// Bytes of requests that have arrived and were not yet taken.
    pub(crate) fn arrived(&mut self) -> &mut Vec<u8> {
        &mut self.wire.arrived
    }

    /// Bytes of the response under way, head and content, that the socket has taken: those of records that it has taken to
    /// their end, or that the kernel is to make.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.wire.taken_bytes
    }

    /// Whether another response may begin: not on a connection at its record limit that cannot change its key.
    pub(crate) fn can_send(&self) -> bool {
        self.secure().is_none_or(Secure::can_send)
    }

    /// Records that this connection can still send, where it has one key for all of its life.
    pub(crate) fn records_left(&self) -> Option<u64> {
        self.secure()?.records_left(&self.wire)
    }

    /// Whether the response may say that the connection goes on after it.
    pub(crate) fn can_continue(&self) -> bool {
        self.can_send() && !self.wire.workplace.watches.is_draining()
    }

    /// Says whether the connection ends behind the next response, at once.
    pub(crate) fn ends_behind(&mut self, ends: bool) {
        if let Protection::Tls(secure) = &mut self.protection {
            secure.ends_behind = ends;
        }
    }

    /// Says whether the content of the next response never changes.
    pub(crate) fn content_is_immutable(&mut self, immutable: bool) {
        if let Protection::Tls(secure) = &mut self.protection {
            secure.kernel.immutable = immutable;
        }
    }

    /// Which engine carried the last byte of the response that has just ended, and why; `None` without TLS.
    pub(crate) fn decision(&self) -> Option<Decision> {
        self.secure().map(Secure::decision)
    }

    /// Whether another engine carried the beginning of the response that has just ended.
    pub(crate) fn moved_within_response(&self) -> bool {
        self.secure().is_some_and(Secure::moved_within_response)
    }

    /// The response is among the latest that the admin page shows.
    pub(crate) fn note_placement(&self, recent: Recent) {
        let workplace = &self.wire.workplace;
        workplace.placer.note(Recent { at_ms: workplace.now_ms(), ..recent });
    }

    /// Notes what is waited for; the time allowed runs from now.
    pub(crate) fn begin(&self, stage: Stage) {
        self.wire.begin(stage);
    }

    /// The same, with this time allowed.
    pub(crate) fn begin_for(&self, stage: Stage, allowed_ms: u64) {
        let wire = &self.wire;
        wire.watch.begin(stage, wire.workplace.now_ms().saturating_add(allowed_ms));
    }

    /// Gives the socket of a connection in the clear back, and what has arrived and was not taken: it goes on in another way.
    pub(crate) fn into_socket(self) -> (TcpStream, Rc<Watch>, Vec<u8>) {
        (self.wire.stream, self.wire.watch, self.wire.arrived)
    }

    /// The server itself is waited for from now on, until the next [`begin`](Self::begin): no deadline of the peer runs.
    pub(crate) fn begin_own_work(&self) {
        self.wire.begin_own_work();
    }

    /// Waits until the socket takes bytes again; what arrives meanwhile is received.
    async fn wait_for_room(&mut self) -> Result<(), Ending> {
        match &mut self.protection {
            Protection::Plain => self.wire.wait_for_room(Wire::receive_in_the_clear).await,
            Protection::Tls(secure) => secure.wait_for_room(&mut self.wire).await,
        }
    }
}
