//! How many connections and handshakes are whose: counts by address, shared by all workers.
//!
//! They are kept only where a limit by address is configured. An entry lives as long as one of its connections, so there are
//! never more than connections (INV-BOUND-1).

use super::Totals;
use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Locks, so that workers seldom wait for each other.
const SHARDS: usize = 16;

/// What counts as one address: an IPv4 address, or the IPv6 network of 64 bits that one site is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Whose {
    V4(u32),
    V6(u64),
}

impl Whose {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Connections,
    Handshakes,
}

#[derive(Debug, Default)]
struct Counts {
    connections: usize,
    handshakes: usize,
}

impl Counts {
    fn of(&mut self, what: Count) -> &mut usize {
        match what {
            Count::Connections => &mut self.connections,
            Count::Handshakes => &mut self.handshakes,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// Its keys are random: nobody outside can make addresses collide.
    hasher: RandomState,
    shards: [Mutex<HashMap<Whose, Counts>>; SHARDS],
}

impl Addresses {
    fn shard(&self, whose: Whose) -> MutexGuard<'_, HashMap<Whose, Counts>> {
        let index = self.hasher.hash_one(whose) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among its address's, given back when dropped.
#[derive(Debug)]
pub(super) struct AddressPlace {
    totals: Arc<Totals>,
    whose: Whose,
    what: Count,
}

impl AddressPlace {
    /// `None` if the address has `limit` already.
    pub(super) fn take(totals: &Arc<Totals>, address: IpAddr, what: Count, limit: usize) -> Option<Self> {
        let whose = Whose::of(address);
        let mut shard = totals.addresses.shard(whose);
        let count = shard.entry(whose).or_default().of(what);
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(Self { totals: Arc::clone(totals), whose, what })
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.totals.addresses.shard(self.whose).entry(self.whose) {
            let count = entry.get_mut().of(self.what);
            *count = count.saturating_sub(1);
            if entry.get().connections == 0 && entry.get().handshakes == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_more_than_its_places_and_nothing_is_left_of_it() {
        let totals = Arc::new(Totals::default());
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
        assert!(totals.addresses.shards.iter().all(|shard| shard.lock().unwrap().is_empty()));
    }
}
