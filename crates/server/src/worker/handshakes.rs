//! A worker's handshakes under way, in the order in which they go when there is no place for another: first the one that has
//! been silent for longest, then the one that is stuck in its first message for longest, then the one that has not answered
//! us for longest. A handshake whose bytes wait for this worker is never ended: it is we who are late.

use super::{Place, addresses::AddressPlace, admission::HandshakePlaces};
use crate::{metrics::Metrics, watch::Watch};
use linerate_os::socket;
use std::{cell::Cell, cell::RefCell, collections::BTreeMap, rc::Rc, sync::Arc};
use tokio::net::TcpStream;

/// Silence that is long, for a client that has something to say.
const PATIENCE_MS: u64 = 1000;

/// How far a handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Nothing was received.
    Silent,
    /// Some of the client's first message.
    Begun,
    /// We have answered, and the client's last message is awaited.
    Answered,
    /// Bytes wait in the socket: the worker has to look at them first.
    Ready,
}

/// Where a handshake stands in the queue: the first goes first.
type Position = (Standing, u64);

struct Entry {
    stream: TcpStream,
    watch: Rc<Watch>,
    position: Cell<Position>,
    /// When it took its standing.
    since_ms: Cell<u64>,
    place: Cell<Option<Place>>,
    address_place: Cell<Option<AddressPlace>>,
}

/// Which handshakes may be ended for another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// Any but those whose turn is ours.
    Stuck,
    /// Only those that have sent nothing for long.
    SilentForLong,
}

/// All of a worker's.
pub(crate) struct Handshakes {
    queue: RefCell<BTreeMap<Position, Rc<Entry>>>,
    entered: Cell<u64>,
    metrics: Arc<Metrics>,
}

impl Handshakes {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { queue: RefCell::default(), entered: Cell::new(0), metrics }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.borrow().len()
    }

    /// A handshake begins.
    pub(super) fn enter(
        self: &Rc<Self>,
        stream: TcpStream,
        watch: Rc<Watch>,
        now_ms: u64,
        places: HandshakePlaces,
    ) -> Ticket {
        let entry = Rc::new(Entry {
            stream,
            watch,
            position: Cell::new((Standing::Silent, 0)),
            since_ms: Cell::new(now_ms),
            place: Cell::new(Some(places.0)),
            address_place: Cell::new(places.1),
        });
        self.put(&entry, Standing::Silent);
        self.metrics.handshakes_in_flight.increment();
        Ticket { entry, handshakes: Rc::clone(self) }
    }

    /// Ends one for another, and gives its place; `None` if there is none that may go.
    pub(super) fn evict(&self, now_ms: u64, whom: Whom) -> Option<Place> {
        loop {
            let entry = Rc::clone(self.queue.borrow().first_key_value()?.1);
            let (standing, _) = entry.position.get();
            let waits_long = now_ms.saturating_sub(entry.since_ms.get()) > PATIENCE_MS;
            let may_go = match (standing, whom) {
                (Standing::Ready, _) => false,
                (Standing::Silent | Standing::Begun | Standing::Answered, Whom::Stuck) => true,
                (Standing::Silent, Whom::SilentForLong) => waits_long,
                (Standing::Begun | Standing::Answered, Whom::SilentForLong) => false,
            };
            if !may_go {
                // Those behind it are younger, or further.
                return None;
            }
            if socket::is_readable(&entry.stream) {
                // Each is found so at most once before its task has run, so this loop ends.
                self.take_out(&entry);
                self.put(&entry, Standing::Ready);
                continue;
            }
            self.leave(&entry);
            entry.watch.evict();
            return entry.place.take();
        }
    }

    fn put(&self, entry: &Rc<Entry>, standing: Standing) {
        let position = (standing, self.entered.replace(self.entered.get() + 1));
        entry.position.set(position);
        self.queue.borrow_mut().insert(position, Rc::clone(entry));
    }

    /// False if it was not there.
    fn take_out(&self, entry: &Entry) -> bool {
        self.queue.borrow_mut().remove(&entry.position.get()).is_some()
    }

    /// It is over, or was ended for another.
    fn leave(&self, entry: &Entry) {
        if self.take_out(entry) {
            self.metrics.handshakes_in_flight.decrement();
            drop(entry.address_place.take());
        }
    }
}

/// A handshake's place among them; it leaves when this is dropped.
pub(crate) struct Ticket {
    entry: Rc<Entry>,
    handshakes: Rc<Handshakes>,
}

impl Ticket {
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.entry.stream
    }

    pub(crate) fn watch(&self) -> &Rc<Watch> {
        &self.entry.watch
    }

    /// The client sent something, by which the handshake came so far.
    pub(crate) fn heard(&self, standing: Standing, now_ms: u64) {
        // Bytes that bring it no further do not move it back: who drips is no better than who is silent.
        if self.entry.position.get().0 != standing && self.handshakes.take_out(&self.entry) {
            self.handshakes.put(&self.entry, standing);
            self.entry.since_ms.set(now_ms);
        }
    }

    /// The handshake is over, one way or the other: its place is free for another. There is always a stream: nobody else
    /// holds the entry once it has left.
    pub(crate) fn into_stream(self) -> Option<TcpStream> {
        let entry = Rc::clone(&self.entry);
        drop(self);
        Rc::into_inner(entry).map(|entry| entry.stream)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.handshakes.leave(&self.entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        watch::{Expiry, Stage, Watches},
        worker::Totals,
    };
    use linerate_os::socket::connected_pair;
    use std::{
        io::Write,
        net::TcpStream as Peer,
        task::{Context, Waker},
        time::Duration,
    };

    struct Handshaking {
        ticket: Ticket,
        peer: Peer,
    }

    impl Handshaking {
        fn is_evicted(&self) -> bool {
            let expired = self.ticket.watch().poll_expired(&Context::from_waker(Waker::noop()));
            expired == Some(Expiry::Evicted(Stage::Handshake))
        }
    }

    fn begin(
        handshakes: &Rc<Handshakes>,
        watches: &Watches,
        totals: &Arc<Totals>,
        now_ms: u64,
    ) -> Handshaking {
        let (ours, peer) = connected_pair(None).unwrap();
        let place = Place::take(totals, |totals| &totals.handshakes, usize::MAX).unwrap();
        let watch = watches.enter();
        let ticket = handshakes.enter(TcpStream::from_std(ours).unwrap(), watch, now_ms, (place, None));
        Handshaking { ticket, peer }
    }

    #[tokio::test]
    async fn the_oldest_silent_goes_first_and_never_one_whose_bytes_wait() {
        let (handshakes, watches) = (Rc::new(Handshakes::new(Arc::default())), Watches::default());
        let totals = Arc::new(Totals::default());
        let all: Vec<_> = (0..6).map(|at_ms| begin(&handshakes, &watches, &totals, at_ms)).collect();
        let [answered, begun, spoke, silent, young, late] = &all[..] else { unreachable!() };
        answered.ticket.heard(Standing::Begun, 10);
        answered.ticket.heard(Standing::Answered, 20);
        begun.ticket.heard(Standing::Begun, 30);
        (&spoke.peer).write_all(b"\x16").unwrap();
        while !socket::is_readable(spoke.ticket.stream()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(handshakes.evict(999, Whom::SilentForLong).is_none(), "none is silent for long yet");
        let place = handshakes.evict(40, Whom::Stuck);
        assert!(place.is_some() && silent.is_evicted(), "the oldest that has sent nothing");
        assert_eq!(totals.handshakes.load(std::sync::atomic::Ordering::Relaxed), 6, "its place is given on");
        assert_eq!((handshakes.len(), handshakes.metrics.handshakes_in_flight.value()), (5, 5));
        assert!(handshakes.evict(40, Whom::Stuck).is_some() && young.is_evicted());
        assert!(handshakes.evict(5000, Whom::SilentForLong).is_some() && late.is_evicted());
        assert!(handshakes.evict(5000, Whom::SilentForLong).is_none(), "no other is silent");
        assert!(handshakes.evict(5000, Whom::Stuck).is_some() && begun.is_evicted());
        assert!(handshakes.evict(5000, Whom::Stuck).is_some() && answered.is_evicted());
        assert!(handshakes.evict(u64::MAX, Whom::Stuck).is_none() && !spoke.is_evicted());
        // It was looked at, and is where it belongs by what it sent.
        spoke.ticket.heard(Standing::Begun, 50);
        let mut buffer = [0; 8];
        assert_eq!(socket::receive(spoke.ticket.stream(), &mut buffer).unwrap(), 1);
        assert!(handshakes.evict(50, Whom::Stuck).is_some() && spoke.is_evicted());
        drop(place);
        assert!(all.into_iter().all(|handshaking| handshaking.ticket.into_stream().is_some()));
        assert_eq!((handshakes.len(), handshakes.metrics.handshakes_in_flight.value()), (0, 0));
        assert_eq!(totals.handshakes.load(std::sync::atomic::Ordering::Relaxed), 0);
    }
}
