//! What a connection with TLS has beside its socket.

use super::{
    kernel::{KernelSide, counted_for_one},
    placement::Placement,
    unsent::Unsent,
    wire::Wire,
};
use crate::{ending::Ending, metrics::Engine};
use linerate_engine::batches::Batches;
use linerate_os::socket::{self, Follows};
use linerate_placement::Combination;
use linerate_record::{Channel, KeySource};
use std::io;

pub(super) struct Secure<K> {
    pub(super) channel: Channel<K>,
    /// Records, or parts of them, that are sealed and did not fit into the socket. They go first, always: their
    /// sequence numbers are spent (INV-NONCE-1, INV-ORDER-1).
    pub(super) unsent: Unsent,
    /// The connection ends behind the response: its last segment waits for the end, which follows at once.
    pub(super) ends_behind: bool,
    /// The beginning of a record whose end has not arrived.
    pub(super) partial: Vec<u8>,
    /// The socket is known to take bytes: nothing was sent since it said so.
    pub(super) has_room: bool,
    /// How large the next batch is.
    pub(super) batches: Batches,
    pub(super) kernel: KernelSide,
    pub(super) placement: Placement,
}

impl<K: KeySource> Secure<K> {
    pub(super) fn new(channel: Channel<K>, unsent: Vec<u8>) -> Self {
        Self {
            channel,
            unsent: Unsent::from(unsent),
            ends_behind: false,
            partial: Vec::new(),
            has_room: true,
            batches: Batches::default(),
            kernel: KernelSide::default(),
            placement: Placement::default(),
        }
    }

    pub(super) fn engine(&self) -> Engine {
        match (self.channel.is_handed_over(), self.kernel.is_with_adapter()) {
            (false, _) => Engine::User,
            (true, false) => Engine::Kernel,
            (true, true) => Engine::Nic,
        }
    }

    pub(super) fn combination(&self) -> Combination {
        self.channel.combination()
    }

    pub(super) fn can_send(&self) -> bool {
        self.channel.can_send()
    }

    /// Records that can still be sent, where one key has to do for all of the connection's life.
    pub(super) fn records_left(&self, wire: &Wire) -> Option<u64> {
        if self.channel.can_change_key() {
            return None;
        }
        // The kernel's are counted as if they were short.
        let habits = wire.workplace.calls.habits();
        let counted_as = if self.channel.is_handed_over() { counted_for_one(habits) } else { 1 };
        Some(self.channel.remaining_records() / counted_as)
    }

    /// Whether something is sealed, or waits for the kernel to seal it, that goes before all else.
    pub(super) fn has_waiting(&self) -> bool {
        !self.unsent.is_empty() || self.channel.next_control().is_some()
    }

    /// Sends what is sealed and waits, before anything else is sealed (INV-ORDER-1). Where more `follows` at once, the last
    /// segment leaves with that.
    pub(super) async fn flush(&mut self, wire: &mut Wire, follows: Follows) -> Result<(), Ending> {
        while !self.unsent.is_empty() {
            match socket::send(&wire.stream, self.unsent.bytes(), follows) {
                Ok(sent) => {
                    let taken_bytes = self.unsent.advance(sent);
                    wire.count_taken(self.engine(), taken_bytes);
                    if self.unsent.is_empty() {
                        break;
                    }
                    wire.begin(crate::watch::Stage::Sending);
                    // It was not all: the socket is full, and says when it is not.
                    self.wait_for_room(wire).await?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room(wire).await?,
                Err(error) => return Err(Ending::Socket(error)),
            }
        }
        self.flush_control(wire).await
    }

    /// Waits until the socket takes bytes again; what arrives meanwhile is received.
    pub(super) async fn wait_for_room(&mut self, wire: &mut Wire) -> Result<(), Ending> {
        wire.wait_for_room(|wire| self.receive(wire)).await?;
        self.has_room = true;
        Ok(())
    }
}
