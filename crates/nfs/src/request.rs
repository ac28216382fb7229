//! A call that has to look at files.

use crate::{
    Caller, Client, FileSystem, Identity, Operations, Protocol, Waiting,
    reply::{Draft, Reply, Report},
    v4::{self, Compound, Memory, Principal, Sequenced, Stop},
};
use linerate_rpc::{
    reply::{self, CallError},
    xdr::Reader,
};
use std::{borrow::Cow, time::Duration};

/// A call to be evaluated. It may be evaluated more than once: first on a worker's thread, where nothing waits, and then where waiting is
/// allowed. A slot of its session is taken until this is dropped.
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) transaction: u32,
    pub(crate) call_bytes: usize,
    pub(crate) identity: Identity,
    pub(crate) principal: Principal,
    pub(crate) now: Duration,
    /// The procedure's.
    pub(crate) arguments: Cow<'a, [u8]>,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Compound { sequenced: Sequenced, behind_sequence_bytes: usize, memories: Vec<Memory> },
}

/// What an evaluation has led to.
#[derive(Debug)]
#[must_use]
pub enum Evaluated<F> {
    /// This is the reply. The slot may be left free before it is sent.
    Reply(Reply<F>),
    /// Something is not in the kernel's caches: to be evaluated again with [`Waiting::Allowed`].
    WouldWait,
}

impl Request<'_> {
    /// The same, with the call's bytes: for another thread.
    #[must_use]
    pub fn into_owned(self) -> Request<'static> {
        let Request { transaction, call_bytes, identity, principal, now, arguments, body } = self;
        let arguments = Cow::Owned(arguments.into_owned());
        Request { transaction, call_bytes, identity, principal, now, arguments, body }
    }

    /// Carries out what is asked. `client` is the peer whose record this was.
    pub fn evaluate<F: FileSystem>(
        &mut self,
        protocol: &Protocol,
        files: &F,
        client: &Client,
        waiting: Waiting,
    ) -> Evaluated<F::File> {
        let mut draft = Draft::accepted(self.transaction);
        let caller = Caller { client, identity: &self.identity, waiting };
        let Body::Compound { sequenced, behind_sequence_bytes, memories } = &mut self.body;
        let circumstances = protocol.circumstances(&self.principal, self.call_bytes, self.now);
        let mut reader = Reader::new(&self.arguments);
        // It was read before.
        let Ok(header) = v4::Header::read(&mut reader) else {
            return self.failed(CallError::BadArguments);
        };
        let reader = Reader::new(self.arguments.get(*behind_sequence_bytes..).unwrap_or_default());
        let compound = Compound { header, reader, sequenced, memories };
        match v4::evaluate(files, &caller, compound, &circumstances, &mut draft) {
            Ok(report) => {
                v4::keep(sequenced, memories, &draft);
                match draft.finish(report) {
                    Ok(reply) => Evaluated::Reply(reply),
                    Err(_) => self.failed(CallError::Failed),
                }
            }
            Err(Stop::WouldWait) if waiting == Waiting::Forbidden => Evaluated::WouldWait,
            // The file system has broken its word.
            Err(_) => self.failed(CallError::Failed),
        }
    }

    fn failed<F>(&self, error: CallError) -> Evaluated<F> {
        let report = Report { operations: Operations::default(), status: "SYSTEM_ERR" };
        Evaluated::Reply(Reply::of_bytes(reply::failed(self.transaction, error), report))
    }
}
