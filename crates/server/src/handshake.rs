//! The handshake of one connection: bytes between the socket and `crates/tls`, within a time limit.

use crate::{
    ending::Ending,
    link::{Linger, Link},
    places::handshakes::{Standing, Ticket},
    watch::Watch,
    workplace::Workplace,
};
use linerate_http::{ImfFixdate, Responder, Status};
use linerate_os::socket::{self, Follows};
use linerate_tls::{Acceptor, Established, Handshake, HandshakeFailure, KeySchedule, Step};
use std::{future::poll_fn, io, rc::Rc, sync::Arc, task::Poll};
use tokio::{io::Interest, net::TcpStream};

/// A finished handshake, and the bytes that came behind it.
pub(crate) struct Finished {
    pub(crate) established: Box<Established>,
    pub(crate) arrived: Vec<u8>,
    /// The handshake's last records, which go before all else. Where the client's request has come already they are not
    /// sent yet, so that they leave together with the response.
    pub(crate) unsent: Vec<u8>,
}

/// Runs the handshake to its end. On failure the alert has been sent.
pub(crate) async fn run(
    acceptor: &Arc<Acceptor>,
    ticket: &Ticket,
    workplace: &Workplace,
) -> Result<Finished, HandshakeEnd> {
    let (stream, watch) = (ticket.stream(), ticket.watch());
    let mut has_answered = false;
    let mut handshake = Handshake::new(acceptor);
    let (mut incoming, mut outgoing) = (Vec::new(), Vec::new());
    loop {
        receive(stream, watch, workplace, &mut incoming).await.map_err(HandshakeEnd::Ended)?;
        let step = handshake.advance(&mut incoming, &mut outgoing);
        has_answered |= !outgoing.is_empty();
        let standing = if has_answered { Standing::Answered } else { Standing::Begun };
        ticket.heard(standing, workplace.now_ms());
        let is_awaited = !matches!(step, Ok(Step::Established(_))) || incoming.is_empty();
        let sent = if is_awaited { send(stream, watch, &mut outgoing).await } else { Ok(()) };
        match step {
            Ok(Step::NeedInput) => sent.map_err(HandshakeEnd::Ended)?,
            Ok(Step::Established(established)) => {
                sent.map_err(HandshakeEnd::Ended)?;
                return Ok(Finished { established, arrived: incoming, unsent: outgoing });
            }
            Err(failure) => return Err(HandshakeEnd::Failed { failure, arrived: incoming }),
        }
    }
}

/// Why there is no connection.
pub(crate) enum HandshakeEnd {
    /// TLS says so.
    Failed {
        /// What is wrong.
        failure: HandshakeFailure,
        /// What had come and was not taken: of plain HTTP the beginning of the request.
        arrived: Vec<u8>,
    },
    /// The socket or the clock says so.
    Ended(Ending),
}

async fn receive(
    stream: &TcpStream,
    watch: &Watch,
    workplace: &Workplace,
    incoming: &mut Vec<u8>,
) -> Result<(), Ending> {
    loop {
        let received = {
            let mut buffer = workplace.receive.borrow_mut();
            let received = socket::receive(stream, &mut buffer);
            if let Ok(bytes) = received {
                incoming.extend_from_slice(&buffer[..bytes]);
            }
            received
        };
        match received {
            Ok(0) => return Err(Ending::PeerClosed),
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(stream, watch, Interest::READABLE).await?
            }
            Err(error) => return Err(Ending::Socket(error)),
        }
    }
}

async fn send(stream: &TcpStream, watch: &Watch, outgoing: &mut Vec<u8>) -> Result<(), Ending> {
    let mut sent = 0;
    while sent < outgoing.len() {
        match socket::send(stream, &outgoing[sent..], Follows::Nothing) {
            Ok(bytes) => sent += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(stream, watch, Interest::WRITABLE).await?
            }
            Err(error) => return Err(Ending::Socket(error)),
        }
    }
    outgoing.clear();
    Ok(())
}

/// Waits after a system call, made around the runtime, found the socket not ready.
async fn wait(stream: &TcpStream, watch: &Watch, interest: Interest) -> Result<(), Ending> {
    let _ = stream.try_io(interest, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    poll_fn(|context| {
        if let Some(expiry) = watch.poll_expired(context) {
            return Poll::Ready(Err(Ending::Expired(expiry)));
        }
        let ready = if interest.is_readable() {
            stream.poll_read_ready(context)
        } else {
            stream.poll_write_ready(context)
        };
        ready.map_err(Ending::Socket)
    })
    .await
}

/// Tells a client that speaks plain HTTP to the TLS port what to do instead.
pub(crate) async fn answer_plain_http(
    arrived: &[u8],
    stream: TcpStream,
    watch: Rc<Watch>,
    workplace: Rc<Workplace>,
) {
    let mut page = Vec::new();
    {
        let date: &ImfFixdate = &workplace.date();
        let _ = Responder::without_request(arrived, date, crate::SERVER).plain_error(
            Status::BadRequest,
            "This port speaks TLS: use https:// instead of http://.",
            &mut page,
        );
    }
    if send(&stream, &watch, &mut page).await.is_ok() {
        let link = Link::<KeySchedule>::plain(stream, watch, workplace);
        link.close(&Ending::BadRequest, Linger::UntilPeerCloses).await;
    }
}
