//! TLS handshakes over a socket, by either end, up to a deadline.

use crate::{
    keymakers::{self, NothingCame},
    keys::{self, KeyUse, Keys},
    wait,
};
use linerate_os::socket::{self, Follows};
use linerate_record::Channel;
use linerate_tls::{Acceptor, CipherSuite, ClientHandshake, ConnectStep, Connector, Handshake, Step};
use rustix::event::PollFlags;
use std::{fmt, io, net::TcpStream, sync::Arc, time::Instant};

/// What clients ask for by SNI: the listener shows its one certificate to every name.
const SERVER_NAME: &str = "localhost";
/// What is read at once.
const READ_BYTES: usize = 16 * 1024;

/// A connection whose handshake is over.
pub(crate) struct Secured {
    pub(crate) channel: Channel<Keys>,
    /// What had come behind the handshake.
    pub(crate) rest: Vec<u8>,
    pub(crate) suite: CipherSuite,
    /// The listener's certificate: SHA-256, as this end knows it.
    pub(crate) certificate: String,
}

/// Why there is no TLS.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<NothingCame> for Failure {
    fn from(_: NothingCame) -> Self {
        Self("no thread to make keys".to_owned())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<linerate_record::RecordError> for Failure {
    fn from(fault: linerate_record::RecordError) -> Self {
        Self(fault.to_string())
    }
}

/// The client's handshake.
pub(crate) fn connect(
    socket: &TcpStream,
    connector: &Connector,
    keys: KeyUse,
    deadline: Instant,
) -> Result<Secured, Failure> {
    let connector = connector.clone();
    let started = keymakers::done(move || {
        let mut outgoing = Vec::new();
        ClientHandshake::start(&connector, SERVER_NAME, &mut outgoing).map(|handshake| (handshake, outgoing))
    });
    let (mut handshake, mut outgoing) = started?.map_err(failed)?;
    let mut incoming = Vec::new();
    loop {
        send(socket, &mut outgoing, deadline)?;
        receive(socket, &mut incoming, deadline)?;
        let step;
        (handshake, incoming, outgoing, step) = keymakers::done(move || {
            let step = handshake.advance(&mut incoming, &mut outgoing);
            (handshake, incoming, outgoing, step)
        })?;
        match step {
            Ok(ConnectStep::NeedInput) => {}
            Ok(ConnectStep::Connected(connected)) => {
                send(socket, &mut outgoing, deadline)?;
                let certificate = connected.server_certificates.sha256_fingerprint().unwrap_or_default();
                let suite = connected.cipher_suite;
                let channel = keys::of_client(*connected, keys)?;
                return Ok(Secured { channel, rest: incoming, suite, certificate });
            }
            Err(failure) => {
                // The alert is a courtesy.
                let _ = send(socket, &mut outgoing, deadline);
                return Err(failed(failure));
            }
        }
    }
}

/// The listener's handshake.
pub(crate) fn accept(
    socket: &TcpStream,
    acceptor: &Arc<Acceptor>,
    keys: KeyUse,
    deadline: Instant,
) -> Result<Secured, Failure> {
    let mut handshake = Handshake::new(acceptor);
    let (mut incoming, mut outgoing) = (Vec::new(), Vec::new());
    loop {
        receive(socket, &mut incoming, deadline)?;
        let step;
        (handshake, incoming, outgoing, step) = keymakers::done(move || {
            let step = handshake.advance(&mut incoming, &mut outgoing);
            (handshake, incoming, outgoing, step)
        })?;
        match step {
            Ok(Step::NeedInput) => send(socket, &mut outgoing, deadline)?,
            Ok(Step::Established(established)) => {
                send(socket, &mut outgoing, deadline)?;
                let certificate = established.certificate.sha256_fingerprint();
                let suite = established.cipher_suite;
                let channel = keys::of_listener(*established, keys)?;
                return Ok(Secured { channel, rest: incoming, suite, certificate });
            }
            Err(failure) => {
                let _ = send(socket, &mut outgoing, deadline);
                return Err(failed(failure));
            }
        }
    }
}

fn failed(failure: impl fmt::Display) -> Failure {
    Failure(format!("TLS handshake: {failure}"))
}

fn timed_out() -> Failure {
    Failure("nothing came for too long".to_owned())
}

/// Sends all of `outgoing`, and empties it.
pub(crate) fn send(socket: &TcpStream, outgoing: &mut Vec<u8>, deadline: Instant) -> Result<(), Failure> {
    let mut sent = 0;
    while sent < outgoing.len() {
        match socket::send(socket, &outgoing[sent..], Follows::Nothing) {
            Ok(bytes) => sent += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if !wait::until(socket, PollFlags::OUT, deadline)? {
                    return Err(timed_out());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    outgoing.clear();
    Ok(())
}

/// Receives something.
fn receive(socket: &TcpStream, incoming: &mut Vec<u8>, deadline: Instant) -> Result<(), Failure> {
    if !wait::until(socket, PollFlags::IN, deadline)? {
        return Err(timed_out());
    }
    let start = incoming.len();
    incoming.resize(start + READ_BYTES, 0);
    let received = socket::receive(socket, &mut incoming[start..]);
    incoming.truncate(start + received.as_ref().unwrap_or(&0));
    match received {
        Ok(0) => Err(Failure("the other end closed the connection".to_owned())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error.into()),
    }
}
