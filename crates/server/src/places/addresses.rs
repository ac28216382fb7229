//! How many connections and handshakes each address has: counts shared by all workers.
//!
//! They are kept only where a limit by address is configured. An entry lives as long as one of its connections, so there are
//! never more than connections (INV-BOUND-1).
//!
//! `tests/shared-memory` includes this file to run it in loom's model, so it names what threads share by `crate::sync` alone.

use super::totals::{Count, Totals};
use crate::sync::{Arc, Mutex, MutexGuard, RandomState};
use std::{
    collections::{HashMap, hash_map::Entry},
    hash::BuildHasher,
    net::IpAddr,
    sync::PoisonError,
};

/// Locks, so that workers seldom wait for each other.
const SHARDS: usize = 16;

/// What counts as one address: an IPv4 address, or the IPv6 network of 64 bits that one site is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AddressKey {
    V4(u32),
    V6(u64),
}

impl AddressKey {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
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
pub(crate) struct Addresses {
    /// Its keys are random: nobody outside can make addresses collide.
    hasher: RandomState,
    shards: [Mutex<HashMap<AddressKey, Counts>>; SHARDS],
}

impl Addresses {
    fn shard(&self, key: AddressKey) -> MutexGuard<'_, HashMap<AddressKey, Counts>> {
        let index = self.hasher.hash_one(key) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing is left of any address.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_ok_and(|counts| counts.is_empty()))
    }
}

/// A place among its address's, given back when dropped.
#[derive(Debug)]
pub(crate) struct AddressPlace {
    totals: Arc<Totals>,
    key: AddressKey,
    what: Count,
}

impl AddressPlace {
    /// `None` if the address has `limit` already.
    pub(crate) fn take(totals: &Arc<Totals>, address: IpAddr, what: Count, limit: usize) -> Option<Self> {
        let key = AddressKey::of(address);
        let mut shard = totals.addresses.shard(key);
        let count = shard.entry(key).or_default().of(what);
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(Self { totals: Arc::clone(totals), key, what })
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.totals.addresses.shard(self.key).entry(self.key) {
            let count = entry.get_mut().of(self.what);
            *count = count.saturating_sub(1);
            if entry.get().connections == 0 && entry.get().handshakes == 0 {
                entry.remove();
            }
        }
    }
}
