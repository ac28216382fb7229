//! Taking connections, and refusing those that there is no room for.

use super::{Ear, EarControl, HandshakeTicket, Place, Wanted, Worker};
use crate::{
    connection, listeners,
    metrics::{Closed, Metrics, Refused},
    report,
};
use linerate_config::ListenerKind;
use linerate_os::socket;
use std::{fs::File, future::Future, io, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};

/// How long to let a listener rest when the system is short of something and nothing can be given up.
const REST: Duration = Duration::from_millis(100);

/// Connections that are taken from the kernel's queue before a listener is closed. The queue is no longer, and a socket
/// that others share may be given new ones without end.
const LAST_ACCEPTS: usize = socket::BACKLOG as usize;

/// Takes connections until the listener is to be closed, and those that wait in the kernel's queue by then.
pub(super) async fn run(worker: Rc<Worker>, ear: Ear, control: Rc<EarControl>) {
    let Ear { socket, address, mut kind, is_inherited } = ear;
    let listener = match TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => return report::warn(&format!("{address}: cannot listen: {error}")),
    };
    // It was prepared when it was bound; the configuration may have changed since.
    worker.prepare(&listener, address, kind);
    let mut spare = Spare::new();
    let mut retires = false;
    loop {
        // What the service manager's socket holds is for the next server.
        let takes = !is_inherited || control.wanted.get() != Wanted::Retire;
        let accepted = tokio::select! {
            biased;
            () = control.changed.notified() => None,
            accepted = listener.accept(), if takes => Some(accepted),
        };
        match (accepted, control.wanted.get()) {
            (Some(Ok((stream, peer))), _) => worker.take(stream, peer, kind, retires),
            (Some(Err(error)), _) => worker.accept_failed(&error, &listener, &mut spare).await,
            (None, Wanted::Serve(wanted)) => {
                kind = wanted;
                worker.prepare(&listener, address, kind);
                if std::mem::take(&mut retires) {
                    socket::begin_connections_again(&listener);
                }
            }
            (None, Wanted::Retire) => {
                retires = !is_inherited && socket::begin_no_connections(&listener).is_ok();
            }
            (None, Wanted::Close) => break,
        }
    }
    if !(is_inherited && worker.service.workplace.watches.is_draining()) {
        worker.take_the_last(listener, kind, retires);
    }
}

impl Worker {
    /// Sets on a listener what its connections inherit, as configured now.
    fn prepare(&self, listener: &TcpListener, address: SocketAddr, kind: ListenerKind) {
        let low_water_bytes = self.service.snapshots.load().not_sent_low_water_bytes;
        listeners::prepare(listener, address, kind, low_water_bytes);
    }

    fn admit(&self, stream: TcpStream, address: SocketAddr, kind: ListenerKind) {
        let metrics = &self.service.workplace.metrics;
        let snapshot = self.service.snapshots.load();
        metrics.connections_accepted.increment();
        let Some(place) = Place::take(&self.totals, |totals| &totals.connections, snapshot.connections_limit)
        else {
            return metrics.refuse(Refused::Connections);
        };
        let ticket = match kind {
            ListenerKind::Tls => {
                let handshake =
                    Place::take(&self.totals, |totals| &totals.handshakes, snapshot.handshakes_limit);
                let Some(handshake) = handshake else { return metrics.refuse(Refused::Handshakes) };
                Some(HandshakeTicket::new(handshake, Arc::clone(metrics)))
            }
            ListenerKind::Plaintext | ListenerKind::Redirect => None,
        };
        let active = Active::new(Arc::clone(metrics), place);
        spawn(active, connection::run(stream, address, kind, Rc::clone(&self.service), ticket));
    }

    /// Takes a connection; of a listener that `retires` it inherited what keeps others from beginning.
    fn take(&self, stream: TcpStream, address: SocketAddr, kind: ListenerKind, retires: bool) {
        if retires {
            socket::begin_connections_again(&stream);
        }
        self.admit(stream, address, kind);
    }

    /// Takes who waits in the kernel's queue and closes the listener. The kernel is asked, and not the runtime, which
    /// knows what the kernel told it when it was last idle: closing resets whoever is in the queue.
    fn take_the_last(&self, listener: TcpListener, kind: ListenerKind, retires: bool) {
        let Ok(listener) = listener.into_std() else { return };
        for _ in 0..LAST_ACCEPTS {
            match listener.accept() {
                Ok((stream, peer)) => {
                    let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                    // A socket that the runtime cannot have is closed.
                    let Ok(stream) = stream else { continue };
                    self.take(stream, peer, kind, retires);
                }
                // Gone before it was taken.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => return,
            }
        }
    }

    /// A connection that was gone before we took it is nothing; a lack of descriptors is answered by refusing.
    async fn accept_failed(&self, error: &io::Error, listener: &TcpListener, spare: &mut Spare) {
        const SHORTAGES: [i32; 4] = [
            23,  // ENFILE
            24,  // EMFILE
            12,  // ENOMEM
            105, // ENOBUFS
        ];
        if !error.raw_os_error().is_some_and(|code| SHORTAGES.contains(&code)) {
            return;
        }
        self.service.workplace.metrics.refuse(Refused::Descriptors);
        // Cached files are descriptors that can be given up.
        self.service.files.borrow_mut().clear();
        if !spare.refuse_one(listener).await {
            tokio::time::sleep(REST).await;
        }
    }
}

/// A connection that counts until this is dropped, however its task ends (INV-PEER-1).
pub(super) struct Active {
    metrics: Arc<Metrics>,
    _place: Place,
}

impl Active {
    pub(super) fn new(metrics: Arc<Metrics>, place: Place) -> Self {
        metrics.connections_active.increment();
        Self { metrics, _place: place }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.metrics.connections_active.decrement();
        if std::thread::panicking() {
            self.metrics.close(Closed::Panic);
        }
    }
}

/// Serves a connection in a task of its own: a panic ends that task, and the runtime goes on with the others.
pub(super) fn spawn(active: Active, connection: impl Future<Output = ()> + 'static) {
    tokio::task::spawn_local(async move {
        let _active = active;
        connection.await;
    });
}

/// A descriptor kept in reserve, so that a connection can be taken and closed when there is none left: its peer learns
/// at once that it is refused, instead of waiting, and the listener does not report the same connection for ever.
struct Spare(Option<File>);

impl Spare {
    fn new() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// True if a connection was taken and closed.
    async fn refuse_one(&mut self, listener: &TcpListener) -> bool {
        if self.0.take().is_none() {
            *self = Self::new();
            return false;
        }
        let refused = tokio::time::timeout(Duration::from_millis(1), listener.accept()).await;
        let refused = matches!(refused, Ok(Ok(_)));
        *self = Self::new();
        refused
    }
}
