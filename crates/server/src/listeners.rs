//! From configured addresses to listening sockets: one for each worker on each address (`SO_REUSEPORT`), or those that
//! the service manager hands over.

use crate::worker::Ear;
use linerate_config::{Listener, ListenerKind};
use linerate_os::{inherited, socket};
use std::{
    collections::BTreeMap,
    io,
    net::{SocketAddr, TcpListener},
};

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
    pub(crate) ears: Vec<Ear>,
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

    /// Binds a listener for all workers. `Ok(None)`: it was optional, and this machine lacks its address family.
    pub(crate) fn bind(&mut self, listener: &Listener) -> Result<Option<Bound>, ListenFault> {
        match self.sockets(listener.address) {
            Ok((address, sockets)) => {
                let kind = listener.kind;
                let ears = sockets.into_iter().map(|socket| Ear { socket, address, kind }).collect();
                Ok(Some(Bound { address, kind, ears }))
            }
            Err(error) if !listener.required && error.kind() != io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(ListenFault {
                listener: listener.to_string(),
                origin: listener.origin.to_string(),
                error,
            }),
        }
    }

    fn sockets(&mut self, address: SocketAddr) -> io::Result<(SocketAddr, Vec<TcpListener>)> {
        // systemd's `ListenStream=443` is [::]:443 for both families: it serves for 0.0.0.0:443 as well.
        if let Some(inherited) = self.inherited.get_mut(&address) {
            // One socket for all: the kernel gives each connection to one of those who wait for it.
            let copies =
                (0..self.workers).map(|_| inherited.socket.try_clone()).collect::<io::Result<_>>()?;
            inherited.is_used = true;
            return Ok((address, copies));
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
        Ok((bound, sockets))
    }
}
