//! Taking connections, and refusing those that there is no room for.

use super::{ListenerControl, Wanted, Worker, admission::Places};
use crate::{
    connection::{self, Begun},
    listeners::{self, WorkerListener},
    metrics::{Closed, Metrics, Refused},
    nfs,
    places::{HandshakePlaces, handshakes::Ticket},
    report,
    watch::{Stage, Watch},
};
use linerate_config::ListenerKind;
use linerate_os::{limits, socket};
use std::{
    future::{Future, poll_fn},
    io,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};

/// How long to let a listener rest when the system is short of something and nothing can be given up.
const REST: Duration = Duration::from_millis(100);

/// Connections that are taken from the kernel's queue before a listener is closed. The queue is no longer, and a socket
/// that others share may be given new ones without end.
const LAST_ACCEPTS: usize = socket::BACKLOG as usize;

/// Takes connections until the listener is to be closed, and those that wait in the kernel's queue by then.
pub(super) async fn run(worker: Rc<Worker>, listener: WorkerListener, control: Rc<ListenerControl>) {
    let WorkerListener { socket, address, mut kind, is_inherited } = listener;
    let listener = match TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => return report::warn(&format!("{address}: cannot listen: {error}")),
    };
    // It was prepared when it was bound; the configuration may have changed since.
    worker.prepare(&listener, address, kind);
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
            (Some(Err(error)), _) => worker.accept_failed(&error, &listener).await,
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

    fn admit(self: &Rc<Self>, stream: TcpStream, address: SocketAddr, kind: ListenerKind) {
        let metrics = &self.service.workplace.metrics;
        let snapshot = self.service.snapshots.load();
        metrics.connections_accepted.increment();
        if !self.service.workplace.reserve.refill() {
            // The reserve is for clients that have a connection.
            return metrics.refuse(Refused::Descriptors);
        }
        let (places, handshake) = match self.find_places(address.ip(), kind, &snapshot) {
            Ok(found) => found,
            Err(reason) => return metrics.refuse(reason),
        };
        let begun = self.begin(stream, handshake);
        let active = Active::new(Arc::clone(metrics), places);
        let service = Rc::clone(&self.service);
        match begun {
            Begun::Clear(stream, watch) if kind == ListenerKind::Nfs => {
                let door = Rc::clone(self) as Rc<dyn nfs::Door>;
                spawn(active, |active| nfs::run(active, (stream, watch), address, door, service));
            }
            begun => spawn(active, |active| connection::run(active, begun, address, kind, service)),
        }
    }

    /// The time for a handshake runs from here on.
    fn begin(&self, stream: TcpStream, handshake: Option<HandshakePlaces>) -> Begun {
        let workplace = &self.service.workplace;
        let watch = workplace.watches.enter();
        let Some(places) = handshake else { return Begun::Clear(stream, watch) };
        Begun::Tls(self.enter_handshake(stream, watch, places))
    }

    fn enter_handshake(&self, stream: TcpStream, watch: Rc<Watch>, places: HandshakePlaces) -> Ticket {
        let workplace = &self.service.workplace;
        let now_ms = workplace.now_ms();
        let limit_ms = workplace.time_limits.get().handshake_ms;
        watch.begin(Stage::Handshake, now_ms.saturating_add(limit_ms));
        self.handshakes.enter(stream, watch, now_ms, places)
    }

    /// Takes a connection; of a listener that `retires` it inherited what keeps others from beginning.
    fn take(self: &Rc<Self>, stream: TcpStream, address: SocketAddr, kind: ListenerKind, retires: bool) {
        if retires {
            socket::begin_connections_again(&stream);
        }
        self.admit(stream, address, kind);
    }

    /// Takes the connections that wait in the kernel's queue and closes the listener, because closing resets every
    /// connection in the queue. The kernel is asked: the runtime knows only what the kernel told it when it was last idle.
    fn take_the_last(self: &Rc<Self>, listener: TcpListener, kind: ListenerKind, retires: bool) {
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

    /// A connection that was gone before we took it is nothing. For want of descriptors cached files are given up first, then
    /// connections on which nothing happens; then this one is refused.
    async fn accept_failed(&self, error: &io::Error, listener: &TcpListener) {
        if !limits::is_shortage(error) {
            return;
        }
        let files = &self.service.files;
        if !files.borrow().is_empty() {
            return files.borrow_mut().clear();
        }
        if self.close_one_that_waits() {
            // It is closed when its task has run.
            return tokio::task::yield_now().await;
        }
        if !self.refuse_one(listener).await {
            tokio::time::sleep(REST).await;
        }
    }

    /// Takes a connection by a descriptor out of the reserve and closes it: its client learns at once that it is refused
    /// instead of waiting, and the listener does not report the same connection for ever. False if there was none.
    async fn refuse_one(&self, listener: &TcpListener) -> bool {
        let workplace = &self.service.workplace;
        if !workplace.reserve.release() {
            return workplace.reserve.refill();
        }
        let accepted = poll_fn(|context| Poll::Ready(listener.poll_accept(context))).await;
        let was_there = matches!(&accepted, Poll::Ready(Ok(_)));
        // Closed before the reserve is made whole, which needs its descriptor.
        drop(accepted);
        if was_there {
            workplace.metrics.refuse(Refused::Descriptors);
        }
        workplace.reserve.refill();
        was_there
    }
}

impl nfs::Door for Worker {
    fn begin_handshake(
        &self,
        stream: TcpStream,
        watch: Rc<Watch>,
        address: IpAddr,
    ) -> Result<Ticket, Refused> {
        let places = self.find_handshake_places(address, &self.service.snapshots.load())?;
        Ok(self.enter_handshake(stream, watch, places))
    }
}

/// A connection that counts until this is dropped, however its task ends (INV-PEER-1).
pub(super) struct Active {
    metrics: Arc<Metrics>,
    _places: Places,
}

impl Active {
    pub(super) fn new(metrics: Arc<Metrics>, places: Places) -> Self {
        metrics.connections_active.increment();
        Self { metrics, _places: places }
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

/// Serves a connection in a task of its own: a panic ends that task, and the runtime goes on with the others. The task owns
/// `active`. It is handed to the future, because an `async` block around that would hold all of the future twice.
pub(super) fn spawn<F: Future<Output = ()> + 'static>(active: Active, connection: impl FnOnce(Active) -> F) {
    tokio::task::spawn_local(connection(active));
}
