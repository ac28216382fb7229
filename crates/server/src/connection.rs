//! One connection from accept to close.

use crate::{
    client::{Client, TlsFacts},
    ending::Ending,
    exchange::{Service, serve},
    handshake::{self, HandshakeEnd},
    link::{Linger, Link},
    metrics::Label as _,
    places::handshakes::Ticket,
    snapshot::Snapshot,
    watch::Watch,
};
use linerate_config::ListenerKind;
use linerate_record::{Channel, Combination, KeyUpdateRate, RecordError, RecordLimit};
use linerate_tls::{Established, FailureKind, KeySchedule};
use std::{net::SocketAddr, rc::Rc, sync::Arc, time::Instant};
use tokio::net::TcpStream;

/// What a connection begins with.
pub(crate) enum Begun {
    /// A handshake.
    Tls(Ticket),
    /// A request.
    Clear(TcpStream, Rc<Watch>),
}

/// Serves a connection to its end, for as long as it counts as `_active`.
pub(crate) async fn run<Active>(
    _active: Active,
    begun: Begun,
    address: SocketAddr,
    kind: ListenerKind,
    service: Rc<Service>,
) {
    let workplace = Rc::clone(&service.workplace);
    let (link, client) = match begun {
        Begun::Tls(ticket) => match secure(ticket, address, &service).await {
            Some(secured) => secured,
            None => return,
        },
        Begun::Clear(stream, watch) => {
            let client = Client { address, tls: None, redirect: kind == ListenerKind::Redirect };
            (Link::plain(stream, watch, workplace), client)
        }
    };
    finish(link, &service, &client).await;
}

async fn finish(mut link: Link<KeySchedule>, service: &Service, client: &Client) {
    let (ending, linger) = serve(&mut link, service, client).await;
    service.workplace.metrics.close(ending.closed());
    link.close(&ending, linger).await;
}

/// The handshake, and what follows from it.
async fn secure(
    ticket: Ticket,
    address: SocketAddr,
    service: &Service,
) -> Option<(Link<KeySchedule>, Client)> {
    let workplace = &service.workplace;
    let started = Instant::now();
    let snapshot = service.snapshots.load_full();
    // A TLS listener exists only together with an acceptor.
    let acceptor = snapshot.acceptor.as_ref()?;
    let watch = Rc::clone(ticket.watch());
    let outcome = handshake::run(acceptor, &ticket, workplace).await;
    // Its place is free for another, also while a client is told why it failed.
    let stream = ticket.into_stream()?;
    let finished = match outcome {
        Ok(finished) => finished,
        Err(HandshakeEnd::Ended(ending)) => {
            workplace.metrics.handshake_failed(ending.closed().label());
            workplace.metrics.close(ending.closed());
            return None;
        }
        Err(HandshakeEnd::Failed { failure, arrived }) => {
            let label = failure.kind().label();
            workplace.metrics.handshake_failed(label);
            workplace.metrics.close(Ending::Handshake(label).closed());
            match failure.kind() {
                FailureKind::PlainHttp => {
                    handshake::answer_plain_http(&arrived, stream, watch, Rc::clone(workplace)).await;
                }
                // It has left, or said so.
                FailureKind::PeerClosed | FailureKind::PeerAlert | FailureKind::CertificateRefused => {}
                _ => {
                    // It may still be sending: closing at once could destroy the alert.
                    let link = Link::<KeySchedule>::plain(stream, watch, Rc::clone(workplace));
                    link.close(&Ending::Handshake(label), Linger::UntilPeerCloses).await;
                }
            }
            return None;
        }
    };
    workplace.metrics.handshake(finished.established.version, finished.established.resumed);
    workplace.metrics.handshake_seconds.observe(started.elapsed());
    let client = Client {
        address,
        tls: Some(TlsFacts {
            version: finished.established.version.label(),
            cipher: finished.established.cipher_suite.iana_name(),
            server_name: finished.established.server_name.clone(),
            certificate: Arc::clone(&finished.established.certificate),
            resumed: finished.established.resumed,
        }),
        redirect: false,
    };
    let channel = match channel(*finished.established, &snapshot) {
        Ok(channel) => channel,
        Err(fault) => {
            workplace.metrics.close(Ending::Record(fault).closed());
            return None;
        }
    };
    let mut link = Link::tls(stream, watch, Rc::clone(workplace), channel, finished.unsent);
    if let Err(ending) = link.take_records(finished.arrived) {
        workplace.metrics.close(ending.closed());
        // The peer is told why, as it would be of any later record.
        link.close(&ending, Linger::UntilPeerCloses).await;
        return None;
    }
    Some((link, client))
}

/// The record layer takes over (INV-NONCE-2).
fn channel(established: Established, snapshot: &Snapshot) -> Result<Channel<KeySchedule>, RecordError> {
    let (version, cipher) = (established.send.key.version(), established.send.key.cipher());
    let own = RecordLimit::of(cipher);
    let limit = snapshot.records_per_key_limit.map_or(own, |records| own.lowered_to(records));
    // A key is kept only where the kernel may take it later.
    let may_be_promoted = snapshot
        .kernel
        .as_ref()
        .is_some_and(|kernel| kernel.verdict(Combination { version, cipher }).is_ok());
    let rate = KeyUpdateRate::new(snapshot.key_updates_per_second_limit);
    established.into_channel(limit, may_be_promoted, rate)
}
