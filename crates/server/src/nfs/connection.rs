//! One connection of NFS from accept to close: in the clear, and with TLS from where the client asks for it (RFC 9289).

use super::talk::{End, Talk};
use crate::{
    ending::Ending,
    exchange::Service,
    link::{Linger, Link},
    metrics::{Closed, Refused},
    places::handshakes::Ticket,
    secured::{Keys, Secured, secure},
    watch::{Expiry, Stage, Watch},
};
use linerate_nfs::{Certificate, Client, Tls};
use linerate_tls::{ClientIdentity, KeySchedule};
use std::{
    net::{IpAddr, SocketAddr},
    rc::Rc,
    sync::Arc,
};
use tokio::net::TcpStream;

/// Where a connection that has begun in the clear gets a place for its handshake, under the same limits as all others.
pub(crate) trait Door {
    /// # Errors
    /// There is no place.
    fn begin_handshake(
        &self,
        stream: TcpStream,
        watch: Rc<Watch>,
        address: IpAddr,
    ) -> Result<Ticket, Refused>;
}

/// Serves a connection to its end, for as long as it counts as `_active`.
pub(crate) async fn run<Active>(
    _active: Active,
    (stream, watch): (TcpStream, Rc<Watch>),
    address: SocketAddr,
    door: Rc<dyn Door>,
    service: Rc<Service>,
) {
    let link = Link::plain(stream, watch, Rc::clone(&service.workplace));
    let client = Arc::new(Client { address, tls: None });
    let Some(link) = talk_to_the_end(link, &service, client).await else { return };

    // It asked for TLS, and was told that it may begin.
    let workplace = &service.workplace;
    let (stream, watch, arrived) = link.into_socket();
    let snapshot = service.snapshots.load_full();
    let acceptor = snapshot.nfs.as_ref().and_then(|nfs| nfs.acceptor.as_ref());
    // Bytes that come with the question, before it was answered, are no handshake of this protocol.
    let (Some(acceptor), true) = (acceptor, arrived.is_empty()) else {
        return workplace.metrics.close(Ending::BadRequest.closed());
    };
    let ticket = match door.begin_handshake(stream, watch, address.ip()) {
        Ok(ticket) => ticket,
        Err(refused) => {
            workplace.metrics.refuse(refused);
            return workplace.metrics.close(Closed::Handshake);
        }
    };
    let secured = secure(ticket, acceptor, &snapshot, workplace, Keys::One).await;
    let Some(Secured { link, client, .. }) = secured else { return };
    let certificate = match client {
        ClientIdentity::Certified { names } => Some(Certificate { names }),
        ClientIdentity::Unknown => None,
        ClientIdentity::Refused { reason } => {
            if let Some(nfs) = &snapshot.nfs {
                nfs.complain(address, &format!("the client's certificate counts for nothing: {reason}"));
            }
            None
        }
    };
    let client = Arc::new(Client { address, tls: Some(Tls { certificate }) });
    // Within TLS nobody is asked to begin TLS.
    let _ = talk_to_the_end(link, &service, client).await;
}

/// Answers calls until the connection ends, or goes on with TLS: then the link is given back.
async fn talk_to_the_end(
    mut link: Link<KeySchedule>,
    service: &Service,
    client: Arc<Client>,
) -> Option<Link<KeySchedule>> {
    let ending = match Talk::new(&mut link, service, client).run().await {
        End::StartTls => return Some(link),
        End::Over(ending) => ending,
    };
    let linger = match ending {
        Ending::BadRequest | Ending::Record(_) => Linger::UntilPeerCloses,
        // A call may be on its way; the client sends it again elsewhere.
        Ending::Expired(Expiry::Drain | Expiry::Deadline(Stage::Idle)) => Linger::Briefly,
        _ => Linger::No,
    };
    service.workplace.metrics.close(ending.closed());
    link.close(&ending, linger).await;
    None
}
