//! What the kernel of this machine opens, found out by doing it.

use crate::kernel::{Objection, probe_socket};
use linerate_os::kernel_tls::{Calls, DirectionKey};
use linerate_placement::{Combination, Engine, Lack, Version};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// How the kernel opens the records of a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedReceiving {
    /// It takes another key for a connection that has one (TLS 1.3, Linux 6.14). Where it does not, a key update of the peer's
    /// ends the connection.
    pub takes_new_keys: bool,
    /// It can be told that no padding is expected (TLS 1.3, Linux 6.0). TLS 1.2 has none.
    pub knows_no_padding: bool,
}

/// Tries a combination on a pair of sockets of this machine.
///
/// # Errors
/// Why the kernel does not open its records.
pub fn carried(calls: &dyn Calls, combination: Combination) -> Result<CarriedReceiving, Objection> {
    let Combination { version, cipher } = combination;
    let (ours, _theirs) = probe_socket(calls)?;
    let key = [0x6B; 32];
    let receiving =
        DirectionKey { version, cipher, key: &key[..cipher.key_bytes()], vector: &[0x1F; 12], sequence: 0 };
    calls.install_receiving(ours.as_fd(), &receiving).map_err(|error| {
        match Errno::from_io_error(&error) {
            Some(Errno::INVAL | Errno::NOENT) => Lack::NotInKernel(combination).into(),
            _ => Objection {
                lack: Lack::NotKnown(Engine::Kernel),
                detail: format!("no key could be installed to receive with: {error}"),
            },
        }
    })?;
    let knows_no_padding = version == Version::Tls13 && calls.expect_no_padding(ours.as_fd(), true).is_ok();
    Ok(CarriedReceiving {
        knows_no_padding,
        // The connection ends here: another key for it is only a question.
        takes_new_keys: version == Version::Tls13
            && calls.install_receiving(ours.as_fd(), &receiving).is_ok(),
    })
}
