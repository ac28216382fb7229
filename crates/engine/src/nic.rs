//! The NIC engine: the kernel engine's system calls, on a connection that leaves by an adapter that encrypts, and the proof
//! that the adapter took it.
//!
//! Linux gives a connection to the adapter by itself when kernel TLS is switched on for it, and goes on in software where
//! the adapter refuses: `setsockopt` succeeds either egress. So success is looked for, not assumed ([`Proof`]). What follows
//! the switch is the same on both: records, control records, the end (`engine/kernel`).
//!
//! A set-up goes through the adapter's firmware, which may take milliseconds and takes one at a time. So it is made on a
//! thread that may wait, with the connection parked ([`set_up`]), and few at a time ([`SetUps`]): the worker goes on
//! accepting and sending (INV-NIC-2).

mod adapters;
mod memory;
pub mod route;
mod witness;

pub use adapters::{Adapters, Egress, Flow};
pub use witness::{Proof, Witness};

use crate::kernel::{Prepared, Refusal};
use linerate_os::kernel_tls::Calls;
use std::{cell::Cell, os::fd::BorrowedFd, rc::Rc};

/// Set-ups that a worker has under way at once. An adapter takes one after the other: more would only fill the threads
/// that cold files wait on.
const SET_UPS_AT_ONCE: usize = 4;

/// Set-ups of a worker that are under egress.
#[derive(Debug, Default)]
pub struct SetUps(Rc<Cell<usize>>);

/// The place of one of them.
#[derive(Debug)]
pub struct SetUpPlace(Rc<Cell<usize>>);

impl SetUps {
    /// A place for another, if there is one.
    pub fn enter(&self) -> Option<SetUpPlace> {
        let under_way = self.0.get();
        (under_way < SET_UPS_AT_ONCE).then(|| {
            self.0.set(under_way + 1);
            SetUpPlace(Rc::clone(&self.0))
        })
    }
}

impl Drop for SetUpPlace {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The switch, and the proof of what encrypts after it. May wait for the adapter: not for a worker's thread.
///
/// # Errors
/// Nobody has the key: the user engine goes on.
pub fn set_up(
    calls: &dyn Calls,
    socket: BorrowedFd<'_>,
    prepared: &Prepared,
    witness: &Witness,
) -> Result<Proof, Refusal> {
    witness.prove(calls, socket, || prepared.switch(calls, socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_a_few_set_ups_are_under_way() {
        let set_ups = SetUps::default();
        let mut places: Vec<_> = (0..SET_UPS_AT_ONCE).map(|_| set_ups.enter().unwrap()).collect();
        assert!(set_ups.enter().is_none());
        places.pop();
        places.push(set_ups.enter().unwrap());
        assert!(set_ups.enter().is_none());
        places.clear();
        assert!(set_ups.enter().is_some());
    }
}
