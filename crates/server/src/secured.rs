//! From a handshake to a link: what a connection with TLS begins with, whatever is spoken inside.

use crate::{
    client::TlsFacts,
    ending::Ending,
    handshake::{self, HandshakeEnd},
    link::{Linger, Link},
    metrics::Label as _,
    places::handshakes::Ticket,
    snapshot::Snapshot,
    workplace::Workplace,
};
use linerate_record::{Channel, Combination, KeyUpdateRate, RecordError, RecordLimit};
use linerate_tls::{Acceptor, ClientIdentity, Established, FailureKind, KeySchedule};
use std::{rc::Rc, sync::Arc, time::Instant};

/// Whether the sending key is ever replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// By a key update, before its limit.
    Updated,
    /// The peer cannot take an update: the connection ends before the key's limit instead.
    One,
}

/// A connection behind its handshake.
pub(crate) struct Secured {
    pub(crate) link: Link<KeySchedule>,
    pub(crate) facts: TlsFacts,
    /// Who the client is by its certificate.
    pub(crate) client: ClientIdentity,
}

/// The handshake, and what follows from it. `None` if there is no connection: it was counted, and the client told why.
pub(crate) async fn secure(
    ticket: Ticket,
    acceptor: &Arc<Acceptor>,
    snapshot: &Snapshot,
    workplace: &Rc<Workplace>,
    keys: Keys,
) -> Option<Secured> {
    let started = Instant::now();
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
    let established = *finished.established;
    workplace.metrics.handshake(established.version, established.resumed);
    workplace.metrics.handshake_seconds.observe(started.elapsed());
    let facts = TlsFacts {
        version: established.version.label(),
        cipher: established.cipher_suite.iana_name(),
        server_name: established.server_name.clone(),
        certificate: Arc::clone(&established.certificate),
        resumed: established.resumed,
    };
    let client = established.client.clone();
    let channel = match channel(established, snapshot, keys) {
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
    Some(Secured { link, facts, client })
}

/// The record layer takes over (INV-NONCE-2).
fn channel(
    established: Established,
    snapshot: &Snapshot,
    keys: Keys,
) -> Result<Channel<KeySchedule>, RecordError> {
    let (version, cipher) = (established.send.key.version(), established.send.key.cipher());
    let own = RecordLimit::of(cipher);
    let limit = snapshot.records_per_key_limit.map_or(own, |records| own.lowered_to(records));
    // A key is kept only where the kernel may take it later.
    let may_be_promoted = snapshot
        .kernel
        .as_ref()
        .is_some_and(|kernel| kernel.verdict(Combination { version, cipher }).is_ok());
    let rate = KeyUpdateRate::new(snapshot.key_updates_per_second_limit);
    let mut channel = established.into_channel(limit, may_be_promoted, rate)?;
    if keys == Keys::One {
        channel.keep_one_key();
    }
    Ok(channel)
}
