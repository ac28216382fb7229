//! A connection as HTTP sees it: bytes in, responses out, with or without TLS in between.
//!
//! The link owns the socket and the TLS channel. Memory for batches and for receiving belongs to the worker and is
//! borrowed for the length of a system call: an idle connection holds neither (INV-MEMORY-1).

mod behind;
mod close;
mod kernel;
mod placement;
mod receive;
mod send;
#[cfg(test)]
mod tests;
mod unsent;

pub(crate) use close::Linger;

use crate::{
    ending::Ending,
    watch::{Expiry, Stage, Watch},
    workplace::Workplace,
};
use behind::Behind;
use kernel::KernelSide;
use linerate_engine::batches::Batches;
use linerate_os::socket;
use linerate_record::{Channel, KeySource, RecordError};
use placement::Placement;
use std::{cell::RefCell, future::poll_fn, io, rc::Rc, task::Poll};
use tokio::{io::Interest, net::TcpStream};
use unsent::Unsent;

/// How the bytes on the socket are protected.
pub(crate) enum Protection<K> {
    /// Not at all.
    Plain,
    /// By TLS records.
    Tls(Box<Channel<K>>),
}

/// The TLS side of a connection, which must have one: an engine for TLS was chosen for it.
fn secure<K>(protection: &mut Protection<K>) -> Result<&mut Channel<K>, Ending> {
    match protection {
        Protection::Tls(channel) => Ok(channel),
        Protection::Plain => {
            Err(Ending::Record(RecordError::Misuse("a connection in the clear has no records")))
        }
    }
}

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    Readable,
    Writable,
}

pub(crate) struct Link<K> {
    stream: TcpStream,
    watch: Rc<Watch>,
    workplace: Rc<Workplace>,
    protection: Protection<K>,
    /// Records, or parts of them, that are sealed and did not fit into the socket. They go first, always: their
    /// sequence numbers are spent (INV-NONCE-1, INV-ORDER-1).
    unsent: Unsent,
    /// What the socket has taken of the response under way.
    taken_bytes: u64,
    /// What it has taken of all responses; in the clear these are all bytes of the connection.
    sent_bytes: u64,
    /// The beginning of a record whose end has not arrived.
    partial: Vec<u8>,
    /// Bytes of requests, not yet taken by [`Link::arrived`]'s reader.
    arrived: Vec<u8>,
    /// The peer sent `close_notify` or closed its side of the socket.
    peer_closed: bool,
    /// The socket is known to take bytes: nothing was sent since it said so.
    has_room: bool,
    /// How large the next batch is.
    batches: Batches,
    kernel: KernelSide,
    placement: Placement,
    /// Files that the kernel may still be sending from.
    behind: RefCell<Vec<Behind>>,
}

impl<K: KeySource> Link<K> {
    /// Takes over a connection after its handshake; [`Link::take_records`] gives it what came behind that.
    pub(crate) fn new(
        stream: TcpStream,
        watch: Rc<Watch>,
        workplace: Rc<Workplace>,
        protection: Protection<K>,
    ) -> Self {
        Self {
            stream,
            watch,
            workplace,
            protection,
            unsent: Unsent::default(),
            taken_bytes: 0,
            sent_bytes: 0,
            partial: Vec::new(),
            arrived: Vec::new(),
            peer_closed: false,
            has_room: true,
            batches: Batches::default(),
            kernel: KernelSide::default(),
            placement: Placement::default(),
            behind: RefCell::default(),
        }
    }

    /// The TLS side of the connection, if it has one.
    pub(crate) fn channel(&self) -> Option<&Channel<K>> {
        match &self.protection {
            Protection::Plain => None,
            Protection::Tls(channel) => Some(channel),
        }
    }

    /// Bytes of requests that have arrived and were not yet taken.
    pub(crate) fn arrived(&mut self) -> &mut Vec<u8> {
        &mut self.arrived
    }

    /// Whether another response may begin: not on a connection at its record limit that cannot change its key.
    pub(crate) fn can_send(&self) -> bool {
        self.channel().is_none_or(Channel::can_send)
    }

    /// Records that this connection can still send, where it has one key for all of its life.
    pub(crate) fn records_left(&self) -> Option<u64> {
        let channel = self.channel().filter(|channel| !channel.can_change_key())?;
        // The kernel's are counted as if they were short.
        let counted_as = if channel.is_handed_over() { kernel::COUNTED_FOR_ONE } else { 1 };
        Some(channel.remaining_records() / counted_as)
    }

    /// Whether the response may say that the connection goes on after it.
    pub(crate) fn can_continue(&self) -> bool {
        self.can_send() && !self.workplace.watches.is_draining()
    }

    /// Notes what is waited for; the time allowed runs from now.
    pub(crate) fn begin(&self, stage: Stage) {
        let limits = self.workplace.time_limits.get();
        let allowed_ms = match stage {
            Stage::Handshake => limits.handshake_ms,
            Stage::Idle => limits.idle_ms,
            Stage::Head => limits.head_ms,
            Stage::Sending => limits.write_progress_ms,
            Stage::Closing => limits.closing_ms,
            Stage::Working => u64::MAX,
        };
        self.watch.begin(stage, self.workplace.now_ms().saturating_add(allowed_ms));
    }

    /// The server itself is waited for from now on, until the next [`begin`](Self::begin): no deadline of the peer runs.
    pub(crate) fn begin_own_work(&self) {
        self.begin(Stage::Working);
    }

    /// Waits until the socket is readable (if `read`) or writable (if `write`), or the deadline passes: no peer is waited
    /// for without end (INV-PEER-2).
    async fn wait(&self, read: bool, write: bool) -> Result<Woken, Ending> {
        poll_fn(|context| {
            if self.watch.take_request_to_look_back() && self.has_changed_behind() {
                return Poll::Ready(Err(Ending::ChangedBehind));
            }
            if self.watch.take_request_to_note() {
                self.watch.note(socket::acknowledged_bytes(&self.stream));
            }
            if self.watch.take_request_to_measure() && self.peer_is_too_slow() {
                return Poll::Ready(Err(Ending::Expired(Expiry::TooSlow)));
            }
            while let Some(expiry) = self.watch.poll_expired(context) {
                if read && self.watch.may_be_pardoned() && socket::is_readable(&self.stream) {
                    self.watch.pardon();
                    return Poll::Ready(Ok(Woken::Readable));
                }
                if expiry != Expiry::Deadline(Stage::Sending) || !self.peer_took_something() {
                    return Poll::Ready(Err(Ending::Expired(expiry)));
                }
                // It gets as long again, and has to take more in that time.
                self.watch.reset();
                self.begin(Stage::Sending);
                self.watch.note(socket::acknowledged_bytes(&self.stream));
            }
            if read && let Poll::Ready(ready) = self.stream.poll_read_ready(context) {
                return Poll::Ready(ready.map(|()| Woken::Readable).map_err(Ending::Socket));
            }
            if write && let Poll::Ready(ready) = self.stream.poll_write_ready(context) {
                return Poll::Ready(ready.map(|()| Woken::Writable).map_err(Ending::Socket));
            }
            Poll::Pending
        })
        .await
    }

    /// Whether the peer, in the wait that is under way, took some of what the kernel holds. The socket counts as writable
    /// only when much of that is gone, which a slow peer may need longer for than it is allowed to do nothing.
    fn peer_took_something(&self) -> bool {
        self.watch.has_taken(socket::acknowledged_bytes(&self.stream))
    }

    /// Whether the peer, which keeps a response waiting, took less than it has to since this was last asked. Who has taken
    /// all that there was is not slow: then it is us.
    fn peer_is_too_slow(&self) -> bool {
        let least_bytes_per_s = self.workplace.time_limits.get().least_rate_bytes_per_s;
        let Some(acknowledged_bytes) = socket::acknowledged_bytes(&self.stream) else { return false };
        let Some((taken_bytes, elapsed_ms)) = self.watch.measure(self.workplace.now_ms(), acknowledged_bytes)
        else {
            return false;
        };
        let is_waited_for = socket::unacknowledged_bytes(&self.stream).is_some_and(|bytes| bytes > 0);
        is_waited_for && taken_bytes.saturating_mul(1000) < least_bytes_per_s.saturating_mul(elapsed_ms)
    }

    /// Tells the runtime that a system call, made around it, found the socket not ready: the next wait really waits.
    fn clear_readiness(&self, interest: Interest) {
        // The error is the message; there is nothing else to learn from the result.
        let _ = self.stream.try_io(interest, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    }
}
