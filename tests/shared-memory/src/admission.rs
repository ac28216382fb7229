//! Which connection gets a place while workers take and give back at once (INV-BOUND-1).

#[path = "../../../crates/server/src/places/addresses.rs"]
#[allow(dead_code, reason = "only what the models need is called")]
mod addresses;
#[path = "../../../crates/server/src/places/totals.rs"]
#[allow(dead_code, unreachable_pub, reason = "only what the models need is called")]
mod totals;

#[cfg(test)]
mod tests {
    use super::{
        addresses::AddressPlace,
        totals::{Count, Place, Totals},
    };
    use crate::sync::{Arc, AtomicUsize, Ordering};
    use loom::thread;
    use std::net::{IpAddr, Ipv4Addr};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const KINDS: [Count; 2] = [Count::Connections, Count::Handshakes];

    /// How many places are held, as their holders know it.
    #[derive(Default)]
    struct Held(AtomicUsize);

    impl Held {
        /// Holds `place` for a while, with no more than `limit` at once.
        fn hold<P>(&self, place: Option<P>, limit: usize) -> bool {
            let Some(place) = place else { return false };
            let now = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(now <= limit, "{now} at once, more than {limit}");
            self.0.fetch_sub(1, Ordering::Relaxed);
            drop(place);
            true
        }
    }

    /// Runs `worker` on two threads.
    fn two(
        totals: &Arc<Totals>,
        worker: impl Fn(&Arc<Totals>) -> bool + Clone + Send + 'static,
    ) -> [bool; 2] {
        let other = {
            let (totals, worker) = (Arc::clone(totals), worker.clone());
            thread::spawn(move || worker(&totals))
        };
        [worker(totals), other.join().unwrap()]
    }

    #[test]
    fn a_limit_holds_and_every_place_comes_back() {
        loom::model(|| {
            let (totals, held) = (Arc::new(Totals::new(2)), Arc::new(Held::default()));
            let successes = two(&totals, move |totals| {
                let take = || Place::take(totals, Count::Connections, 1);
                held.hold(take(), 1) | held.hold(take(), 1)
            });
            assert!(successes.contains(&true), "there was a place");
            assert_eq!(totals.now(Count::Connections), 0);
        });
    }

    /// A place has come free, and two want it: the one that does not get it has not kept the other from it.
    #[test]
    fn a_place_that_is_free_is_taken() {
        loom::model(|| {
            let totals = Arc::new(Totals::new(2));
            let gone = Place::take(&totals, Count::Connections, 1);
            assert!(gone.is_some());
            let other = {
                let totals = Arc::clone(&totals);
                thread::spawn(move || Place::take(&totals, Count::Connections, 1))
            };
            drop(gone);
            let mine = Place::take(&totals, Count::Connections, 1);
            let others = other.join().unwrap();
            assert_eq!(u32::from(mine.is_some()) + u32::from(others.is_some()), 1);
            drop((mine, others));
            assert_eq!(totals.now(Count::Connections), 0);
        });
    }

    /// One has all of the limit, which is two: the other claims its share, and no more.
    #[test]
    fn handshakes_are_above_their_limit_by_shares_alone() {
        loom::model(|| {
            let totals = Arc::new(Totals::new(2));
            let begin = |totals: &Arc<Totals>| {
                let mut own = Vec::new();
                for _ in 0..2 {
                    own.extend(Place::take_or_claim(totals, Count::Handshakes, 2, own.len()));
                }
                assert!(!own.is_empty(), "a worker was kept from its share");
                own
            };
            let other = {
                let totals = Arc::clone(&totals);
                thread::spawn(move || begin(&totals))
            };
            let mine = begin(&totals);
            let others = other.join().unwrap();
            let in_flight = mine.len() + others.len();
            assert!((2..=3).contains(&in_flight) && totals.now(Count::Handshakes) == in_flight);
            assert!(totals.excess_of_one_worker(Count::Handshakes, 2) <= 1);
            drop((mine, others));
            assert_eq!(totals.now(Count::Handshakes), 0);
        });
    }

    /// A newcomer for which another was told to go counts beside it until that has gone.
    #[test]
    fn one_that_was_told_to_go_counts_until_it_has_gone() {
        loom::model(|| {
            let totals = Arc::new(Totals::new(2));
            let leaving = Place::take(&totals, Count::Connections, 1);
            let newcomer = Place::take_anyway(&totals, Count::Connections);
            let gone = thread::spawn(move || drop(leaving));
            assert!(Place::take(&totals, Count::Connections, 1).is_none(), "the newcomer has its place");
            gone.join().unwrap();
            assert_eq!(totals.now(Count::Connections), 1);
            drop(newcomer);
            assert_eq!(totals.now(Count::Connections), 0);
        });
    }

    #[test]
    fn an_address_has_no_more_than_its_places_on_all_workers() {
        loom::model(|| {
            let (totals, held) = (Arc::new(Totals::new(2)), Arc::new(Held::default()));
            let successes = two(&totals, move |totals| {
                held.hold(AddressPlace::take(totals, CLIENT, Count::Connections, 1), 1)
            });
            assert!(successes.contains(&true), "there was a place");
            assert!(totals.addresses.is_empty());
        });
    }

    /// The entry of an address goes with its last connection, and not while another worker takes a place in it.
    #[test]
    fn counts_of_one_address_do_not_touch_each_other() {
        loom::model(|| {
            let totals = Arc::new(Totals::new(2));
            let connection = AddressPlace::take(&totals, CLIENT, Count::Connections, 1);
            let other = {
                let totals = Arc::clone(&totals);
                thread::spawn(move || KINDS.map(|what| AddressPlace::take(&totals, CLIENT, what, 2)))
            };
            drop(connection);
            let others = other.join().unwrap();
            assert!(others.iter().all(Option::is_some));
            assert!(!totals.addresses.is_empty());
            for what in KINDS {
                assert!(AddressPlace::take(&totals, CLIENT, what, 1).is_none(), "{what:?} was lost");
            }
            drop(others);
            assert!(totals.addresses.is_empty());
        });
    }
}
