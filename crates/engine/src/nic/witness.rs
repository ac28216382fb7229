//! Whether the adapter has the connection (INV-NIC-1).

use linerate_os::kernel_tls::{Calls, Carrier, HandedOver};
use std::{
    os::fd::BorrowedFd,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// What encrypts a connection after the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The adapter: the kernel says so of this very socket, or nothing else can have moved its count.
    Adapter,
    /// The kernel, in software.
    Software,
    /// Others moved the counts meanwhile, and the kernel tells nothing of single sockets. Counted as the kernel's.
    Unproven,
}

/// Asks the kernel of the socket, if it tells. Older kernels tell only processes with `CAP_NET_ADMIN`; without it two readings of
/// `/proc/net/tls_stat` around the switch must do, for which set-ups take turns.
#[derive(Debug, Default)]
pub struct Witness {
    /// The kernel has told of a socket before, and will again.
    tells: AtomicBool,
    turn: Mutex<()>,
}

impl Witness {
    /// Makes the switch, and proves what encrypts after it.
    ///
    /// # Errors
    /// The switch's.
    pub fn prove<E>(
        &self,
        calls: &dyn Calls,
        socket: BorrowedFd<'_>,
        switch: impl FnOnce() -> Result<(), E>,
    ) -> Result<Proof, E> {
        if self.tells.load(Ordering::Relaxed) {
            switch()?;
            return Ok(of_socket(calls, socket).unwrap_or(Proof::Unproven));
        }
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let before = calls.handed_over().ok();
        switch()?;
        if let Some(proof) = of_socket(calls, socket) {
            self.tells.store(true, Ordering::Relaxed);
            return Ok(proof);
        }
        let after = calls.handed_over().ok();
        drop(turn);
        Ok(before.zip(after).map_or(Proof::Unproven, |(before, after)| of_counts(before, after)))
    }
}

fn of_socket(calls: &dyn Calls, socket: BorrowedFd<'_>) -> Option<Proof> {
    calls.carriers(socket).ok().and_then(|carriers| carriers.sending).map(|carrier| match carrier {
        Carrier::Adapter => Proof::Adapter,
        Carrier::Software => Proof::Software,
    })
}

/// One connection was handed over between two readings; another's, of another process, spoils it. (A namespace whose counts
/// are not those of the sockets moves neither.)
fn of_counts(before: HandedOver, after: HandedOver) -> Proof {
    let moved = (
        after.to_adapters.saturating_sub(before.to_adapters),
        after.to_software.saturating_sub(before.to_software),
    );
    match moved {
        (1, 0) => Proof::Adapter,
        (0, 1) => Proof::Software,
        _ => Proof::Unproven,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_kernel_model::{Nic, Simulated};
    use linerate_os::{kernel_tls::DirectionKey, socket::connected_pair};
    use linerate_placement::{Cipher, Version};
    use std::os::fd::AsFd;

    fn key() -> DirectionKey<'static> {
        let (version, cipher) = (Version::Tls12, Cipher::Aes128Gcm);
        DirectionKey { version, cipher, key: &[1; 16], vector: &[2; 12], sequence: 1 }
    }

    fn prove(witness: &Witness, calls: &Simulated) -> Result<Proof, std::io::Error> {
        let (ours, _theirs) = connected_pair(None).unwrap();
        let socket = ours.as_fd();
        witness.prove(calls, socket, || {
            calls.attach(socket)?;
            calls.install(socket, &key())
        })
    }

    #[test]
    fn the_socket_itself_is_asked_first_and_the_counts_where_it_does_not_tell() {
        for tells_sockets in [true, false] {
            for (takes, expected) in [(true, Proof::Adapter), (false, Proof::Software)] {
                let calls = Simulated::default();
                calls.script.nic.set(Nic { takes, tells_sockets, ..Nic::default() });
                let witness = Witness::default();
                for _ in 0..3 {
                    assert_eq!(prove(&witness, &calls).unwrap(), expected, "tells sockets: {tells_sockets}");
                }
                // The counts are read as long as they are needed.
                let readings = calls.script.calls("handed_over");
                assert_eq!(readings, if tells_sockets { 1 } else { 6 });
            }
        }
    }

    #[test]
    fn what_others_moved_proves_nothing() {
        let calls = Simulated::default();
        calls.script.nic.set(Nic { takes: true, others: 1, ..Nic::default() });
        assert_eq!(prove(&Witness::default(), &calls).unwrap(), Proof::Unproven);
        calls.script.nic.set(Nic { takes: true, counts_nothing: true, ..Nic::default() });
        assert_eq!(prove(&Witness::default(), &calls).unwrap(), Proof::Unproven);
    }

    #[test]
    fn a_switch_that_failed_proves_nothing_and_hinders_nobody() {
        let calls = Simulated::default();
        let witness = Witness::default();
        calls.script.install.lock().push_back(Some(12));
        assert_eq!(prove(&witness, &calls).unwrap_err().raw_os_error(), Some(12));
        calls.script.nic.set(Nic { takes: true, ..Nic::default() });
        assert_eq!(prove(&witness, &calls).unwrap(), Proof::Adapter);
    }
}
