//! One record: from its bytes to a reply, or to work for a waiting thread.

use super::service::NfsService;
use linerate_export::{Exports, OpenFile};
use linerate_nfs::{Client, Evaluated, MOUNT_PROGRAM, Piece, Protocol, Request, Step, Waiting};
use linerate_rpc::{
    Call, Credential,
    reply::{self, AuthenticationError, Denial},
};
use std::sync::Arc;

/// A reply, in the order in which it is sent.
pub(super) type Pieces = Vec<Piece<Arc<OpenFile>>>;

/// What became of a record.
pub(super) enum Outcome {
    /// This is the reply.
    Answered(Pieces),
    /// The call has to wait for a disk.
    WouldWait(Job),
    /// The client gets nothing here, and is told so.
    Denied(Pieces),
    /// The client is told to begin its handshake.
    StartTls(Vec<u8>),
    /// It is told that there is no TLS.
    TlsDeclined(Pieces),
    /// It was no call: the connection ends.
    Malformed,
}

/// A call that is evaluated on a thread that may wait.
pub(super) struct Job {
    request: Box<Request<'static>>,
    protocol: Arc<Protocol>,
    exports: Arc<Exports>,
    client: Arc<Client>,
}

impl Job {
    /// Evaluates it. `None` never: where waiting is allowed there is a reply.
    pub(super) fn run(mut self) -> Option<Pieces> {
        match self.request.evaluate(&self.protocol, &*self.exports, &self.client, Waiting::Allowed) {
            Evaluated::Reply(reply) => Some(reply.pieces),
            Evaluated::WouldWait => None,
        }
    }
}

/// Answers what `client` sent, as far as that does not wait. `is_refused`: no export is for this client, so that nothing is
/// carried out for it (RFC 9289 5.2.1).
pub(super) fn take(nfs: &NfsService, client: &Arc<Client>, is_refused: bool, record: &[u8]) -> Outcome {
    let asks = Call::parse(record).ok();
    let asks_for_tls = asks.as_ref().is_some_and(|call| call.credential == Credential::Tls);
    // MOUNT comes in the clear whatever follows, and each call of it is judged by itself.
    let is_meant = |call: &Call<'_>| !asks_for_tls && call.program != MOUNT_PROGRAM && call.procedure != 0;
    if let Some(call) = asks.filter(|call| is_refused && is_meant(call)) {
        let denial = Denial::Authentication(AuthenticationError::TooWeak);
        return Outcome::Denied(whole(reply::denied(call.transaction, denial)));
    }
    match nfs.protocol.take(record, client, nfs.tls_policy(), nfs.now()) {
        Step::Reply(bytes) if asks_for_tls => Outcome::TlsDeclined(whole(bytes)),
        Step::Reply(bytes) => Outcome::Answered(whole(bytes)),
        Step::StartTls(bytes) => Outcome::StartTls(bytes),
        Step::Evaluate(mut request) => {
            match request.evaluate(&nfs.protocol, &*nfs.exports, client, Waiting::Forbidden) {
                Evaluated::Reply(reply) => Outcome::Answered(reply.pieces),
                Evaluated::WouldWait => Outcome::WouldWait(Job {
                    request: Box::new(request.into_owned()),
                    protocol: Arc::clone(&nfs.protocol),
                    exports: Arc::clone(&nfs.exports),
                    client: Arc::clone(client),
                }),
            }
        }
        Step::End => Outcome::Malformed,
    }
}

fn whole(bytes: Vec<u8>) -> Pieces {
    vec![Piece::Bytes(bytes)]
}
