//! From a connection to the listener to an agreed run: the greeting, its proofs, and the request.

use crate::{
    StreamError, StreamPlan,
    conduct::expect,
    control::{
        frame::RESULT_LIMIT_BYTES,
        link::{ControlLink, LinkFault},
        message::{Hexadecimal, Message, PROTOCOL_VERSION, Request},
        secret::{Bond, Prover},
    },
    handshake,
    keys::KeyUse,
    plan::Version,
};
use linerate_tls::{CipherSuite, Connector, TlsPolicy, Trust};
use std::{
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// Handshake and greeting.
const GREETING_TIME: Duration = Duration::from_secs(30);
/// The listener finds out what its kernel carries before it answers.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// The listener's certificate is made by itself: what it is worth is shown by the proof of the secret, which is bound to it.
pub(super) fn connector(is_wanted: impl Fn(&CipherSuite) -> bool) -> Result<Connector, StreamError> {
    let mut policy = TlsPolicy { session_tickets: false, ..TlsPolicy::default() };
    policy.cipher_suites.retain(is_wanted);
    Ok(Connector::new(&policy, &Trust::Anyone)?)
}

pub(super) fn refused(fault: &LinkFault) -> StreamError {
    StreamError::Refused(format!("no run: of the listener: {fault}"))
}

pub(super) fn unexpected() -> StreamError {
    StreamError::Refused("the listener said what does not come next: is it linerate?".to_owned())
}

/// The control connection, once both ends have proved what they have to. Gives the listener's address, too.
pub(super) fn greet(
    plan: &StreamPlan,
    socket: TcpStream,
    client_nonce: [u8; 32],
) -> Result<(ControlLink, SocketAddr), StreamError> {
    let unreachable = |reason: String| StreamError::Unreachable {
        listener: format!("{}:{}", plan.host, plan.port),
        reason,
    };
    let deadline = Instant::now() + GREETING_TIME;
    let listener = socket.peer_addr().map_err(|error| unreachable(error.to_string()))?;
    socket.set_nonblocking(true).map_err(|error| unreachable(error.to_string()))?;
    let connector = connector(|suite| suite.version() == Version::Tls13)?;
    let secured = handshake::connect(&socket, &connector, KeyUse::default(), deadline)
        .map_err(|failure| unreachable(failure.to_string()))?;
    let certificate = secured.certificate.clone();
    let mut link = ControlLink::new(socket, secured, RESULT_LIMIT_BYTES);
    say(&mut link, &Message::Hello { version: PROTOCOL_VERSION, nonce: Hexadecimal(client_nonce) })?;
    let (listener_nonce, needs_secret) = match hear(&mut link, deadline)? {
        Message::Challenge { nonce, needs_secret, .. } => (nonce.0, needs_secret),
        _ => return Err(unexpected()),
    };
    let bond =
        Bond { client_nonce: &client_nonce, listener_nonce: &listener_nonce, certificate: &certificate };
    let secret = match (&plan.secret, needs_secret) {
        (Some(secret), true) => Some(secret),
        (None, false) => None,
        (None, true) => {
            return Err(StreamError::Refused(
                "the listener has a secret: give the same here, by --secret FILE".to_owned(),
            ));
        }
        // It could be anybody.
        (Some(_), false) => {
            return Err(StreamError::Refused(
                "the listener has no secret, so it cannot prove to be the right one: leave --secret out, or give it the \
                 same"
                    .to_owned(),
            ));
        }
    };
    let proof = secret.map(|secret| Hexadecimal(secret.prove(Prover::Client, bond)));
    say(&mut link, &Message::Proof { proof })?;
    match hear(&mut link, deadline)? {
        Message::Welcome { proof } => {
            let is_right = match (secret, proof) {
                (None, None) => true,
                (Some(secret), Some(proof)) => secret.is_proved(Prover::Listener, bond, &proof.0),
                _ => false,
            };
            if is_right {
                Ok((link, listener))
            } else {
                Err(StreamError::Refused(
                    "what answers does not know the secret: it is not the listener that it should be"
                        .to_owned(),
                ))
            }
        }
        _ => Err(unexpected()),
    }
}

fn say(link: &mut ControlLink, message: &Message) -> Result<(), StreamError> {
    link.send(message).map_err(|fault| refused(&fault))
}

/// The next message; a refusal is an error.
fn hear(link: &mut ControlLink, deadline: Instant) -> Result<Message, StreamError> {
    match expect(link, deadline).map_err(|fault| refused(&fault))? {
        Message::Refused { reason } => Err(StreamError::Refused(format!("the listener refuses: {reason}"))),
        message => Ok(message),
    }
}

/// Asks for the run. The rate becomes what the listener holds streams to.
pub(super) fn ask(link: &mut ControlLink, request: &mut Request) -> Result<[u8; 32], StreamError> {
    say(link, &Message::Run(request.clone()))?;
    match hear(link, Instant::now() + ANSWER_TIME)? {
        Message::Accepted { key, rate_bits } => {
            request.rate_bits = rate_bits;
            Ok(key.0)
        }
        _ => Err(unexpected()),
    }
}
