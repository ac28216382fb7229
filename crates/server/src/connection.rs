//! One connection of HTTP from accept to close.

use crate::{
    client::Client,
    exchange::{Service, serve},
    link::Link,
    places::handshakes::Ticket,
    secured::{Keys, Secured, secure},
    watch::Watch,
};
use linerate_config::ListenerKind;
use linerate_tls::KeySchedule;
use std::{net::SocketAddr, rc::Rc};
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
    let (link, client) = match begun {
        Begun::Tls(ticket) => {
            let snapshot = service.snapshots.load_full();
            // A TLS listener exists only together with an acceptor.
            let Some(acceptor) = &snapshot.acceptor else { return };
            let secured = secure(ticket, acceptor, &snapshot, &service.workplace, Keys::Updated).await;
            let Some(Secured { link, facts, .. }) = secured else { return };
            (link, Client { address, tls: Some(facts), redirect: false })
        }
        Begun::Clear(stream, watch) => {
            let client = Client { address, tls: None, redirect: kind == ListenerKind::Redirect };
            (Link::plain(stream, watch, Rc::clone(&service.workplace)), client)
        }
    };
    finish(link, &service, &client).await;
}

async fn finish(mut link: Link<KeySchedule>, service: &Service, client: &Client) {
    let (ending, linger) = serve(&mut link, service, client).await;
    service.workplace.metrics.close(ending.closed());
    link.close(&ending, linger).await;
}
