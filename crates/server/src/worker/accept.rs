//! Taking connections, and refusing those that there is no room for.

use super::{Ear, EarControl, HandshakeTicket, Place, Worker};
use crate::{connection, listeners, metrics::Refused, report};
use linerate_config::ListenerKind;
use std::{fs::File, io, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};

/// How long to let a listener rest when the system is short of something and nothing can be given up.
const REST: Duration = Duration::from_millis(100);

/// Takes connections until told to stop; those that wait in the kernel's queue by then are still taken.
pub(super) async fn run(worker: Rc<Worker>, ear: Ear, control: Rc<EarControl>) {
    let Ear { socket, address, mut kind } = ear;
    let listener = match TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => return report::warn(&format!("{address}: cannot listen: {error}")),
    };
    // It was prepared when it was bound; the configuration may have changed since.
    worker.prepare(&listener, address, kind);
    let mut spare = Spare::new();
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => Some(accepted),
            () = control.changed.notified() => None,
        };
        match (accepted, control.kind.get()) {
            (Some(Ok((stream, peer))), wanted) => worker.admit(stream, peer, wanted.unwrap_or(kind)),
            (Some(Err(error)), _) => worker.accept_failed(&error, &listener, &mut spare).await,
            (None, Some(wanted)) => {
                kind = wanted;
                worker.prepare(&listener, address, kind);
            }
            (None, None) => break,
        }
    }
    // `accept` is asked first and empties the queue before `control` is looked at, so nobody is left behind here but who
    // comes in this very moment.
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
        metrics.connections_active.increment();
        let service = Rc::clone(&self.service);
        tokio::task::spawn_local(async move {
            let metrics = Arc::clone(&service.workplace.metrics);
            connection::run(stream, address, kind, service, ticket).await;
            metrics.connections_active.decrement();
            drop(place);
        });
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
