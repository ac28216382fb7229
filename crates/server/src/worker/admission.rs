//! Which connection gets a place, and which one makes room for it (INV-BOUND-1).
//!
//! Connections and handshakes have limits that hold for the whole server. If a limit is reached, an inactive
//! connection makes room for the newcomer, which is refused only if there is none. Otherwise a client that holds all places
//! with silent connections would keep all others out. Each worker ends its own connections; the limits are shared.

use super::Worker;
use crate::{
    metrics::Refused,
    places::{
        HandshakePlaces,
        addresses::AddressPlace,
        handshakes::Evictable,
        totals::{Count, Place},
    },
    snapshot::Snapshot,
};
use linerate_config::ListenerKind;
use std::net::IpAddr;

/// What a connection holds under the limits, until it is dropped.
pub(super) struct Places {
    _total: Place,
    _address: Option<AddressPlace>,
}

impl Places {
    /// A place under the whole server's limit, and no other.
    #[cfg(test)]
    pub(super) fn of(total: Place) -> Self {
        Self { _total: total, _address: None }
    }
}

impl Worker {
    /// A place for a connection from `address`, and one for its handshake where there will be one.
    pub(super) fn find_places(
        &self,
        address: IpAddr,
        kind: ListenerKind,
        snapshot: &Snapshot,
    ) -> Result<(Places, Option<HandshakePlaces>), Refused> {
        let limits = &snapshot.address_limits;
        let is_exempt = limits.exempt.iter().any(|network| network.contains(address));
        let own = |what, limit| match limit {
            Some(limit) if !is_exempt => {
                AddressPlace::take(&self.totals, address, what, limit).map(Some).ok_or(())
            }
            _ => Ok(None),
        };
        let connection = own(Count::Connections, limits.connections).map_err(|()| Refused::OfAddress)?;
        let handshake = match kind {
            ListenerKind::Tls => {
                Some(own(Count::Handshakes, limits.handshakes).map_err(|()| Refused::HandshakesOfAddress)?)
            }
            // A client of NFS asks for a handshake later, if it does.
            ListenerKind::Plaintext | ListenerKind::Redirect | ListenerKind::Nfs => None,
        };
        let total = self.place_of_connection(snapshot.connections_limit).ok_or(Refused::Connections)?;
        let handshake = match handshake {
            Some(of_address) => {
                let place = self.place_of_handshake(snapshot.handshakes_limit).ok_or(Refused::Handshakes)?;
                Some((place, of_address))
            }
            None => None,
        };
        Ok((Places { _total: total, _address: connection }, handshake))
    }

    /// A place for the handshake of a connection that has one for itself already.
    pub(super) fn find_handshake_places(
        &self,
        address: IpAddr,
        snapshot: &Snapshot,
    ) -> Result<HandshakePlaces, Refused> {
        let limits = &snapshot.address_limits;
        let is_exempt = limits.exempt.iter().any(|network| network.contains(address));
        let of_address = match limits.handshakes.filter(|_| !is_exempt) {
            Some(limit) => Some(
                AddressPlace::take(&self.totals, address, Count::Handshakes, limit)
                    .ok_or(Refused::HandshakesOfAddress)?,
            ),
            None => None,
        };
        let place = self.place_of_handshake(snapshot.handshakes_limit).ok_or(Refused::Handshakes)?;
        Ok((place, of_address))
    }

    /// One that was told to go has its place until its task has run, so the newcomer's may be one too many for that long.
    fn place_of_connection(&self, limit: usize) -> Option<Place> {
        if let Some(place) = Place::take(&self.totals, Count::Connections, limit) {
            return Some(place);
        }
        self.close_one_that_waits().then(|| Place::take_anyway(&self.totals, Count::Connections))
    }

    /// Connections above the limit at a sweep: one that was told to go and got a request at that moment stays, and a reload may
    /// have lowered the limit. Idle ones go instead, each worker's part of them.
    pub(super) fn give_up_excess_connections(&self) {
        let limit = self.service.snapshots.load().connections_limit;
        let now_ms = self.service.workplace.now_ms();
        for _ in 0..self.totals.excess_of_one_worker(Count::Connections, limit) {
            if !self.service.workplace.watches.evict_idle(now_ms) {
                return;
            }
        }
    }

    /// Ends a connection of this worker on which nothing happens. False if there is none.
    pub(super) fn close_one_that_waits(&self) -> bool {
        let workplace = &self.service.workplace;
        let now_ms = workplace.now_ms();
        self.handshakes.evict(now_ms, Evictable::SilentForLong).is_some()
            || workplace.watches.evict_idle(now_ms)
            || self.handshakes.evict(now_ms, Evictable::Stuck).is_some()
    }

    fn place_of_handshake(&self, limit: usize) -> Option<Place> {
        Place::take_or_claim(&self.totals, Count::Handshakes, limit, self.handshakes.len())
            .or_else(|| self.handshakes.evict(self.service.workplace.now_ms(), Evictable::Stuck))
    }

    /// Handshakes above the limit, which workers have taken as their share, are made up for by those that have more.
    pub(super) fn give_up_excess_handshakes(&self) {
        let limit = self.service.snapshots.load().handshakes_limit;
        let now_ms = self.service.workplace.now_ms();
        while self.totals.now(Count::Handshakes) > limit
            && self.handshakes.len() > self.totals.share_of(limit)
            && self.handshakes.evict(now_ms, Evictable::Stuck).is_some()
        {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        places::{handshakes::Ticket, totals::Totals},
        worker::tests::idle_worker,
    };
    use linerate_os::socket::connected_pair;
    use std::{
        net::TcpStream as Peer,
        rc::Rc,
        sync::Arc,
        task::{Context, Waker},
    };
    use tokio::net::TcpStream;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// A handshake of which nothing comes, if there is a place for it.
    fn begin(worker: &Rc<Worker>) -> Option<(Ticket, Places, Peer)> {
        let snapshot = worker.service.snapshots.load_full();
        let (places, handshake) = worker.find_places(LOCAL, ListenerKind::Tls, &snapshot).ok()?;
        let (ours, peer) = connected_pair(None).unwrap();
        let watch = worker.service.workplace.watches.enter();
        let ticket = worker.handshakes.enter(TcpStream::from_std(ours).unwrap(), watch, 0, handshake?);
        Some((ticket, places, peer))
    }

    /// All clients that hold places for nothing came to one worker, and then one comes to the other.
    #[tokio::test]
    async fn a_worker_takes_its_share_of_handshakes_and_the_others_give_it_up() {
        let totals = Arc::new(Totals::new(2));
        let root = tempfile::tempdir().unwrap();
        let limits = "[tls]\nhandshakes_in_flight = 6\n";
        let [crowded, other] = [(); 2].map(|()| idle_worker(root.path(), limits, &totals));
        let in_flight = || totals.now(Count::Handshakes);
        let first: Vec<_> = (0..6).map(|_| begin(&crowded)).collect();
        assert!(first.iter().all(Option::is_some) && in_flight() == 6);
        // One more there: the limit holds, and the oldest goes.
        let more = begin(&crowded);
        assert!(more.is_some() && in_flight() == 6 && crowded.handshakes.len() == 6);
        let elsewhere: Vec<_> = (0..5).map(|_| begin(&other)).collect();
        assert!(elsewhere.iter().all(Option::is_some));
        assert_eq!((in_flight(), other.handshakes.len()), (9, 3), "its share, and no more");
        other.give_up_excess_handshakes();
        assert_eq!((in_flight(), other.handshakes.len()), (9, 3));
        crowded.give_up_excess_handshakes();
        assert_eq!((in_flight(), crowded.handshakes.len()), (6, 3));
        drop((first, more, elsewhere));
        assert_eq!((in_flight(), totals.now(Count::Connections)), (0, 0));
    }

    #[tokio::test]
    async fn a_connection_beyond_the_limit_is_taken_where_another_makes_room() {
        let totals = Arc::new(Totals::new(1));
        let root = tempfile::tempdir().unwrap();
        let worker = idle_worker(root.path(), "[limits]\nconnections = 2\n", &totals);
        let snapshot = worker.service.snapshots.load_full();
        let enter = || worker.find_places(LOCAL, ListenerKind::Plaintext, &snapshot);
        let (one, two) = (enter(), enter());
        assert!(one.is_ok() && two.is_ok());
        let watches = &worker.service.workplace.watches;
        let idle: Vec<_> = (0..4).map(|_| watches.enter()).collect();
        idle.iter().for_each(|watch| watch.begin(crate::watch::Stage::Idle, 100));
        let evicted = || {
            let context = Context::from_waker(Waker::noop());
            idle.iter().filter(|watch| watch.poll_expired(&context).is_some()).count()
        };
        let three = enter();
        assert!(three.is_ok() && evicted() == 1);
        assert_eq!(totals.now(Count::Connections), 3);
        let four = enter();
        assert!(four.is_ok() && evicted() == 2);
        // Those that were told to go have not gone at the next sweep, or others have come; the limit is 2.
        drop(three);
        worker.give_up_excess_connections();
        assert_eq!(evicted(), 3);
        drop(four);
        worker.give_up_excess_connections();
        assert_eq!(evicted(), 3, "no more than the limit are there");
        assert!(enter().is_ok() && evicted() == 4);
        assert!(matches!(enter(), Err(Refused::Connections)), "nobody else makes room");
        assert_eq!(totals.now(Count::Connections), 2);
    }

    #[test]
    fn an_address_has_no_more_than_its_places_and_nothing_is_left_of_it() {
        let totals = Arc::new(Totals::new(1));
        let take =
            |address: &str, what, limit| AddressPlace::take(&totals, address.parse().unwrap(), what, limit);
        let first = take("192.0.2.1", Count::Connections, 2);
        let second = take("::ffff:192.0.2.1", Count::Connections, 2);
        assert!(
            first.is_some() && second.is_some(),
            "the same address, as a socket for both families tells it"
        );
        assert!(take("192.0.2.1", Count::Connections, 2).is_none());
        assert!(take("192.0.2.2", Count::Connections, 2).is_some(), "another");
        let handshake = take("192.0.2.1", Count::Handshakes, 1);
        assert!(handshake.is_some() && take("192.0.2.1", Count::Handshakes, 1).is_none());
        drop(first);
        let third = take("192.0.2.1", Count::Connections, 2);
        assert!(third.is_some());
        let network = take("2001:db8::1", Count::Connections, 1);
        assert!(network.is_some() && take("2001:db8::ffff:2", Count::Connections, 1).is_none());
        assert!(take("2001:db8:0:1::1", Count::Connections, 1).is_some(), "the next network");
        drop((second, third, handshake, network));
        assert!(totals.addresses.is_empty());
    }
}
