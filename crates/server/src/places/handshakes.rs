//! A worker's handshakes under way, and which of them goes when there is no place for another.
//!
//! A handshake that has been stuck for long goes first. Of several, one that has sent nothing goes before one that is stuck
//! in its first message, and that before one that has not answered the server; among equals the oldest goes. If none is stuck
//! for long, the oldest goes, however far it is. So a client is safe until as many others have come as there are places, and
//! a client that sends a byte and falls silent cannot take a newcomer's turn. A handshake whose bytes wait for this worker
//! is never ended: the worker is late, not the client.

use super::{HandshakePlaces, addresses::AddressPlace, totals::Place};
use crate::{metrics::Metrics, watch::Watch};
use linerate_os::socket;
use std::{cell::Cell, cell::RefCell, collections::BTreeMap, rc::Rc, sync::Arc};
use tokio::net::TcpStream;

/// A time in which a client that means it gets further, even from afar and with a segment lost.
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

/// Where a handshake stands in the queue: among those that came equally far, in the order in which they came.
type Position = (Standing, u64);

struct Entry {
    stream: TcpStream,
    watch: Rc<Watch>,
    position: Cell<Position>,
    /// When it came so far.
    since_ms: Cell<u64>,
    place: Cell<Option<Place>>,
    address_place: Cell<Option<AddressPlace>>,
}

/// Which handshakes may be ended for another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evictable {
    /// Any but those whose bytes wait for this worker.
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
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { queue: RefCell::default(), entered: Cell::new(0), metrics }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.borrow().len()
    }

    /// A handshake begins.
    pub(crate) fn enter(
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
        let number = self.entered.replace(self.entered.get() + 1);
        self.put(&entry, (Standing::Silent, number));
        self.metrics.handshakes_in_flight.increment();
        Ticket { entry, handshakes: Rc::clone(self) }
    }

    /// Ends one for another, and gives its place; `None` if there is none that may go.
    pub(crate) fn evict(&self, now_ms: u64, evictable: Evictable) -> Option<Place> {
        loop {
            let entry = self.next_to_go(now_ms, evictable)?;
            if socket::is_readable(&entry.stream) {
                // Each is found so at most once before its task has run, so this loop ends.
                self.come_to(&entry, Standing::Ready);
                continue;
            }
            self.leave(&entry);
            entry.watch.evict();
            return entry.place.take();
        }
    }

    fn next_to_go(&self, now_ms: u64, evictable: Evictable) -> Option<Rc<Entry>> {
        let queue = self.queue.borrow();
        let oldest = |standing| {
            let (&(found, _), entry) = queue.range((standing, 0)..).next()?;
            (found == standing).then_some(entry)
        };
        let is_stuck_for_long =
            |entry: &&Rc<Entry>| now_ms.saturating_sub(entry.since_ms.get()) > PATIENCE_MS;
        let found = match evictable {
            Evictable::SilentForLong => oldest(Standing::Silent).filter(is_stuck_for_long),
            Evictable::Stuck => {
                let by_standing = [Standing::Silent, Standing::Begun, Standing::Answered].map(oldest);
                let mut all = by_standing.iter().copied().flatten();
                let came_first = all.clone().min_by_key(|entry| entry.position.get().1);
                all.find(is_stuck_for_long).or(came_first)
            }
        };
        found.map(Rc::clone)
    }

    /// It stands there from now on, behind those that came earlier.
    fn come_to(&self, entry: &Rc<Entry>, standing: Standing) {
        let (_, number) = entry.position.get();
        if self.take_out(entry) {
            self.put(entry, (standing, number));
        }
    }

    fn put(&self, entry: &Rc<Entry>, position: Position) {
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
        // Bytes that do not complete a message do not move it back: a client that drips is treated as one that is silent.
        if self.entry.position.get().0 != standing {
            self.handshakes.come_to(&self.entry, standing);
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
        places::totals::{Count, Totals},
        watch::{Expiry, Stage, Watches},
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
        let place = Place::take(totals, Count::Handshakes, usize::MAX).unwrap();
        let watch = watches.enter();
        let ticket = handshakes.enter(TcpStream::from_std(ours).unwrap(), watch, now_ms, (place, None));
        Handshaking { ticket, peer }
    }

    #[tokio::test]
    async fn who_is_stuck_goes_first_and_never_one_whose_bytes_wait() {
        let (handshakes, watches) = (Rc::new(Handshakes::new(Arc::default())), Watches::default());
        let totals = Arc::new(Totals::new(1));
        let all: Vec<_> = (0..6).map(|at_ms| begin(&handshakes, &watches, &totals, at_ms)).collect();
        let [answered, begun, spoke, silent, young, late] = &all[..] else { unreachable!() };
        answered.ticket.heard(Standing::Begun, 10);
        answered.ticket.heard(Standing::Answered, 20);
        begun.ticket.heard(Standing::Begun, 30);
        (&spoke.peer).write_all(b"\x16").unwrap();
        while !socket::is_readable(spoke.ticket.stream()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let goes = |now_ms, evictable, handshaking: &Handshaking| {
            handshakes.evict(now_ms, evictable).is_some() && handshaking.is_evicted()
        };
        assert!(handshakes.evict(999, Evictable::SilentForLong).is_none(), "none is silent for long yet");
        let place = handshakes.evict(40, Evictable::Stuck);
        assert!(place.is_some() && answered.is_evicted(), "none is stuck for long: the oldest goes");
        assert_eq!(totals.now(Count::Handshakes), 6, "its place is given on");
        assert_eq!((handshakes.len(), handshakes.metrics.handshakes_in_flight.value()), (5, 5));
        assert!(
            goes(1004, Evictable::Stuck, silent),
            "one that has sent nothing for long goes before the oldest"
        );
        assert!(goes(1004, Evictable::Stuck, begun), "no other is silent for long yet");
        assert!(goes(1004, Evictable::Stuck, young), "one with bytes that wait is passed over");
        assert!(goes(5000, Evictable::SilentForLong, late));
        assert!(handshakes.evict(u64::MAX, Evictable::Stuck).is_none() && !spoke.is_evicted());
        // It was looked at, and is where it belongs by what it sent.
        spoke.ticket.heard(Standing::Begun, 5050);
        let mut buffer = [0; 8];
        assert_eq!(socket::receive(spoke.ticket.stream(), &mut buffer).unwrap(), 1);
        let newcomer = begin(&handshakes, &watches, &totals, 5060);
        newcomer.ticket.heard(Standing::Begun, 5070);
        newcomer.ticket.heard(Standing::Answered, 5080);
        assert!(handshakes.evict(9000, Evictable::SilentForLong).is_none(), "no other is silent");
        assert!(goes(6060, Evictable::Stuck, spoke), "stuck in its first message");
        assert!(goes(6060, Evictable::Stuck, &newcomer), "the last there is");
        drop(newcomer.ticket.into_stream());
        drop(place);
        assert!(all.into_iter().all(|handshaking| handshaking.ticket.into_stream().is_some()));
        assert_eq!((handshakes.len(), handshakes.metrics.handshakes_in_flight.value()), (0, 0));
        assert_eq!(totals.now(Count::Handshakes), 0);
    }

    /// All places are held by clients that sent a byte and fell silent, and one comes that means it.
    #[tokio::test]
    async fn a_newcomer_is_safe_until_as_many_others_have_come_as_there_are_places() {
        let (handshakes, watches) = (Rc::new(Handshakes::new(Arc::default())), Watches::default());
        let totals = Arc::new(Totals::new(1));
        let begin_one = |standing| {
            let one = begin(&handshakes, &watches, &totals, 0);
            one.ticket.heard(standing, 0);
            one
        };
        let mut all: Vec<_> = (0..8).map(|_| begin_one(Standing::Begun)).collect();
        let newcomer = begin_one(Standing::Silent);
        for _ in 0..8 {
            all.push(begin_one(Standing::Begun));
            assert!(handshakes.evict(10, Evictable::Stuck).is_some() && !newcomer.is_evicted());
        }
        assert!(handshakes.evict(10, Evictable::Stuck).is_some() && newcomer.is_evicted());
        assert!(all[..8].iter().all(Handshaking::is_evicted));
    }
}
