//! The other end: takes clients' control connections and their streams on one port.
//!
//! One thread accepts, and reads of each connection what it takes to recognise it (`door`). A control connection gets a
//! thread of its own (`session`) that greets the client, agrees on a run and conducts it. Streams are handed to the session
//! whose token they bring. A run that has begun shares nothing with strangers but the port: they can delay later
//! clients, not runs that have begun.
//!
//! Invariant kept here (`docs/INVARIANTS.md`): INV-STREAM-1.

mod congestion;
mod door;
mod registry;
mod session;

use crate::{Secret, StreamError};
use congestion::Congestion;
use door::Door;
use linerate_tls::{Acceptor, AcceptorBuilder, CertificateFiles, SiteCertificates, TlsPolicy};
use registry::Registry;
pub(crate) use session::start_all;
use std::{
    net::{IpAddr, SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

/// What a listener allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Streams at a time, all runs together.
    pub streams: u32,
    /// The longest run.
    pub time: Duration,
    /// Bits of payload a second of a run, all of its streams together; nothing where there is no limit.
    pub rate_bits: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { streams: 4096, time: Duration::from_secs(3600), rate_bits: None }
    }
}

/// What a listener is made from.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// Where to listen.
    pub address: SocketAddr,
    /// What clients have to know.
    pub secret: Option<Secret>,
    /// What it allows.
    pub limits: Limits,
    /// CPUs to pin the streams' threads to, in turn.
    pub cpus: Vec<usize>,
    /// The certificate that it shows.
    pub certificate: CertificateFiles,
}

/// What all threads of a listener share.
pub(crate) struct House {
    secret: Option<Secret>,
    limits: Limits,
    cpus: Vec<usize>,
    acceptor: Arc<Acceptor>,
    registry: Registry,
    congestion: Congestion,
    tell: fn(&str),
}

/// A listener that is bound.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    house: Arc<House>,
}

impl Listener {
    /// Binds. `tell` is given a line for each run that begins, ends or is refused.
    ///
    /// # Errors
    /// [`StreamError::SecretNeeded`] outside loopback; what the system, or the certificate, says.
    pub fn bind(settings: ListenerSettings, tell: fn(&str)) -> Result<Self, StreamError> {
        let ListenerSettings { address, secret, limits, cpus, certificate } = settings;
        if secret.is_none() && !is_loopback(address.ip()) {
            return Err(StreamError::SecretNeeded(address));
        }
        let policy = TlsPolicy { session_tickets: false, ..TlsPolicy::default() };
        let site = SiteCertificates { names: Vec::new(), certificates: vec![certificate] };
        let acceptor = AcceptorBuilder::new(policy, vec![site]).build().map_err(|errors| {
            errors
                .into_iter()
                .next()
                .map_or_else(|| StreamError::Refused("no certificate".to_owned()), StreamError::Tls)
        })?;
        let listening = |source| StreamError::Listen { address, source };
        let socket = linerate_os::socket::listen(address, false).map_err(listening)?;
        let address = socket.local_addr().map_err(listening)?;
        // What handshakes take is there before the first client.
        let _: [u8; 32] = crate::control::secret::random()?;
        // Without the descriptors fewer streams are taken; that is said when they are asked for.
        let _ = linerate_os::limits::raise_open_files();
        let house = House {
            secret,
            limits,
            cpus,
            acceptor: Arc::new(acceptor),
            registry: Registry::default(),
            congestion: Congestion::of(&socket).map_err(listening)?,
            tell,
        };
        Ok(Self { socket, address, house: Arc::new(house) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves clients until the listening socket fails.
    ///
    /// # Errors
    /// The kernel's, of the listening socket.
    pub fn serve(self) -> Result<std::convert::Infallible, StreamError> {
        let address = self.address;
        Door::new(self.socket, self.house).open().map_err(|source| StreamError::Listen { address, source })
    }
}

/// Whether an address is reached from this machine alone.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_recognised_in_every_form() {
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(is_loopback(address.parse().unwrap()), "{address}");
        }
        for address in ["0.0.0.0", "::", "192.0.2.1", "::ffff:192.0.2.1", "128.0.0.1"] {
            assert!(!is_loopback(address.parse().unwrap()), "{address}");
        }
    }
}
