//! From configured addresses to listening sockets: one for each worker on each address (`SO_REUSEPORT`), or those that
//! the service manager hands over.

use crate::report;
use linerate_config::{Listener, ListenerKind};
use linerate_os::{inherited, socket};
use std::{
    collections::BTreeMap,
    io,
    net::{SocketAddr, TcpListener},
    os::fd::AsFd,
};

/// A listening socket and what is done with its connections.
#[derive(Debug)]
pub(crate) struct WorkerListener {
    pub(crate) socket: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) kind: ListenerKind,
    /// The service manager's, which others may share.
    pub(crate) is_inherited: bool,
}

/// What could not be listened on.
#[derive(Debug)]
pub(crate) struct ListenFault {
    pub(crate) listener: String,
    pub(crate) origin: String,
    pub(crate) error: io::Error,
}

impl std::fmt::Display for ListenFault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let advice = match self.error.kind() {
            io::ErrorKind::AddrInUse => {
                ": another program listens there; stop it, or choose another port with --listen"
            }
            io::ErrorKind::PermissionDenied => {
                ": ports below 1024 need CAP_NET_BIND_SERVICE (the systemd unit grants it); or choose a higher one"
            }
            io::ErrorKind::AddrNotAvailable => ": no interface of this machine has that address",
            _ => "",
        };
        write!(formatter, "{}: cannot listen on {}: {}{advice}", self.origin, self.listener, self.error)
    }
}

/// The sockets of all workers for one listener, and the address that was really bound (port 0 became a port).
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) address: SocketAddr,
    pub(crate) kind: ListenerKind,
    pub(crate) listeners: Vec<WorkerListener>,
}

/// Sets what connections inherit from their listener.
pub(crate) fn prepare(
    listener: &impl AsFd,
    address: SocketAddr,
    kind: ListenerKind,
    not_sent_low_water_bytes: Option<u32>,
) {
    // `sendfile` holds an unfilled last segment back, and on loopback a segment is 64 KiB: above a low mark the socket
    // would count as full of bytes that do not leave. Nor is anything gained: the bytes wait in the page cache anyway.
    // NFS is TLS nearly always.
    let low_water_bytes =
        not_sent_low_water_bytes.filter(|_| matches!(kind, ListenerKind::Tls | ListenerKind::Nfs));
    if let Err(error) = socket::prepare_listener(listener, low_water_bytes) {
        report::warn(&format!("{address}: the listener's options could not be set: {error}"));
    }
}

/// Binds listeners, and keeps the sockets that were inherited: no other can be bound to their addresses as long as the
/// service manager has them, so a reload that fails, or leaves a listener out, must not lose them.
#[derive(Debug)]
pub(crate) struct Binder {
    workers: usize,
    inherited: BTreeMap<SocketAddr, Inherited>,
}

#[derive(Debug)]
struct Inherited {
    socket: TcpListener,
    is_used: bool,
}

impl Binder {
    pub(crate) fn new(workers: usize) -> Self {
        let inherited = inherited::listeners()
            .into_iter()
            .filter_map(|socket| {
                let address = socket.local_addr().ok()?;
                Some((address, Inherited { socket, is_used: false }))
            })
            .collect();
        Self { workers, inherited }
    }

    /// Inherited sockets that no configured listener has taken.
    pub(crate) fn unused(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.inherited.iter().filter(|(_, inherited)| !inherited.is_used).map(|(address, _)| *address)
    }

    /// Binds a listener for all workers, with what its connections inherit. `Ok(None)`: it was optional, and this machine
    /// lacks its address family.
    pub(crate) fn bind(
        &mut self,
        listener: &Listener,
        not_sent_low_water_bytes: Option<u32>,
    ) -> Result<Option<Bound>, ListenFault> {
        match self.sockets(listener.address) {
            Ok((address, sockets, is_inherited)) => {
                let kind = listener.kind;
                // Here and not by the workers: the first connections may be made before those run.
                for socket in &sockets {
                    prepare(socket, address, kind, not_sent_low_water_bytes);
                }
                let listeners = sockets
                    .into_iter()
                    .map(|socket| WorkerListener { socket, address, kind, is_inherited })
                    .collect();
                Ok(Some(Bound { address, kind, listeners }))
            }
            Err(error) if !listener.required && error.kind() != io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(ListenFault {
                listener: listener.to_string(),
                origin: listener.origin.to_string(),
                error,
            }),
        }
    }

    /// The address, a socket for each worker, and whether they are the service manager's.
    fn sockets(&mut self, address: SocketAddr) -> io::Result<(SocketAddr, Vec<TcpListener>, bool)> {
        // systemd's `ListenStream=443` is [::]:443 for both families: it serves for 0.0.0.0:443 as well.
        if let Some(inherited) = self.inherited.get_mut(&address) {
            // One socket for all: the kernel gives each connection to one of the workers that wait for it.
            let copies =
                (0..self.workers).map(|_| inherited.socket.try_clone()).collect::<io::Result<_>>()?;
            inherited.is_used = true;
            return Ok((address, copies, true));
        }
        if self.workers > 1 && address.port() != 0 {
            // SO_REUSEPORT lets a second server of the same user share the port unnoticed: a plain bind tells.
            drop(socket::listen(address, false)?);
        }
        let first = socket::listen(address, self.workers > 1)?;
        let bound = first.local_addr()?;
        let mut sockets = vec![first];
        for _ in 1..self.workers {
            sockets.push(socket::listen(bound, true)?);
        }
        Ok((bound, sockets, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_config::{Flags, Settings};
    use socket2::SockRef;
    use std::{net::TcpStream, path::Path};

    /// A connection that the kernel made before a worker ran lacked `TCP_NODELAY`: each of its small responses waited for
    /// an acknowledgement, 40 ms.
    #[test]
    fn connections_inherit_from_the_first_on() {
        let text = "listen = [\"127.0.0.1:0\", \"http://127.0.0.1:0\"]\n[[site]]\nroot = \"r\"\n";
        let settings = Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).unwrap();
        let mut binder = Binder::new(1);
        for listener in &settings.listeners {
            let bound = binder.bind(listener, Some(16 * 1024)).unwrap().unwrap();
            let _client = TcpStream::connect(bound.address).unwrap();
            let accepted = loop {
                match bound.listeners[0].socket.accept() {
                    Ok((accepted, _)) => break accepted,
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            };
            let mark_bytes = if bound.kind == ListenerKind::Tls { 16 * 1024 } else { 0 };
            assert_eq!(linerate_os::socket::not_sent_low_water(&accepted).unwrap(), mark_bytes);
            assert!(SockRef::from(&accepted).tcp_nodelay().unwrap());
        }
    }
}
