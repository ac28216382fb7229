//! What a connection has with TLS and without: the socket, its time limits, what has arrived and what has left.

use super::behind::Behind;
use crate::{
    ending::Ending,
    metrics::Engine,
    watch::{Expiry, Stage, Watch},
    workplace::Workplace,
};
use linerate_os::socket;
use std::{cell::RefCell, future::poll_fn, io, rc::Rc, task::Poll};
use tokio::{io::Interest, net::TcpStream};

/// Bytes of further requests that may wait behind the one that is answered; the socket holds the others back
/// (INV-BOUND-1).
const ARRIVED_LIMIT_BYTES: usize = 64 * 1024;

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    Readable,
    Writable,
}

pub(super) struct Wire {
    pub(super) stream: TcpStream,
    pub(super) watch: Rc<Watch>,
    pub(super) workplace: Rc<Workplace>,
    /// What the socket has taken of the response under way.
    pub(super) taken_bytes: u64,
    /// What it has taken of all responses; in the clear these are all bytes of the connection.
    pub(super) sent_bytes: u64,
    /// Bytes of requests that nobody has taken yet.
    pub(super) arrived: Vec<u8>,
    /// The peer sent `close_notify` or closed its side of the socket.
    pub(super) peer_closed: bool,
    /// Files that the kernel may still be sending from.
    pub(super) behind: RefCell<Vec<Behind>>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, watch: Rc<Watch>, workplace: Rc<Workplace>) -> Self {
        Self {
            stream,
            watch,
            workplace,
            taken_bytes: 0,
            sent_bytes: 0,
            arrived: Vec::new(),
            peer_closed: false,
            behind: RefCell::default(),
        }
    }

    /// Notes what is waited for; the time allowed runs from now.
    pub(super) fn begin(&self, stage: Stage) {
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
    pub(super) fn begin_own_work(&self) {
        self.begin(Stage::Working);
    }

    /// Waits until the socket is readable (if `read`) or writable (if `write`), or the deadline passes: no peer is waited
    /// for without end (INV-PEER-2).
    pub(super) async fn wait(&self, read: bool, write: bool) -> Result<Woken, Ending> {
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

    /// Whether the peer, which keeps a response waiting, took less than it has to since this was last asked. A peer that
    /// has taken everything is not slow: the server is.
    fn peer_is_too_slow(&self) -> bool {
        let least_bytes_per_s = self.workplace.time_limits.get().least_rate_bytes_per_s;
        let Some(acknowledged_bytes) = socket::acknowledged_bytes(&self.stream) else { return false };
        let Some((taken_bytes, elapsed_ms)) = self.watch.measure(self.workplace.now_ms(), acknowledged_bytes)
        else {
            return false;
        };
        !self.peer_has_all()
            && taken_bytes.saturating_mul(1000) < least_bytes_per_s.saturating_mul(elapsed_ms)
    }

    /// Whether the peer's system has acknowledged all that was sent.
    pub(super) fn peer_has_all(&self) -> bool {
        socket::unacknowledged_bytes(&self.stream).is_none_or(|bytes| bytes == 0)
    }

    /// Tells the runtime that a system call, made around it, found the socket not ready: the next wait really waits.
    pub(super) fn clear_readiness(&self, interest: Interest) {
        // The error is the message; there is nothing else to learn from the result.
        let _ = self.stream.try_io(interest, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    }

    /// Waits until the socket takes bytes again; what arrives meanwhile is received.
    pub(super) async fn wait_for_room(
        &mut self,
        mut receive: impl FnMut(&mut Self) -> Result<(), Ending>,
    ) -> Result<(), Ending> {
        self.clear_readiness(Interest::WRITABLE);
        while self.wait(self.wants_to_receive(), true).await? == Woken::Readable {
            receive(self)?;
        }
        Ok(())
    }

    /// Whether incoming bytes are wanted at the moment.
    pub(super) fn wants_to_receive(&self) -> bool {
        !self.peer_closed && self.arrived.len() < ARRIVED_LIMIT_BYTES
    }

    /// Whether the runtime says that something has arrived which is wanted: no system call.
    pub(super) fn has_something(&self) -> bool {
        self.wants_to_receive() && self.stream.try_io(Interest::READABLE, || Ok(())).is_ok()
    }

    /// One `recv` into `room`. `None` where nothing came: there is nothing, or the peer has closed its side.
    pub(super) fn receive(&mut self, room: &mut [u8]) -> Result<Option<usize>, Ending> {
        match socket::receive(&self.stream, room) {
            Ok(0) => {
                self.peer_closed = true;
                Ok(None)
            }
            Ok(received) => {
                if received < room.len() {
                    // The socket is empty now; the next edge will say when it is not. Saves a `recv` that finds nothing.
                    self.clear_readiness(Interest::READABLE);
                }
                Ok(Some(received))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.clear_readiness(Interest::READABLE);
                Ok(None)
            }
            Err(error) => Err(Ending::Socket(error)),
        }
    }

    /// Receives bytes of requests in the clear.
    pub(super) fn receive_in_the_clear(&mut self) -> Result<(), Ending> {
        let workplace = Rc::clone(&self.workplace);
        let mut buffer = workplace.receive.borrow_mut();
        if let Some(received) = self.receive(&mut buffer)? {
            self.arrived.extend_from_slice(&buffer[..received]);
        }
        Ok(())
    }

    /// Counts what the socket has taken: the log and the metrics both tell this figure, and no other (INV-LOG-2).
    pub(super) fn count_taken(&mut self, engine: Engine, bytes: u64) {
        self.taken_bytes += bytes;
        self.sent_bytes += bytes;
        self.workplace.metrics.send(engine, bytes);
    }
}
